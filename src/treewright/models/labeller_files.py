"""Model files of `TotalsClassifier` and `C2RFClassifier`: a zip with a JSON document of ours and what skops wrote.

Estimators of scikit-learn have no plain form. skops writes them by name of type and reads back types that are trusted
alone, without running anything else; pickle would run what a file says.
"""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from treewright._version import __version__
from treewright.core.files import replacing
from treewright.data.seen_numbers import SeenNumbers
from treewright.estimators.files import refuse_other_version
from treewright.estimators.fitted_trees import check_trees
from treewright.estimators.frames import blank_rows
from treewright.estimators.totals_model import PricedModel
from treewright.exceptions import ModelFileError
from treewright.models.c2rf.estimator import C2RFClassifier
from treewright.models.totals.estimator import TotalsClassifier
from treewright.tree.json_files import MAX_BYTES, parse_json

__all__ = ["TRUSTED", "is_labeller_file", "read_labeller", "write_labeller"]

FORMAT = "treewright-labeller"
VERSION = 1
_DOCUMENT, _LABELLER = "model.json", "labeller.skops"
_MAX_LABELLER = 2**31
"""Bytes of the classifier, unpacked."""
_TRIAL = 50
"""Rows that a model is asked for as soon as it is read."""

TRUSTED = frozenset(
    {
        "sklearn._loss._loss.CyHalfBinomialLoss",
        "sklearn._loss._loss.CyHalfMultinomialLoss",
        "sklearn._loss.link.Interval",
        "sklearn._loss.link.LogitLink",
        "sklearn._loss.link.MultinomialLogit",
        "sklearn._loss.loss.HalfBinomialLoss",
        "sklearn._loss.loss.HalfMultinomialLoss",
        "sklearn.ensemble._forest.ExtraTreesClassifier",
        "sklearn.ensemble._forest.ExtraTreesRegressor",
        "sklearn.ensemble._forest.RandomForestClassifier",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.linear_model._logistic.LogisticRegression",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.preprocessing._label.LabelEncoder",
        "sklearn.tree._classes.DecisionTreeClassifier",
        "sklearn.tree._classes.ExtraTreeClassifier",
        "sklearn.tree._classes.ExtraTreeRegressor",
        "sklearn.tree._tree.Tree",
        "treewright.models.c2rf.estimator.C2RFClassifier",
        "treewright.models.totals.estimator.TotalsClassifier",
        "treewright.teachers.record.TeacherMember",
        "treewright.teachers.record.TeacherRecord",
        "treewright.teachers.classifier.TaughtScores",
        "treewright.teachers.classifier.TeacherClassifier",
        "treewright.teachers.kernel_machine.KernelMachine",
        "treewright.teachers.points.TeacherPoints",
        "treewright.teachers.members.Fitted",
        "treewright.teachers.teacher.Teacher",
        "treewright.teachers.teacher.Voter",
        "treewright.totals.scores.ClassScores",
        "treewright.totals.scores.LearnedNovelty",
        "treewright.teachers.ensemble.Member",
        "treewright.teachers.ensemble.Members",
        "treewright.optimize.record.FitRecord",
    }
)
"""Types that a file may hold beside plain values and arrays: those that the command line fits. skops would trust all of
scikit-learn, of which much takes its fitted state on trust in compiled code."""
_PLAIN = ("builtins.", "numpy.")


def is_labeller_file(path: str | Path) -> bool:
    """Whether a model file begins as a zip does: those of TotalsClassifier and C2RF do, JSON does not.

    Examples
    --------
    >>> is_labeller_file(os.devnull)
    False
    """
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def write_labeller(path: str | Path, labeller: PricedModel, document: dict[str, Any]) -> None:
    """Write a fitted TotalsClassifier or C2RF, without training rows, and plain data beside it; all or nothing."""
    import skops.io  # half a second, for those who need it

    content = skops.io.dumps(labeller._without_rows(), compression=zipfile.ZIP_DEFLATED)
    head = {"format": FORMAT, "version": VERSION, "treewright": __version__}
    text = json.dumps({**head, **document}, allow_nan=False, ensure_ascii=False).encode("utf-8")
    packed = io.BytesIO()  # what is written to may be a pipe
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(_DOCUMENT, text)
        archive.writestr(_LABELLER, content)
    with replacing(path) as file:
        file.write(packed.getvalue())


