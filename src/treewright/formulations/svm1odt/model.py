r"""SVM1-ODT: the 1-norm support vector tree (Zhu, Murali, Phan, Nguyen, Kalagnanam 2020).

A split is a hyperplane over the numerical features, with value :math:`f_b(x) = g_b - h_b^\top x`, which sends x left
where :math:`f_b(x) \ge 0`, or a set of levels of one categorical feature. A tree costs

.. math::
    \sum_i w_i [T(x_i) \ne y_i]
    + \alpha_1 \sum_i s_i \sum_{b\ numerical,\ on\ the\ way\ of\ i} [\epsilon - |f_b(x_i)|]^+
    + \alpha_2 \sum_b \lVert h_b \rVert_1 ,

where :math:`w_i` is the weight of a point and :math:`s_i` the number of rows it stands for: equal rows of a class that
are merged into one point, their weights and sizes added, cost the same. A categorical split has no margin, hence no
hinge error; the paper's (1a) sums over all features, of which (8a) and (8f) let a categorical split have exactly one
with :math:`h_{bj} = 1`, so it pays :math:`\alpha_2`. A point that lacks a value which a split uses goes to the side
that the split has for missing values and pays no hinge error there, as it has no distance.

Feasible trees
--------------
1. *The scale is bounded* (M = 1 of Theorem 2): :math:`|f_b(x_i)| \le 1` at every numerical split for every point whose
   values there are known, also if it never reaches b, and :math:`|h_{bj}| \le H`.
2. *Nothing lies on a split*: :math:`|f_b(x_i)| \ge \mu` for the points that reach b. Without it the program is not
   about trees: a point with :math:`f_b(x_i) = 0` may go to either side there, while a tree sends it left.
   The hinge error that it pays does not prevent that: with 100 points of class 0 at x = 0, 100 of class 1 at x = 1, one
   of each at x = 0.5, :math:`\epsilon = \alpha_1 = 1` and :math:`\alpha_2 = 0`, the printed program of depth 1 costs 2
   and claims no error, while every tree costs at least 3. :math:`\mu` is the small `tolerance` that makes sides a
   matter of fact for every solver.
3. With :math:`\alpha_1 = \alpha_2 = 0` (Proposition 2 is about this case) margins would cost nothing and mean nothing:
   there :math:`\mu = \epsilon`, a hard margin.
4. The depth is at most D. A split with :math:`h_b = 0` and :math:`|g_b| \ge \epsilon` sends all points one way at no
   cost: shallower trees are feasible.

Routing does not depend on the scale of a split, so that most trees are feasible once their splits are scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.arrays import BoolArray, FloatArray, IntArray
from treewright.exceptions import InvalidInputError
from treewright.formulations.svm1odt.measure import hinge_errors, members, split_norm, split_values
from treewright.tree import Tree
from treewright.tree.measure import weighted_error

__all__ = ["SVM1ODT"]


@dataclass(frozen=True)
class SVM1ODT:
    """SVM1-ODT on given data.

    Parameters
    ----------
    X : ndarray of shape (n_points, n_features)
        Numerical features scaled to [0, 1], categorical ones as codes 0, 1, 2, ...; NaN where a value is missing.
    y : ndarray of int, shape (n_points,)
        Class numbers.
    weight : ndarray of shape (n_points,)
        Weights of the errors.
    n_classes : int
        Number of classes.
    depth : int
        Depth of the tree, at most.
    epsilon : float
        The margin below which a point pays a hinge error, in (0, 1].
    alpha_1 : float
        Price of the hinge errors; ``alpha_1 * epsilon >= 1``, or 0 together with `alpha_2` for a hard margin.
    alpha_2 : float
        Price of the 1-norm of the splits.
    size : ndarray of shape (n_points,) or None
        Rows that a point stands for, which multiply its hinge errors; 1 each by default.
    categorical : ndarray of bool, shape (n_features,), or None
        Which features are categorical; none by default.
    levels : ndarray of int, shape (n_features,), or None
        Number of levels of each categorical feature, 0 for numerical ones; by default as many as there are codes.
    max_coefficient : float
        H, the bound of every entry of a normal.
    tolerance : float
        The distance mu that points keep from the splits they reach, at most `epsilon`.

    Examples
    --------
    A stump whose margin one point misses:

    >>> import numpy as np
    >>> X, y = np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([0, 0, 0, 1])
    >>> model = SVM1ODT(X, y, np.ones(4), n_classes=2, depth=1, epsilon=0.25, alpha_1=4.0, alpha_2=0.5)
    >>> tree = Tree.stump([1.0], 0.75, [[3.0, 0.0], [0.0, 1.0]])
    >>> round(model.objective(tree), 12)  # 4 * (0.25 - 0.15) + 0.5 * 1
    0.9
    """

    X: FloatArray
    y: IntArray
    weight: FloatArray
    n_classes: int
    depth: int = 2
    epsilon: float = 0.01
    alpha_1: float = 1000.0
    alpha_2: float = 0.1
    size: FloatArray | None = None
    categorical: BoolArray | None = None
    levels: IntArray | None = None
    max_coefficient: float = 10.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        n, p = self.X.shape
        defaults = {
            "size": np.ones(n),
            "categorical": np.zeros(p, dtype=bool),
        }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        self._refuse_parameters()
        self._refuse_data()

    # ------------------------------------------------------------------ what is refused

    def _refuse_parameters(self) -> None:
        if self.n_classes < 1 or self.depth < 1:
            raise InvalidInputError(f"{self.n_classes} classes and depth {self.depth}: at least 1 and 1 are needed")
        if not 0 < self.tolerance <= self.epsilon <= 1:
            raise InvalidInputError(
                f"epsilon={self.epsilon} must be in (0, 1] and no smaller than tolerance={self.tolerance}"
            )
        if not self.max_coefficient > 0 or not 0 <= self.alpha_2 < np.inf or not 0 <= self.alpha_1 < np.inf:
            raise InvalidInputError(
                f"alpha_1={self.alpha_1}, alpha_2={self.alpha_2} must not be negative, "
                f"max_coefficient={self.max_coefficient} must be positive"
            )
        # The product of 1000 and 0.001 may be a rounding error below 1.
        if not self.hard and self.alpha_1 * self.epsilon < 1 - 1e-9:
            raise InvalidInputError(
                f"alpha_1 * epsilon = {self.alpha_1 * self.epsilon:.3g} is below 1: a point inside the margin would be "
                f"cheaper than an error; use alpha_1 >= {1 / self.epsilon:.6g}, a larger epsilon, or alpha_1 = alpha_2 "
                "= 0 for a hard margin"
            )

    def _refuse_data(self) -> None:
        n, p = self.X.shape
        for name, shape in [("y", n), ("weight", n), ("size", n), ("categorical", p)]:
            if np.shape(getattr(self, name)) != (shape,):
                raise InvalidInputError(f"{name} has shape {np.shape(getattr(self, name))}, expected ({shape},)")
        if n == 0:
            raise InvalidInputError("there are no points")
        if np.any(self.y < 0) or np.any(self.y >= self.n_classes):
            raise InvalidInputError(f"y must be class numbers from 0 to {self.n_classes - 1}")
        for name in ("weight", "size"):
            value = getattr(self, name)
            if not np.all(np.isfinite(value)) or np.any(value < 0):
                raise InvalidInputError(f"{name} must be finite and not negative")
        if np.isinf(self.X).any():
            raise InvalidInputError("X has infinite values")
        self._set_levels()

    def _set_levels(self) -> None:
        """Check the codes, and count them where the number of levels is not given."""
        categorical = self.is_categorical
        codes = self.X[:, categorical]
        known = codes[~np.isnan(codes)]
        if np.any(known < 0) or np.any(known != np.floor(known)):
            raise InvalidInputError("categorical features must be codes 0, 1, 2, ..., or NaN where missing")
        counted = np.zeros(self.X.shape[1], dtype=np.int64)
        counted[categorical] = np.nan_to_num(codes, nan=-1.0).max(axis=0, initial=-1.0) + 1
        levels = counted if self.levels is None else np.where(categorical, self.levels, 0)
        if np.any(levels < counted):
            j = int(np.argmax(levels < counted))
            raise InvalidInputError(f"feature {j} has {levels[j]} levels, but the code {counted[j] - 1} occurs")
        object.__setattr__(self, "levels", levels)

    # ------------------------------------------------------------------ data and constants

    @property
    def is_categorical(self) -> BoolArray:
        """Which features are categorical."""
        assert self.categorical is not None
        return self.categorical

    @property
    def sizes(self) -> FloatArray:
        """Rows that each point stands for."""
        assert self.size is not None
        return self.size

    @property
    def hard(self) -> bool:
        """Whether the margin is hard: nothing but errors counts."""
        return self.alpha_1 == 0 and self.alpha_2 == 0

    @property
    def margin(self) -> float:
        """The distance mu that points keep from the splits they reach."""
        return self.epsilon if self.hard else self.tolerance

    # ------------------------------------------------------------------ any tree measured

    def objective(self, tree: Tree) -> float:
        """Objective of a tree of any shape, computed from the tree and the data alone.

        It is the formula above for the splits as they are scaled, whether the tree is feasible or not.
        """
        if np.any(tree.weights[:, self.is_categorical] != 0.0):
            raise InvalidInputError("the tree has a numerical split that uses a categorical feature")
        value = weighted_error(tree, self.X, self.y, self.weight) + self.alpha_2 * split_norm(tree)
        if self.alpha_1 > 0:
            for node, inside in members(tree, self.X):
                if tree.category[node] < 0:
                    error = hinge_errors(split_values(tree, self.X[inside], node), self.epsilon)
                    value += self.alpha_1 * float(self.sizes[inside] @ error)
        return value
