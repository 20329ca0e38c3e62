"""Weights of classes: factors of the weights of rows, as in scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import StrOptions

from treewright.core.arrays import FloatArray, IntArray
from treewright.data import Problem, held_weights
from treewright.data.columns_checked import meant, plain, show
from treewright.estimators.model import Model
from treewright.estimators.parameters import parameter, parameters
from treewright.estimators.record_files import is_number
from treewright.exceptions import InvalidInputError

__all__ = ["ClassWeighted", "class_weighted"]


@parameters
class ClassWeighted(Model):
    """Mixin of the classifiers whose errors may weigh by class.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Factors of the weights of the rows by class, as in scikit-learn; finite numbers from 0 on.
    """

    class_weight: Any = parameter(default=None, allowed=[dict, StrOptions({"balanced"}), None])

    def _class_weighted(self, problem: Problem) -> Problem:
        """The problem with weights times those of the classes; all rows have a label."""
        if self.class_weight is None:
            return problem
        weight = class_weighted(problem.weight, self.class_weight, problem.classes, problem.y)
        if not weight.any():
            raise InvalidInputError("all weights are zero; at least one row must count")
        with np.errstate(over="ignore"):
            if not np.isfinite(weight.sum()):
                raise InvalidInputError(
                    f"the weights sum to infinity, the largest is {show(weight.max())}; divide all of class_weight"
                )
        return replace(problem, weight=held_weights(weight, "class_weight"))


def class_weighted(weight: FloatArray, class_weight: Any, classes: np.ndarray, numbers: IntArray) -> FloatArray:
    """Weights that an estimator gives to rows, times those of their classes, as in scikit-learn.

    Factors that are no weights are refused, and so are names that no class has where some class has no factor: one may
    be meant by the other. With a factor for each class others do no harm, as where a fold has no row of a class.

    Parameters
    ----------
    weight : ndarray of shape (n_rows,)
        Weights of the rows.
    class_weight : dict, "balanced" or None
        The factors; 1 for a class that a dict does not have.
    classes : ndarray of shape (n_classes,)
        All classes of the fit.
    numbers : ndarray of int, shape (n_rows,)
        Class of each row, as its place among them.

    Examples
    --------
    >>> class_weighted(np.ones(2), {"rich": 3}, np.array(["poor", "rich"]), np.array([1, 0])).tolist()
    [3.0, 1.0]
    """
    if not isinstance(class_weight, dict):
        return np.asarray(weight * compute_sample_weight(class_weight, classes[numbers]))
    for label, factor in class_weight.items():
        if not is_number(plain(factor)) or factor < 0:
            raise InvalidInputError(
                f"class_weight has {show(factor)} for class {show(label)}; expected a finite number from 0 on"
            )
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown and not all(label in class_weight for label in known):
        raise InvalidInputError(f"class_weight has {show(unknown[0])}, which is no class; {meant(unknown[0], known)}")
    return np.asarray(weight * np.array([class_weight.get(label, 1.0) for label in known], dtype=np.float64)[numbers])
