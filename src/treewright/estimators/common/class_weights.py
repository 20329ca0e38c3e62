"""Weights of classes: factors of the weights of rows, as in scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import StrOptions

from treewright.arrays import FloatArray
from treewright.data import Problem
from treewright.data._checks import plain, show
from treewright.estimators.common.model import Model
from treewright.estimators.common.parameters import parameter, parameters
from treewright.estimators.common.record_files import is_number
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
        weight = class_weighted(problem.weight, self.class_weight, problem.classes[problem.y])
        if not weight.any():
            raise InvalidInputError("all weights are zero; at least one row must count")
        with np.errstate(over="ignore"):
            if not np.isfinite(weight.sum()):
                raise InvalidInputError(
                    f"the weights sum to infinity, the largest is {show(weight.max())}; divide all of class_weight"
                )
        return replace(problem, weight=weight)


def class_weighted(weight: FloatArray, class_weight: Any, labels: np.ndarray) -> FloatArray:
    """Weights of rows times those of their classes, as in scikit-learn; factors that are no weights are refused."""
    if isinstance(class_weight, dict):
        for label, factor in class_weight.items():
            if not is_number(plain(factor)) or factor < 0:
                raise InvalidInputError(
                    f"class_weight has {show(factor)} for class {show(label)}; expected a finite number from 0 on"
                )
    return np.asarray(weight * compute_sample_weight(class_weight, labels))
