"""Model files: a fitted estimator as one JSON document, read back without running anything it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from treewright._version import __version__
from treewright.exceptions import ModelFileError
from treewright.tree.serialize import read_json, tree_from_dict, tree_to_dict, write_json

__all__ = ["FORMAT", "VERSION", "model_from_dict", "model_to_dict", "read_model", "write_model"]

FORMAT = "treewright-model"
VERSION = 1

E = TypeVar("E")

_LABEL_KINDS = {"bool": bool, "int": int, "float": float, "str": str}


def model_to_dict(estimator: Any) -> dict[str, Any]:
    """Return a fitted estimator as plain data.

    Parameters that have no plain form (a warm-start tree, a RandomState) are left at their defaults: they shape a
    fit, not the fitted model.
    """
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "version": VERSION,
        "treewright": __version__,
        "estimator": type(estimator).__name__,
        "parameters": {k: v for k, v in sorted(estimator.get_params(deep=False).items()) if _is_plain(v)},
        "classes": _labels_to_plain(estimator.classes_),
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if names is None else [str(n) for n in names],
        "tree": tree_to_dict(estimator.tree_),
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
    if document.get("version") != VERSION:
        raise ModelFileError(f"{where} has version {document.get('version')!r}, this treewright reads {VERSION}")
    name = document.get("estimator")
    if not isinstance(name, str) or name not in known:
        raise ModelFileError(f"{where} holds the estimator {name!r}; expected one of {sorted(known)}")
    try:
        estimator = known[name](**_parameters(document, known[name]))
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
    classes = _labels_from_plain(document["classes"])
    n_features, names = document["n_features"], document["feature_names"]
    if not tree.is_classifier or tree.n_outputs != len(classes):
        raise ModelFileError(f"the tree has {tree.n_outputs} outputs, the model {len(classes)} classes")
    if isinstance(n_features, bool) or n_features != tree.n_features:
        raise ModelFileError(f"the tree has {tree.n_features} features, the model says {n_features!r}")
    estimator.tree_, estimator.classes_, estimator.n_features_in_ = tree, classes, int(n_features)
    if names is not None:
        if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
            raise ModelFileError(f"feature_names must be {n_features} strings")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator._restore_state(document["fit"])


def _parameters(document: dict[str, Any], kind: Any) -> dict[str, Any]:
    given = document["parameters"]
    accepted = kind().get_params(deep=False)
    unknown = set(given) - set(accepted)
    if unknown or not all(_is_plain(v) for v in given.values()):
        raise ModelFileError(f"unknown or unusable parameters {sorted(unknown) or sorted(given)}")
    return dict(given)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _labels_to_plain(classes: np.ndarray) -> dict[str, Any]:
    values = [v.item() if isinstance(v, np.generic) else v for v in classes.tolist()]
    kinds = [type(v).__name__ for v in values]
    if not set(kinds) <= set(_LABEL_KINDS):
        raise ModelFileError(f"labels of type {sorted(set(kinds) - set(_LABEL_KINDS))} cannot be saved")
    return {"dtype": classes.dtype.kind, "values": values}


def _labels_from_plain(data: Any) -> np.ndarray:
    if not isinstance(data, dict) or set(data) != {"dtype", "values"} or not isinstance(data["values"], list):
        raise ModelFileError("classes must have a dtype and a list of values")
    if data["dtype"] not in ("b", "i", "u", "f", "U", "O"):
        raise ModelFileError(f"classes have the unknown dtype {data['dtype']!r}")
    values = data["values"]
    if not values or not all(isinstance(v, (bool, int, float, str)) for v in values) or len(set(values)) < len(values):
        raise ModelFileError("class labels must be distinct booleans, numbers or strings")
    kind = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64, "U": np.str_, "O": np.object_}
    return np.array(values, dtype=kind[data["dtype"]])
