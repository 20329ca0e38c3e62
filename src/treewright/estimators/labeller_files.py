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

from treewright._version import __version__
from treewright.estimators.c2rf import C2RFClassifier
from treewright.estimators.common.frames import blank_rows
from treewright.estimators.common.totals_model import PricedModel
from treewright.estimators.totals import TotalsClassifier
from treewright.exceptions import ModelFileError
from treewright.files import replacing
from treewright.tree.json_files import MAX_BYTES, parse_json

__all__ = ["TRUSTED", "is_labeller_file", "read_labeller", "write_labeller"]

FORMAT = "treewright-labeller"
VERSION = 1
_DOCUMENT, _LABELLER = "model.json", "labeller.skops"
_MAX_LABELLER = 2**31
"""Bytes of the classifier, unpacked."""

TRUSTED = frozenset(
    {
        "scipy.sparse._csr.csr_array",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.tree._tree.Tree",
        "treewright.estimators.c2rf.C2RFClassifier",
        "treewright.estimators.totals.TotalsClassifier",
        "treewright.search.teachers.classifier.TaughtScores",
        "treewright.search.teachers.classifier.TeacherClassifier",
        "treewright.search.teachers.lesson.Lesson",
        "treewright.search.teachers.members.Fitted",
        "treewright.search.teachers.teacher.Teacher",
        "treewright.search.teachers.teacher.TeacherMember",
        "treewright.search.teachers.teacher.TeacherRecord",
        "treewright.search.teachers.teacher.Voter",
        "treewright.search.totals.scores.ClassScores",
        "treewright.search.totals.scores.Novelty",
        "treewright.training.ensemble.Member",
        "treewright.training.ensemble.Members",
        "treewright.training.record.FitRecord",
    }
)
"""Types that a file may hold beside the estimators of scikit-learn and the arrays that skops trusts by itself."""


def is_labeller_file(path: str | Path) -> bool:
    """Whether a file begins as a zip does, as those of this module do and JSON does not.

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
    """Write a fitted classifier, without its training rows, and plain data beside it; entirely or not at all."""
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
    if document.get("version") != VERSION:
        raise ModelFileError(f"{where} has version {document.get('version')!r}, this treewright reads {VERSION}")
    return _trusted(content, f"{where}: {_LABELLER}"), document


def _trusted(content: bytes, where: str) -> PricedModel:
    """The classifier, once all its types are known; a trial says whether it is whole."""
    import skops.io

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_LABELLER:
                raise ModelFileError(f"{where}: it is too large")
        strange = sorted(set(skops.io.get_untrusted_types(data=content)) - TRUSTED)
        if strange:
            raise ModelFileError(
                f"{where} holds {', '.join(strange)}, which no model of treewright does; it is not read"
            )
        model = skops.io.loads(content, trusted=sorted(TRUSTED))
        if type(model) not in (TotalsClassifier, C2RFClassifier):
            raise ModelFileError(
                f"{where} holds a {type(model).__name__}, expected a TotalsClassifier or a C2RFClassifier"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shares = model.predict_proba(blank_rows(model, 2))
        if shares.shape != (2, len(model.classes_)) or not isinstance(model.totals_, list):
            raise ModelFileError(f"{where} is damaged: it has not one score a class")
    except ModelFileError:
        raise
    except Exception as error:  # whatever a damaged state leads to in skops and scikit-learn
        raise ModelFileError(f"{where} is damaged: {type(error).__name__}: {error}") from error
    return model
