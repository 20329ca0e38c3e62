"""Model files: a fitted estimator as one JSON document, read back without running anything it says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_classifier

from treewright._version import __version__
from treewright.data._checks import listing, plain
from treewright.estimators.common.model import course_of
from treewright.estimators.common.old_files import upgraded
from treewright.estimators.common.record_files import record_from_dict, record_to_dict
from treewright.exceptions import ModelFileError, warn_user
from treewright.tree import Tree
from treewright.tree.json_files import read_json, write_json
from treewright.tree.serialize import tree_from_dict, tree_to_dict

__all__ = [
    "FORMAT",
    "VERSION",
    "is_plain",
    "model_from_dict",
    "model_to_dict",
    "plain_parameters",
    "read_model",
    "write_model",
]

FORMAT = "treewright-model"
VERSION = 2

E = TypeVar("E")

_LABEL_KINDS = {"bool": bool, "int": int, "float": float, "str": str}
# What a file has for each kind of array, and the array it becomes; "O" are strings too.
_LABELS = {
    "b": (bool, np.bool_),
    "i": (int, np.int64),
    "u": (int, np.uint64),
    "f": (float, np.float64),
    "U": (str, np.str_),
    "O": (str, np.object_),
}


def is_plain(value: object) -> bool:
    """Whether a value is one that text and JSON have: None, a boolean, a number or a string.

    Examples
    --------
    >>> is_plain(2.5), is_plain([1, 2])
    (True, False)
    """
    return value is None or isinstance(value, bool | int | float | str)


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that have a plain value, sorted; numbers of numpy become those of Python.

    Examples
    --------
    >>> from treewright import OCTHClassifier
    >>> plain_parameters(OCTHClassifier(max_depth=np.int64(3)))["max_depth"]
    3
    """
    given = {name: plain(value) for name, value in sorted(estimator.get_params(deep=False).items())}
    return {name: value for name, value in given.items() if is_plain(value)}


def model_to_dict(estimator: Any) -> dict[str, Any]:
    """Return a fitted estimator as plain data.

    Parameters that have no plain form (a warm-start tree, a RandomState, NaN) are left at their defaults: they shape
    a fit, not the fitted model.
    """
    parameters = plain_parameters(estimator).items()
    return {
        "format": FORMAT,
        "version": VERSION,
        "treewright": __version__,
        "estimator": type(estimator).__name__,
        "parameters": {k: v for k, v in parameters if not isinstance(v, float) or math.isfinite(v)},
        "classes": _labels_to_plain(estimator.classes_) if is_classifier(estimator) else None,
        "n_features": int(estimator.n_features_in_),
        "feature_names": _names_to_plain(estimator),
        "tree": tree_to_dict(estimator.tree_),
        "record": record_to_dict(estimator.record_),
        "fit": estimator._fitted_state(),
    }


