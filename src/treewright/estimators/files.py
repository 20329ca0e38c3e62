"""Model files: a fitted estimator as one JSON document, read back without running anything it says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_classifier

from treewright._version import __version__
from treewright.data.columns_checked import listing, plain
from treewright.data.mixed import Features
from treewright.data.seen_numbers import SeenNumbers
from treewright.estimators.model import course_attributes
from treewright.estimators.record_files import is_number, record_from_dict, record_to_dict
from treewright.estimators.tables import table_notes
from treewright.exceptions import ModelFileError, warn_user
from treewright.tree import Tree
from treewright.tree.json_files import read_json, shown, write_json
from treewright.tree.serialize import tree_from_dict, tree_to_dict

__all__ = [
    "FORMAT",
    "VERSION",
    "is_plain",
    "model_from_dict",
    "model_to_dict",
    "plain_parameters",
    "read_model",
    "refuse_other_version",
    "written_parameters",
    "write_model",
]

FORMAT = "treewright-model"
VERSION = 1

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


def is_listed(value: object) -> bool:
    """Whether a parameter of a model file is a list of plain values, as names of categorical features are.

    Examples
    --------
    >>> is_listed(["a", "b"]), is_listed([[1]])
    (True, False)
    """
    return isinstance(value, list) and all(is_plain(v) for v in value)


def is_plain(value: object) -> bool:
    """Whether a parameter of a model file is a value that text and JSON have: None, a boolean, a number or a string.

    Examples
    --------
    >>> is_plain(2.5), is_plain([1, 2])
    (True, False)
    """
    return value is None or isinstance(value, bool | int | float | str)


def is_weights(value: object) -> bool:
    """Whether a parameter of a model file is a dict of labels and weights, as those of classes are.

    Examples
    --------
    >>> is_weights({"rare": 2.5, "usual": 1}), is_weights({"rare": "2.5"}), is_weights({None: 1})
    (True, False, False)
    """
    return isinstance(value, dict) and all(_is_label(k) and is_number(v) and v >= 0 for k, v in value.items())


def _is_label(value: object) -> bool:
    return isinstance(value, bool | str) or is_number(value)


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that have plain values, lists of them, or weights of labels, sorted.

    Values of numpy become those of Python. Labels of rows, as a teacher may be, are data of the fit and no parameter.

    Examples
    --------
    >>> from treewright import OCTHClassifier
    >>> plain_parameters(OCTHClassifier(max_depth=np.int64(3)))["max_depth"]
    3
    """
    given = {name: _as_plain(value) for name, value in sorted(estimator.get_params(deep=False).items())}
    return {
        name: value
        for name, value in given.items()
        if is_plain(value) or is_weights(value) or (is_listed(value) and name != "teacher")
    }


def written_parameters(estimator: Any) -> dict[str, Any]:
    """Return parameters as a model file can have them: weights of labels as pairs, for there keys are text.

    Examples
    --------
    >>> from treewright import TAOClassifier
    >>> written_parameters(TAOClassifier(class_weight={True: 3, False: 1}))["class_weight"]
    [[True, 3], [False, 1]]
    """
    given = plain_parameters(estimator)
    return {name: [list(p) for p in v.items()] if isinstance(v, dict) else v for name, v in given.items()}


def _as_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value.tolist()
    return [plain(v) for v in value] if isinstance(value, list | tuple) else plain(value)


def model_to_dict(estimator: Any) -> dict[str, Any]:
    """Return a fitted estimator as plain data.

    Parameters that have no plain form (a warm-start tree, a RandomState, NaN) are left at their defaults: they shape
    a fit, not the fitted model.
    """
    parameters = written_parameters(estimator).items()
    return {
        "format": FORMAT,
        "version": VERSION,
        "treewright": __version__,
        "estimator": type(estimator).__name__,
        "parameters": {k: v for k, v in parameters if not isinstance(v, float) or math.isfinite(v)},
        "classes": _labels_to_plain(estimator.classes_) if is_classifier(estimator) else None,
        "n_features": int(estimator.n_features_in_),
        "feature_names": _names_to_plain(estimator),
        **_mixed_to_plain(estimator),
        "tree": tree_to_dict(estimator.tree_),
        "record": record_to_dict(estimator.record_),
        "fit": estimator._fitted_state(),
        **({"table": estimator._table} if hasattr(estimator, "_table") else {}),
        **({"numbers": estimator._seen_numbers} if hasattr(estimator, "_seen_numbers") else {}),
    }


def model_from_dict(document: dict[str, Any], known: Mapping[str, type], where: str = "the model") -> Any:
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
    refuse_other_version(document, VERSION, where)
    name = document.get("estimator")
    if not isinstance(name, str) or name not in known:
        raise ModelFileError(f"{where} holds the estimator {name!r}; expected one of {sorted(known)}")
    try:
        estimator = known[name](**_parameters(document, known[name]))
        estimator._validate_params()
        _restore(estimator, document)
    except ModelFileError as error:
        raise ModelFileError(f"{where}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{where} is damaged: {type(error).__name__}: {error}") from error
    return estimator


