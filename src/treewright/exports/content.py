"""What a fitted model says of rows, as plain data that each export writes in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treewright.core.arrays import FloatArray, IntArray
from treewright.core.names import shortened
from treewright.data.columns_checked import listing, plain
from treewright.data.mixed import Level
from treewright.exceptions import InvalidInputError
from treewright.tree import Tree

__all__ = ["AGREED", "SHARE", "Content", "Sum", "added", "plain_labels", "refuse"]

SHARE = 1e-6
"""How much the share of a class in its leaf counts beside the value of a tree of this class against all others."""
AGREED = 1e-6
"""By how much the predicted class is more likely than others that would be as likely."""
_BLOCK = 8


@dataclass(frozen=True)
class Sum:
    """A weighted sum of features, less a threshold, in the order in which predictions add it.

    Attributes
    ----------
    lanes : tuple of tuple of (int, float)
        Features and weights: each lane is added from left to right, then the lanes.
    less : float
        What is subtracted at the end.
    """

    lanes: tuple[tuple[tuple[int, float], ...], ...]
    less: float = 0.0


def added(weights: FloatArray, less: float = 0.0) -> Sum:
    """The sum of a row with these weights, in the order in which numpy's ``einsum`` adds two numbers at a time.

    Features of even and of odd numbers are added apart, from the back within each eight.

    Examples
    --------
    >>> added(np.array([0.1, 0.0, 0.2, 0.3])).lanes
    (((0, 0.1), (2, 0.2)), ((3, 0.3),))
    """
    n = len(weights)
    whole = n - n % _BLOCK
    lanes = []
    for lane in (0, 1):
        order = [first + lane + step for first in range(0, whole, _BLOCK) for step in (6, 4, 2, 0)]
        order += range(whole + lane, n, 2)
        lanes.append(tuple((j, float(weights[j])) for j in order if weights[j] != 0.0))
    return Sum(tuple(lane for lane in lanes if lane), less)


@dataclass(frozen=True, eq=False)
class Content:
    """What a fitted model says of rows.

    Attributes
    ----------
    trees : sequence of Tree
        The tree; of a committee all; of classes against all others one a class.
    names : sequence of str
        Names of the features.
    named : bool
        Whether they are those of the fit, and not made of their numbers.
    levels : sequence of (tuple of levels or None)
        Levels of each categorical feature, None for a numerical one.
    gaps : bool
        Whether numbers may be missing. Categories always may.
    classes : list of labels, or None
        The labels; None for a regression.
    labels : sequence of ndarray of int
        Class number of each node, for each tree; none for a regression.
    shares : sequence of ndarray of shape (n_nodes, n_classes)
        Probabilities of the classes at each node, for each tree; none for a regression.
    way : {"leaf", "votes", "against"}
        How trees are joined: there is one; by most votes and mean probabilities; by the largest value of the last
        split, each tree standing for a class against all others.
    agree : bool
        Whether the predicted class of several trees is made the most likely one.
    level : int
        Level of the last splits of trees of classes against all others.
    rows : sequence of ndarray of shape (n_nodes,), or None
        Training rows in each leaf, for each tree.
    weight : sequence of ndarray of shape (n_nodes,), or None
        How much those of them weighed that have `means`.
    means : sequence of ndarray of shape (n_nodes, n_outputs)
        What training rows have at each node on average, for each tree: shares of classes, or outputs.
    spread : ndarray of shape (n_features,), or None
        Standard deviation of each feature in training.
    """

    trees: Sequence[Tree]
    names: Sequence[str]
    named: bool
    levels: Sequence[tuple[Level, ...] | None]
    gaps: bool
    classes: list[Level] | None = None
    labels: Sequence[IntArray] = ()
    shares: Sequence[FloatArray] = ()
    way: str = "leaf"
    agree: bool = True
    level: int = 0
    rows: Sequence[FloatArray] | None = None
    weight: Sequence[FloatArray] | None = None
    means: Sequence[FloatArray] = ()
    spread: FloatArray | None = None

    @property
    def n_outputs(self) -> int:
        """Number of classes, or of outputs of a regression."""
        return self.trees[0].n_outputs if self.classes is None else len(self.classes)

    @cached_property
    def used(self) -> list[int]:
        """Features that matter to what the model says."""
        found: set[int] = set()
        for tree in self.trees:
            found |= set(np.flatnonzero((tree.weights != 0.0).any(axis=0)).tolist())
            found |= set(tree.category[tree.category >= 0].tolist())
            if tree.slopes is not None:
                found |= set(np.flatnonzero((tree.slopes[tree.is_leaf] != 0.0).any(axis=(0, 1))).tolist())
        return sorted(found)

    def split(self, tree: Tree, node: int) -> Sum:
        """The sum of a hyperplane, which is compared with the threshold."""
        return added(tree.weights[node])

    def needed(self, tree: Tree, node: int) -> list[int]:
        """Features that a split uses."""
        category = int(tree.category[node])
        return [category] if category >= 0 else np.flatnonzero(tree.weights[node]).tolist()

    def listed(self, tree: Tree, node: int) -> list[Level]:
        """Levels that go left at a split by a category."""
        known = self.levels[tree.category[node]]
        assert known is not None  # no model splits numbers by category
        return [known[code] for code in np.flatnonzero(tree.left_categories[node]).tolist() if code < len(known)]

    def value(self, tree: Tree, leaf: int, output: int) -> tuple[float, Sum | None]:
        """What a leaf of a regression predicts: a number, and a sum that is added to it."""
        constant = float(tree.values[leaf, output])
        if tree.slopes is None or not tree.slopes[leaf, output].any():
            return constant, None
        return constant, added(tree.slopes[leaf, output])

    def score(self, k: int, leaf: int) -> tuple[float | Sum, float]:
        """Value of the tree of a class against all others at a leaf, before shares count: -1, 1, or a sum.

        Which of these holds depends on the sum: ``said`` is what the leaf says, and the sum counts where it agrees.
        """
        tree = self.trees[k]
        assert tree.labels is not None
        said = 1.0 if tree.labels[leaf] == k else -1.0
        parent, level = int(tree.parent[leaf]), int(tree.level[leaf])
        if level == 0:
            return said, said
        return added(tree.weights[parent], float(tree.threshold[parent])), said

    def cut(self, k: int, leaf: int) -> bool:
        """Whether a sum of :meth:`score` that contradicts what the leaf says is replaced by that."""
        return int(self.trees[k].level[leaf]) <= self.level


def plain_labels(classes: Iterable[object]) -> list[Level]:
    """Labels as texts, numbers or truth values, which all forms know; others are refused."""
    found = [plain(label) for label in classes]
    strange = [label for label in found if not isinstance(label, str | bool | int | float)]
    if strange:
        raise InvalidInputError(
            f"classes are {listing(strange)}; only texts, numbers and truth values can be taken along: fit the model "
            "to such labels"
        )
    return found  # type: ignore[return-value]


def refuse(what: str, names: Sequence[str]) -> None:
    """Refuse names that a form cannot have."""
    if names:
        raise InvalidInputError(f"{what}: {', '.join(repr(shortened(name)) for name in names[:5])}; rename them")
