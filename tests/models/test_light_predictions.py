"""Predictions of a model from a file need neither what trains, nor solvers, nor numba, and so compile nothing."""

import subprocess
import sys

import numpy as np
import pytest

import treewright as tw
from treewright.models.registry import MODELS

HEAVY = ("solvers", "splits", "totals", "engine", "optimize", "teachers")
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
    few = np.where(np.arange(40) < 20, y, -1)
    deep, limited = {"max_depth": 2, "random_state": 0}, {"random_state": 0, "time_limit": 1.0}
    models = [
        tw.BinOCTClassifier(1, **limited).fit(X, y),
        tw.FairOCTClassifier(1, **limited).fit(X, y, protected=y),
        tw.LapTAOClassifier(**deep).fit(X, few),
        tw.LapTAORegressor(**deep).fit(X, np.where(few < 0, np.nan, X[:, 0])),
        tw.OCTClassifier(2, **limited).fit(X, y),
        tw.OCTHClassifier(1, **limited).fit(X, y),
        tw.OCTSVMClassifier(1, **limited).fit(X, y),
        tw.OCTSVMClassifier(1, **limited).fit(X, np.arange(40) % 3),
        tw.RESVMClassifier(**limited).fit(X, y),
        tw.S2OCTClassifier(1, **limited).fit(X, few, totals={0: 10, 1: 10}),
        tw.SSCTClassifier(**deep).fit(X, few),
        tw.SVM1ODTClassifier(1, **limited).fit(X, y),
        tw.TAOClassifier(**deep).fit(X, y),
        tw.TAOClassifier(**deep, teacher="auto", unlabeled=-1).fit(X, few),
        tw.TAORegressor(**deep).fit(X, X[:, 0]),
    ]
    paths = [str(tmp_path / f"{number}.json") for number in range(len(models))]
    for model, path in zip(models, paths, strict=True):
        model.save(path)
    saved = set(MODELS)
    assert saved == {type(model).__name__ for model in models}
    done = subprocess.run([sys.executable, "-c", CODE, *paths], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    ours = [name.split(".")[1:] for name in loaded if name.startswith("treewright.")]
    assert {".".join(name) for name in ours if name[0] in HEAVY} <= {"optimize", "optimize.record"}  # how the fit ended
    assert {name[2] for name in ours if name[0] == "models" and len(name) > 2} == {"estimator", "ssct"}
    assert ["core", "compiled"] not in ours
    assert not loaded & {"highspy", "numba", "clarabel", "pyscipopt", "gurobipy"}
