"""The parameter ``teacher`` of estimators: what may be given, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils._param_validation import HasMethods, StrOptions

from treewright.data import Problem
from treewright.estimators.parameters import parameter, parameters
from treewright.estimators.tree_model import TreeModel
from treewright.exceptions import InvalidInputError, ModelFileError

if TYPE_CHECKING:
    from treewright.data.teacher_record import TeacherRecord
    from treewright.teachers.given import GivenTeacher, TableTeacher

__all__ = ["TaughtModel", "read_teacher", "teacher_state", "given_teacher_of"]


class _HasTeacher:
    teacher_: TeacherRecord | None


@parameters
class TaughtModel(_HasTeacher, TreeModel):
    """Mixin of the classifiers that may learn from a teacher and know no totals.

    Parameters
    ----------
    teacher : None, "auto", classifier, regressor or array-like
        Whom the tree learns from. "auto" pools logistic regression, a tree, forests, some trees that see principal
        components too, boosting, a kernel machine, discriminant analysis and naive Bayes by how likely they find labels
        left out, or CART alone where that finds more of them; ``teacher_`` says how each did. An estimator of
        scikit-learn is fitted on the labelled rows, features scaled to [0, 1]; it gets a sparse X or missing values
        where its tags say that it takes them, else numbers with means in the place of gaps and a column for each level
        of a category. An array has a label for each row, or a row of probabilities in the order of ``classes_``; what
        it has for labelled rows does not matter.

    Attributes
    ----------
    teacher_ : TeacherRecord
        What the teacher was, and how it scored on labels left out; only with a teacher.
    """

    teacher: Any = parameter(
        default=None, allowed=[None, StrOptions({"auto"}), HasMethods(["fit", "predict"]), "array-like"]
    )

    def _fitted_state(self) -> dict[str, Any]:
        taught = {"teacher": teacher_state(self.teacher_)} if hasattr(self, "teacher_") else {}
        return super()._fitted_state() | taught

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if state.get("teacher") is not None:
            self.teacher_ = read_teacher(state["teacher"])


def given_teacher_of(teacher: Any, problem: Problem, seed: int) -> GivenTeacher | None:
    """What a teacher says, by the parameter of that name; None for the one that is made of the points themselves.

    Parameters
    ----------
    teacher : "auto", classifier, regressor or array-like
        An estimator is fitted on the labelled rows. An array has a label of each row, or a row of scores in the order
        of the classes; those of labelled rows do not matter.
    problem : Problem
        The rows.
    seed : int
        Seed of an estimator that has none.
    """
    from treewright.teachers.given import EstimatorTeacher
    from treewright.totals.scores import response_of

    if isinstance(teacher, str) and teacher == "auto":
        return None
    if hasattr(teacher, "fit"):
        if not is_regressor(teacher) and (not is_classifier(teacher) or response_of(type(teacher)) is None):
            raise InvalidInputError(
                f"teacher {type(teacher).__name__} must be a classifier with predict_proba or decision_function, "
                "or a regressor"
            )
        return EstimatorTeacher(teacher, seed)
    return _given(np.asarray(teacher), problem)


def _given(told: np.ndarray, problem: Problem) -> TableTeacher:
    from treewright.teachers.given import TableTeacher

    n, n_classes = len(problem.X), problem.n_classes
    if told.ndim == 2:
        if told.shape != (n, n_classes):
            raise InvalidInputError(
                f"teacher has shape {told.shape}; {n} rows and {n_classes} classes need {(n, n_classes)}"
            )
        table = told.astype(np.float64)
        if not np.all(np.isfinite(table[problem.unlabelled])):
            raise InvalidInputError("teacher has scores that are not finite, of unlabelled rows")
        return TableTeacher(table, "probabilities")
    if told.shape != (n,):
        raise InvalidInputError(f"teacher has shape {told.shape}; there are {n} rows")
    hidden = told[problem.unlabelled]
    known = {label: k for k, label in enumerate(problem.classes.tolist())}
    numbers = np.array([known.get(label, -1) for label in hidden.tolist()], dtype=np.int64)
    if np.any(numbers < 0):
        strange = hidden[numbers < 0].tolist()[0]
        raise InvalidInputError(f"teacher has the label {strange!r} for an unlabelled row, which is not a class")
    table = np.zeros((n, n_classes))
    table[np.flatnonzero(problem.unlabelled), numbers] = 1.0
    return TableTeacher(table, "labels")


# ---------------------------------------------------------------------- model files


def teacher_state(record: TeacherRecord | None) -> dict[str, Any] | None:
    """A record as plain data; what was not measured is None."""
    if record is None:
        return None
    members = [
        {"name": m.name, "share": m.share, "score": _measured(m.score), "right": _measured(m.right)}
        for m in record.members
    ]
    return {"name": record.name, "members": members, "refined": record.refined, "right": _measured(record.right)}


def _measured(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def read_teacher(state: Any) -> TeacherRecord | None:
    """The record of plain data."""
    from treewright.data.teacher_record import TeacherMember, TeacherRecord

    if state is None:
        return None
    try:
        # files of before have not all of it
        members = tuple(
            TeacherMember(str(m["name"]), float(m["share"]), _number(m["score"]), _number(m.get("right")))
            for m in state["members"]
        )
        return TeacherRecord(str(state["name"]), members, float(state["refined"]), _number(state.get("right")))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"teacher cannot be read: {error}") from None
