"""The public estimators by name: what a model file may hold and what the command line may fit."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["CATEGORICAL", "LABELLERS", "MODELS", "SHORT_NAMES", "load_model"]


class _Kinds(UserDict[str, Any]):
    """Classes by name; one that is written as its module and name is imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, str):
            module, _, kind = found.partition(":")
            found = self.data[name] = getattr(import_module(f"treewright.models.{module}"), kind)
        return found


_TREES = {
    "binoct": "binoct.estimator:BinOCTClassifier",
    "fair-oct": "fair.estimator:FairOCTClassifier",
    "laptao": "laptao.estimator:LapTAOClassifier",
    "oct": "oct.estimator:OCTClassifier",
    "oct-h": "oct_h.estimator:OCTHClassifier",
    "octsvm": "octsvm.estimator:OCTSVMClassifier",
    "resvm": "octsvm.estimator:RESVMClassifier",
    "s2oct": "s2oct.estimator:S2OCTClassifier",
    "ssct": "baselines.ssct:SSCTClassifier",
    "svm1odt": "svm1odt.estimator:SVM1ODTClassifier",
    "tao": "tao.estimator:TAOClassifier",
}
_REGRESSORS = ("laptao.estimator:LapTAORegressor", "tao.estimator:TAORegressor")

SHORT_NAMES = _Kinds(_TREES)
"""Classifiers with a tree by their names on the command line. A new one joins here and in the public
names of the package."""

CATEGORICAL = ("laptao", "oct", "svm1odt", "tao")
"""Those that take categories and missing values as they are; help and messages name them."""

LABELLERS = _Kinds({"c2rf": "c2rf.estimator:C2RFClassifier", "totals": "totals.estimator:TotalsClassifier"})
"""Classifiers of the command line that are no tree; their files are a zip."""

MODELS = _Kinds({place.partition(":")[2]: place for place in (*_TREES.values(), *_REGRESSORS)})
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
    from treewright.estimators.files import model_from_dict
    from treewright.estimators.tables import table_notes
    from treewright.models.labeller_files import is_labeller_file, read_labeller
    from treewright.tree.json_files import read_json

    if is_labeller_file(path):
        model: Any
        model, document = read_labeller(path)
        if document.get("table") is not None:
            table_notes(document["table"], model.n_features_in_, f"{path}: table")
            model._table = document["table"]
        return model
    return model_from_dict(read_json(path), MODELS, where=str(path))