def refuse_other_version(document: Mapping[str, Any], version: int, where: str) -> None:
    """Refuse a model file of another version, with what to do."""
    if type(document.get("version")) is not int or document["version"] != version:
        writer = document.get("treewright")
        raise ModelFileError(
            f"{where} has version {shown(document.get('version'))}, this treewright ({__version__}) reads {version}; "
            "fit the model again, or read it with the treewright that wrote it"
            + (f" ({shown(writer)})" if isinstance(writer, str) else "")
        )


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
    _restore_mixed(estimator, document)
    if not isinstance(document["fit"], dict):
        raise ModelFileError("fit must be an object")
    vars(estimator).update(
        course_attributes(record_from_dict(document["record"], estimator._bounded, estimator._local))
    )
    estimator._restore_state(document["fit"])
    if document.get("table") is not None:
        table_notes(document["table"], n_features)
        estimator._table = document["table"]
    if document.get("numbers") is not None:
        estimator._seen_numbers = SeenNumbers.from_list(document["numbers"], n_features).to_list()
    # what only some estimators have
    for member in getattr(estimator, "trees_", []):
        _check_tree(member, len(estimator.classes_), n_features)
    if hasattr(estimator, "totals_"):
        _check_totals(estimator.totals_, estimator.classes_.tolist())


def _mixed_to_plain(estimator: Any) -> dict[str, Any]:
    """Levels and gaps of the features as a file has them; nothing for numbers without gaps."""
    levels, gaps = getattr(estimator, "categories_", None), getattr(estimator, "has_missing_", None)
    if levels is None and (gaps is None or not gaps.any()):
        return {}
    features = Features.numerical(int(estimator.n_features_in_)) if levels is None else Features(tuple(levels), ())
    return {"categories": features.to_list(), "has_missing": estimator.has_missing_.tolist()}


def _restore_mixed(estimator: Any, document: dict[str, Any]) -> None:
    """Set levels and gaps of the features; refuse those of an estimator that knows none, and splits without levels."""
    n_features, tree = estimator.n_features_in_, estimator.tree_
    features, gaps = Features.numerical(n_features), [False] * n_features
    if "categories" in document or "has_missing" in document:
        gaps = document["has_missing"]
        features = Features.from_list(document["categories"], [str(j) for j in range(n_features)])
        if not isinstance(gaps, list) or len(gaps) != n_features or not all(type(v) is bool for v in gaps):
            raise ModelFileError(f"has_missing must be {n_features} times true or false")
    if not hasattr(estimator, "categorical_features"):
        if "categories" in document or np.any(tree.category >= 0):
            raise ModelFileError("the estimator knows no categorical features")
        return
    levels = list(features.levels)
    for node in np.flatnonzero(tree.category >= 0).tolist():
        known = levels[tree.category[node]]
        if known is None or np.any(tree.left_categories[node, len(known) :]):
            raise ModelFileError(f"node {node} has a categorical split with levels that categories do not have")
    estimator.categories_ = levels if any(known is not None for known in levels) else None
    estimator.has_missing_ = np.array(gaps, dtype=bool)


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
    given = {name: _weights(value, name) if _may_be_dict(kind, name) else value for name, value in given.items()}
    unusable = [n for n, value in given.items() if n not in accepted or not _usable(value, kind, n)]
    if unusable:
        raise ModelFileError(f"unknown or unusable parameters {listing(sorted(unusable))}")
    for name, value in given.items():
        # to scikit-learn's checks True is the number 1
        if isinstance(value, bool) and not _may_be_bool(kind, name):
            raise ModelFileError(f"parameter {name!r} is {value}, expected a number or text")
    return dict(given)


def _usable(value: Any, kind: Any, name: str) -> bool:
    return is_plain(value) or is_listed(value) or (is_weights(value) and _may_be_dict(kind, name))


def _may_be_dict(kind: Any, name: str) -> bool:
    allowed = kind._parameter_constraints.get(name, "no_validation")
    return not isinstance(allowed, str) and dict in allowed


def _weights(value: Any, name: str) -> Any:
    """Weights of labels from their pairs; a plain value stays as it is."""
    if is_plain(value):
        return value
    pairs = value if isinstance(value, list) else [value]
    if not all(isinstance(pair, list) and len(pair) == 2 and _is_label(pair[0]) for pair in pairs):
        raise ModelFileError(f"parameter {name!r} must be a list of pairs of a label and its weight")
    found = {label: weight for label, weight in value}
    if len(found) < len(value):
        raise ModelFileError(f"parameter {name!r} has a label twice")
    for label, weight in value:
        if not is_number(weight) or weight < 0:
            raise ModelFileError(f"parameter {name!r} has {weight!r} for {label!r}, expected a number from 0 on")
    return found


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
