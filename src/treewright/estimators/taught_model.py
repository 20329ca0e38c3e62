"""What the estimators share that may learn from a teacher and know no totals: the parameter ``teacher``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import HasMethods, StrOptions

from treewright.estimators.parameters import parameter, parameters
from treewright.estimators.tree_model import TreeModel
from treewright.teachers.record import teacher_record_from_dict, teacher_record_to_dict

if TYPE_CHECKING:
    from treewright.teachers.record import TeacherRecord

__all__ = ["TaughtModel"]


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
        taught = {"teacher": teacher_record_to_dict(self.teacher_)} if hasattr(self, "teacher_") else {}
        return super()._fitted_state() | taught

    def _restore_state(self, state: dict[str, Any]) -> None:
        super()._restore_state(state)
        if state.get("teacher") is not None:
            self.teacher_ = teacher_record_from_dict(state["teacher"])
