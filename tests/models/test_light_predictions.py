"""Predictions of a model from a file need neither what trains nor solvers."""

import subprocess
import sys

import numpy as np
import pytest
from tests.estimators_list import quick, targets

from treewright.models.registry import MODELS

HEAVY = ("solvers", "splits", "totals", "engine", "optimize", "teachers")
LIGHT = {
    "engine",
    "engine.leaf_probabilities",  # what predict_proba says
    "optimize",
    "optimize.record",  # how the fit ended
    "optimize.settings",  # numbers alone
    "teachers",
    "teachers.record",  # who taught
}
CODE = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import treewright.cli.commands
from treewright import load_model
for path in sys.argv[1:]:
    model = load_model(path)
    model.predict(np.linspace(0, 1, 30).reshape(10, 3))
    getattr(model, "predict_proba", model.predict)(np.linspace(0, 1, 30).reshape(10, 3))
print(*sys.modules)
"""


@pytest.mark.filterwarnings("ignore")
def test_predictions_import_no_training_no_solver_and_nothing_compiled(searches_alone, tmp_path):
    X, y = np.random.default_rng(0).random((40, 3)), np.arange(40) % 2
    few = np.arange(40) < 20
    settings = {"max_depth": 2, "random_state": 0, "time_limit": 1.0}
    models = [quick(name, **settings).fit(X, targets(name, y, few)) for name in MODELS]
    models += [
        quick("FairOCTClassifier", **settings).fit(X, y, protected=y),
        quick("OCTSVMClassifier", **settings).fit(X, np.arange(40) % 3),
        quick("S2OCTClassifier", **settings).fit(X, np.where(few, y, -1), totals={0: 10, 1: 10}),
        quick("TAOClassifier", **settings, teacher="auto", unlabeled=-1).fit(X, np.where(few, y, -1)),
    ]
    paths = [str(tmp_path / f"{number}.json") for number in range(len(models))]
    for model, path in zip(models, paths, strict=True):
        model.save(path)
    done = subprocess.run([sys.executable, "-c", CODE, *paths], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    ours = [name.split(".")[1:] for name in loaded if name.startswith("treewright.")]
    assert {".".join(name) for name in ours if name[0] in HEAVY} <= LIGHT
    assert {name[2] for name in ours if name[0] == "models" and len(name) > 2} == {"against", "estimator", "ssct"}
    assert not loaded & {"highspy", "clarabel", "pyscipopt", "gurobipy"}
