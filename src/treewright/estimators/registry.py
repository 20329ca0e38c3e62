"""The public estimators by name: what a model file may hold and what the command line may fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treewright.estimators.binoct import BinOCTClassifier
from treewright.estimators.c2rf import C2RFClassifier
from treewright.estimators.common.files import model_from_dict
from treewright.estimators.common.tables import table_notes
from treewright.estimators.fair import FairOCTClassifier
from treewright.estimators.labeller_files import is_labeller_file, read_labeller
from treewright.estimators.laptao import LapTAOClassifier, LapTAORegressor
from treewright.estimators.oct import OCTClassifier
from treewright.estimators.oct_h import OCTHClassifier
from treewright.estimators.octsvm import OCTSVMClassifier, RESVMClassifier
from treewright.estimators.s2oct import S2OCTClassifier
from treewright.estimators.ssct import SSCTClassifier
from treewright.estimators.svm1odt import SVM1ODTClassifier
from treewright.estimators.tao import TAOClassifier, TAORegressor
from treewright.estimators.totals import TotalsClassifier
from treewright.tree.json_files import read_json

__all__ = ["LABELLERS", "MODELS", "SHORT_NAMES", "load_model"]

SHORT_NAMES: dict[str, type] = {
    "binoct": BinOCTClassifier,
    "fair-oct": FairOCTClassifier,
    "laptao": LapTAOClassifier,
    "oct": OCTClassifier,
    "oct-h": OCTHClassifier,
    "octsvm": OCTSVMClassifier,
    "resvm": RESVMClassifier,
    "s2oct": S2OCTClassifier,
    "ssct": SSCTClassifier,
    "svm1odt": SVM1ODTClassifier,
    "tao": TAOClassifier,
}
"""Classifiers with a tree by their names on the command line. A new one joins here and in the public
names of the package."""

LABELLERS: dict[str, type] = {"c2rf": C2RFClassifier, "totals": TotalsClassifier}
"""Classifiers of the command line that are no tree; their files are a zip."""

MODELS: dict[str, type] = {kind.__name__: kind for kind in (*SHORT_NAMES.values(), LapTAORegressor, TAORegressor)}
"""Names in model files. Regressors have no short name: the command line predicts classes."""


def load_model(path: str | Path) -> Any:
    """Read a fitted estimator of any kind from a model file.

    Parameters
    ----------
    path : str or Path
        A file that an estimator's ``save`` or the command line wrote; of one with a `TotalsClassifier` and a tree, the
        former is read.

    Returns
    -------
    estimator
        The fitted estimator. One of the command line takes a pandas or polars frame with the columns of its table, in
        any order and among others (text, dates and gaps as they are), and says of it what ``treewright predict`` says
        of a file: in `predict`, `predict_proba`, `apply` and `transduce`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from treewright import OCTHClassifier, load_model
    >>> model = OCTHClassifier(max_depth=1).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model.json")
    ...     again = load_model(Path(folder) / "model.json")
    >>> again.predict([[0.2], [0.9]]).tolist()
    ['no', 'yes']
    """
    if is_labeller_file(path):
        model: Any
        model, document = read_labeller(path)
        if document.get("table") is not None:
            table_notes(document["table"], model.n_features_in_, f"{path}: table")
            model._table = document["table"]
        return model
    return model_from_dict(read_json(path), MODELS, where=str(path))