def model_from_dict(document: dict[str, Any], known: dict[str, type], where: str = "the model") -> Any:
    """Make a fitted estimator from what :func:`model_to_dict` gave.

    Parameters
    ----------
    document : dict
        The plain data.
    known : dict of str to type
        Estimator classes that may be made, by name.
    where : str
        What to call the document in errors.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{where} is not a treewright model: its format is not {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ModelFileError(f"{where} has version {version!r}, this treewright reads 1 to {VERSION}")
    name = document.get("estimator")
    if not isinstance(name, str) or name not in known:
        raise ModelFileError(f"{where} holds the estimator {name!r}; expected one of {sorted(known)}")
    try:
        document = upgraded(document) if version == 1 else document
        estimator = known[name](**_parameters(document, known[name]))
        estimator._validate_params()
        _restore(estimator, document)
    except ModelFileError as error:
        raise ModelFileError(f"{where}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{where} is damaged: {type(error).__name__}: {error}") from error
    return estimator


def write_model(estimator: Any, path: Path) -> None:
    """Write a fitted estimator to a file."""
    write_json(path, model_to_dict(estimator))


def read_model(path: Path, kind: type[E]) -> E:
    """Read a fitted estimator of class `kind` from a file."""
    model: E = model_from_dict(read_json(path), {kind.__name__: kind}, where=str(path))
    return model


def _restore(estimator: Any, document: dict[str, Any]) -> None:
    tree = tree_from_dict(document["tree"])
    n_features, names = document["n_features"], document["feature_names"]
    if is_classifier(estimator):
        estimator.classes_ = _labels_from_plain(document["classes"])
        _check_tree(tree, len(estimator.classes_), tree.n_features)
    elif tree.is_classifier or document["classes"] is not None:
        raise ModelFileError("the model is a regressor; its tree must have no labels, and classes must be null")
    if type(n_features) is not int or n_features != tree.n_features:
        raise ModelFileError(f"the tree has {tree.n_features} features, the model says {n_features!r}")
    estimator.tree_, estimator.n_features_in_ = tree, n_features
    if names is not None:
        if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
            raise ModelFileError(f"feature_names must be {n_features} strings")
        if len(set(names)) < n_features:
            raise ModelFileError(f"feature_names has the same name twice: {listing(_repeated(names))}")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if not isinstance(document["fit"], dict):
        raise ModelFileError("fit must be an object")
    vars(estimator).update(course_of(record_from_dict(document["record"], estimator._bounded)))
    estimator._restore_state(document["fit"])
    # what only some estimators have
    for member in getattr(estimator, "trees_", []):
        _check_tree(member, len(estimator.classes_), n_features)
    if hasattr(estimator, "totals_"):
        _check_totals(estimator.totals_, estimator.classes_.tolist())


def _check_tree(tree: Tree, n_classes: int, n_features: int) -> None:
    if not tree.is_classifier or tree.n_outputs != n_classes:
        raise ModelFileError(f"a tree has {tree.n_outputs} outputs, the model {n_classes} classes")
    if tree.n_features != n_features:
        raise ModelFileError(f"a tree has {tree.n_features} features, the model {n_features}")


def _check_totals(rows: Any, classes: list[Any]) -> None:
    """Refuse a table of totals that :meth:`treewright.data.ClassTotals.reached` would not have made."""
    numbers = ("low", "high", "reached", "deviation")
    for i, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != {"group", "class", *numbers}:
            raise ModelFileError(f"totals[{i}] must have a group, a class, {', '.join(numbers)}")
        if not is_plain(row["group"]) or not any(type(c) is type(row["class"]) and c == row["class"] for c in classes):
            raise ModelFileError(f"totals[{i}] is about group {row['group']!r} and class {row['class']!r}")
        if not all(type(row[key]) is int and row[key] >= 0 for key in numbers) or row["low"] > row["high"]:
            raise ModelFileError(f"totals[{i}] must have whole numbers from 0 on, low not above high")


def _parameters(document: dict[str, Any], kind: Any) -> dict[str, Any]:
    given = document["parameters"]
    if not isinstance(given, dict):
        raise ModelFileError("parameters must be an object")
    accepted = kind().get_params(deep=False)
    unusable = [name for name, value in given.items() if name not in accepted or not is_plain(value)]
    if unusable:
        raise ModelFileError(f"unknown or unusable parameters {listing(sorted(unusable))}")
    for name, value in given.items():
        # to scikit-learn's checks True is the number 1
        if isinstance(value, bool) and not _may_be_bool(kind, name):
            raise ModelFileError(f"parameter {name!r} is {value}, expected a number or text")
    return dict(given)


def _may_be_bool(kind: Any, name: str) -> bool:
    allowed = kind._parameter_constraints.get(name, "no_validation")
    return isinstance(allowed, str) or "boolean" in allowed or "verbose" in allowed


def _names_to_plain(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return None
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        warn_user(f"features of the same name: {listing(_repeated(texts))}; the model file has no names of features")
        return None
    return texts


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _labels_to_plain(classes: np.ndarray) -> dict[str, Any]:
    values = [plain(v) for v in classes.tolist()]
    kinds = [type(v).__name__ for v in values]
    if not set(kinds) <= set(_LABEL_KINDS):
        raise ModelFileError(f"labels of type {sorted(set(kinds) - set(_LABEL_KINDS))} cannot be saved")
    return {"dtype": classes.dtype.kind, "values": values}


def _labels_from_plain(data: Any) -> np.ndarray:
    if not isinstance(data, dict) or set(data) != {"dtype", "values"} or not isinstance(data["values"], list):
        raise ModelFileError("classes must have a dtype and a list of values")
    if not isinstance(data["dtype"], str) or data["dtype"] not in _LABELS:
        raise ModelFileError(f"classes have the unknown dtype {data['dtype']!r}")
    kind, dtype = _LABELS[data["dtype"]]
    values = data["values"]
    if not values or not all(type(v) is kind for v in values):
        raise ModelFileError(f"class labels of dtype {data['dtype']!r} must all be of type {kind.__name__}")
    labels: np.ndarray = np.array(values, dtype=dtype)
    if not np.array_equal(np.unique(labels), labels) or (kind is float and not np.isfinite(labels).all()):
        raise ModelFileError("class labels must be different, sorted and finite")
    return labels
