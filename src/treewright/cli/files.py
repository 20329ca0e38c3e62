"""Files of the command line: models that know their table, and outputs that are checked before the work."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from treewright.data._checks import AnyArray
from treewright.data.mixed_table import MixedEncoder
from treewright.data.table import Table, TableEncoder
from treewright.estimators.common.files import model_from_dict, model_to_dict
from treewright.estimators.registry import SHORT_NAMES
from treewright.exceptions import InvalidInputError, ModelFileError
from treewright.files import is_special
from treewright.tree.json_files import read_json, write_json

__all__ = ["TableModel", "check_outputs"]


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator, and how to make its features from a table."""

    estimator: Any
    """The fitted estimator."""
    encoder: TableEncoder | MixedEncoder | None = None
    """The latter for models that take categories and gaps as they are; None for one that was not fitted to a table."""
    target: str | None = None
    """Column that the model predicts, if it has a name."""
    na: tuple[str, ...] = ()
    """Values of the table that mean missing, beside the usual ones."""

    @classmethod
    def read(cls, path: str) -> TableModel:
        """Read a model file, or raise ModelFileError."""
        try:
            document = read_json(path)
        except FileNotFoundError:
            raise ModelFileError(f"{path}: there is no such file") from None
        known = {kind.__name__: kind for kind in SHORT_NAMES.values()}
        estimator = model_from_dict(document, known, where=path)
        table = document.get("table")
        if table is None:
            return cls(estimator)
        if not isinstance(table, dict) or set(table) - {"na"} != {"target", "encoder"}:
            raise ModelFileError(f"{path}: table: expected an object with a target and an encoder")
        if not isinstance(table["target"], str):
            raise ModelFileError(f"{path}: table.target: expected a string")
        na = table.get("na", [])
        if not isinstance(na, list) or not all(isinstance(value, str) for value in na):
            raise ModelFileError(f"{path}: table.na: expected a list of strings")
        mixed = isinstance(table["encoder"], dict) and "kinds" in table["encoder"]
        kind: Any = MixedEncoder if mixed else TableEncoder
        encoder = kind.from_dict(table["encoder"], where=f"{path}: table.encoder")
        if len(encoder.feature_names) != estimator.n_features_in_:
            raise ModelFileError(
                f"{path}: table.encoder has {len(encoder.feature_names)} features, the tree {estimator.n_features_in_}"
            )
        return cls(estimator, encoder, table["target"], tuple(na))

    def write(self, path: str) -> None:
        """Write a model file, which ``treewright.load_model`` reads too."""
        document = model_to_dict(self.estimator)
        if self.encoder is not None:
            document["table"] = {"target": self.target, "encoder": self.encoder.to_dict(), "na": list(self.na)}
        write_json(path, document)

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if they have any."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def features_of(self, table: Table) -> AnyArray:
        """Return the features of a table: by the encoder, else by the names, else all columns in order."""
        encoder = self.encoder
        if encoder is None:
            names = self.feature_names or list(table.columns)
            if len(names) != self.estimator.n_features_in_:
                raise InvalidInputError(
                    f"the model has {self.estimator.n_features_in_} features without names, the table "
                    f"{len(names)} columns"
                )
            encoder = TableEncoder(dict.fromkeys(names))
            if hasattr(self.estimator, "categories_"):
                encoder = MixedEncoder(dict(zip(names, self._kinds(), strict=True)))
        return encoder.transform(table)[0]

    @property
    def several_trees(self) -> bool:
        """Whether there is a tree a class, so that rows have no one leaf."""
        return hasattr(self.estimator, "relabel") and len(self.estimator.trees_) > 1

    def _kinds(self) -> list[str]:
        """Kinds of the columns of an estimator that takes categories as they are."""
        known = self.estimator.categories_ or [None] * self.estimator.n_features_in_
        return ["text" if levels and isinstance(levels[0], str) else "number" for levels in known]

    def prediction_columns(
        self, table: Table, X: AnyArray, predicted: AnyArray | None = None, shares: AnyArray | None = None
    ) -> dict[str, np.ndarray]:
        """Return predictions as columns: row, the target as given, prediction, shares of classes, leaf.

        `predicted` and `shares` take the place of what the estimator predicts for each row.
        """
        estimator = self.estimator
        shares = estimator.predict_proba(X) if shares is None else shares
        columns: dict[str, np.ndarray] = {"row": np.arange(1, len(X) + 1)}
        made = {
            "prediction": estimator.predict(X) if predicted is None else predicted,
            **{f"share_{label}": shares[:, k] for k, label in enumerate(estimator.classes_.tolist())},
        }
        if not self.several_trees:
            made["leaf"] = estimator.apply(X)
        if self.target is not None and self.target in table.columns:
            name = self.target
            while name in columns or name in made:
                name = f"given_{name}"
            columns[name] = table[self.target]
        return columns | made


def check_outputs(outputs: Mapping[str, str | None], data: str) -> None:
    """Refuse outputs that could not be written, before any work is done for them.

    Parameters
    ----------
    outputs : mapping of str to (str or None)
        Option and path; None for an option that is not given.
    data : str
        Path of the input table, which must not be overwritten.
    """
    taken = {os.path.realpath(data): "DATA"}
    for option, path in outputs.items():
        if path is None:
            continue
        if is_special(path):  # written to as it is, which can be tried only by doing it
            if not os.access(path, os.W_OK):
                raise InvalidInputError(f"{option} {path}: cannot be written: Permission denied")
            continue
        real = Path(os.path.realpath(path))
        other = taken.setdefault(str(real), option)
        if other != option:
            raise InvalidInputError(f"{option} {path}: this is the same file as {other}")
        if not real.parent.is_dir():
            raise InvalidInputError(f"{option} {path}: there is no folder {Path(path).parent}; make it first")
        if real.exists() and not real.is_file():
            raise InvalidInputError(f"{option} {path}: exists and is not a regular file")
        try:
            if real.exists() and not os.access(real, os.W_OK):
                raise PermissionError(13, "the file is read-only")
            with tempfile.TemporaryFile(dir=real.parent):
                pass
        except OSError as error:
            raise InvalidInputError(f"{option} {path}: cannot be written: {error.strerror}") from error