def read_labeller(path: str | Path) -> tuple[PricedModel, dict[str, Any]]:
    """Read what :func:`write_labeller` wrote, or raise ModelFileError; nothing that is not trusted is made."""
    where = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
            if sorted(sizes) != sorted((_DOCUMENT, _LABELLER)) or len(archive.infolist()) != 2:
                raise ModelFileError(f"{where}: expected {_DOCUMENT} and {_LABELLER} in it, and nothing else")
            if sizes[_DOCUMENT] > MAX_BYTES or sizes[_LABELLER] > _MAX_LABELLER:
                raise ModelFileError(f"{where}: what is in it is too large")
            text, content = archive.read(_DOCUMENT), archive.read(_LABELLER)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelFileError(f"{where} is damaged: {error}") from error
    document = parse_json(text, where=f"{where}: {_DOCUMENT}")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{where} is not a treewright model: its format is not {FORMAT!r}")
    refuse_other_version(document, VERSION, where)
    return _trusted(content, f"{where}: {_LABELLER}"), document


def _trusted(content: bytes, where: str) -> PricedModel:
    """The classifier, once all its types are known; a trial says whether it is whole."""
    import skops.io

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_LABELLER:
                raise ModelFileError(f"{where}: it is too large")
        named = {name for name in _types(content) if not name.startswith(_PLAIN)}
        strange = sorted((named | set(skops.io.get_untrusted_types(data=content))) - TRUSTED)
        if strange:
            raise ModelFileError(
                f"{where} holds {', '.join(strange)}, which no model of treewright does; it is not read"
            )
        model = skops.io.loads(content, trusted=sorted(TRUSTED))
        if type(model) not in (TotalsClassifier, C2RFClassifier):
            raise ModelFileError(
                f"{where} holds a {type(model).__name__}, expected a TotalsClassifier or a C2RFClassifier"
            )
        check_trees(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _try(model)
    except ModelFileError as error:
        raise ModelFileError(str(error) if str(error).startswith(where) else f"{where}: {error}") from error
    except Exception as error:  # whatever a damaged state leads to in skops and scikit-learn
        raise ModelFileError(f"{where} is damaged: {type(error).__name__}: {error}") from error
    return model


def _try(model: PricedModel) -> None:
    """Ask a model for some rows; raise whatever error if it has not one fine score a class."""
    kept = getattr(model, "_seen_numbers", None)
    if kept is not None:
        SeenNumbers.from_list(kept, len(kept))
    rows, n_classes = _trial_rows(model), len(model.classes_)
    scores, shares, labels = model._class_scores(rows), model.predict_proba(rows), model.predict(rows)
    weights = np.asarray(getattr(model, "weights_", 1.0))
    fine = np.isfinite(scores).all() and bool(np.all(shares >= 0) and np.all(shares <= 1.0 + 1e-9))
    fine = fine and np.all(weights > 0) and np.isfinite(weights).all() and not np.isnan(model._prices).any()
    if len(labels) != _TRIAL or scores.shape != shares.shape or shares.shape != (_TRIAL, n_classes) or not fine:
        raise ValueError("it has not one score a class")
    if not isinstance(model.totals_, list):
        raise TypeError("its totals are no list")


def _trial_rows(model: PricedModel) -> Any:
    """Rows that reach many parts of a model: near 0 and far off."""
    blank = blank_rows(model, _TRIAL)
    if not isinstance(blank, np.ndarray):
        return blank
    return np.random.default_rng(0).standard_cauchy(blank.shape)


def _types(content: bytes) -> set[str]:
    """Types that a file of skops names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        waiting, found = [parse_json(archive.read("schema.json"), where="schema.json")], set[str]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict) and "__class__" in part:
            found.add(f"{part.get('__module__')}.{part['__class__']}")
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    return found
