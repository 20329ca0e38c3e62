"""Many levels of a column with the same weight, as one flag with a name: "occupation is in group 1".

What is written of a tree is written of a folded one, in which such levels are one more feature. Of the flags of a
column one holds at most, so that their sum is that feature, and both are the same rule for every row there can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from treewright.core.arrays import FloatArray
from treewright.core.names import printable
from treewright.tree.structure import Tree
from treewright.tree.words import FeatureWords, FlagWords

__all__ = ["Folded", "folded_tree"]

_LISTED = 3
"""So many levels are listed where they stand; more are a group."""


@dataclass(frozen=True)
class Folded:
    """A tree with groups of levels as features behind the others.

    Attributes
    ----------
    tree : Tree
        The tree for writing.
    words : dict of int to FeatureWords, or None
        Words of its features.
    groups : list of lists of int
        Features of the given tree that are a feature of this one.
    """

    tree: Tree
    words: Mapping[int, FeatureWords] | None
    groups: list[list[int]]

    def rows(self, X: FloatArray) -> FloatArray:
        """Rows with the groups as features."""
        return np.column_stack([X, *(X[:, group].sum(axis=1) for group in self.groups)]) if self.groups else X

    def notes(self, nodes: Sequence[int]) -> list[str]:
        """Which levels the groups have that some nodes split on, in sentences."""
        said, words = [], self.words or {}
        used = np.asarray(self.tree.weights[np.asarray(nodes, dtype=np.int64)].any(axis=0))
        for j, group in enumerate(self.groups, start=self.tree.n_features - len(self.groups)):
            own = words[j]
            assert isinstance(own, FlagWords)
            if not used[j]:
                continue
            levels = [words[k].yes.removeprefix(f"{own.column} is ") for k in group]  # type: ignore[union-attr]
            name = own.yes.rpartition(" is in ")[2]
            said.append(f'{name.capitalize()} of "{printable(own.column)}": {", ".join(levels)}.')
        return said


def folded_tree(tree: Tree, words: Mapping[int, FeatureWords] | None) -> Folded:
    """Fold levels of a column that have the same weight in a split of a tree, where they are many.

    Examples
    --------
    >>> names = "abcde"
    >>> words = {j: FlagWords(f"town is {a}", f"town is not {a}", "town", many=True) for j, a in enumerate(names)}
    >>> found = folded_tree(Tree.stump([1.0, 1.0, 1.0, 1.0, 0.0], 0.5, np.eye(2)), words)
    >>> found.tree.weights[0].tolist(), found.words[5].no
    ([0.0, 0.0, 0.0, 0.0, 0.0, 1.0], 'town is not in group 1')
    >>> found.notes([0])
    ['Group 1 of "town": a, b, c, d.']
    """
    levels = {j: flag.column for j, flag in (words or {}).items() if isinstance(flag, FlagWords) and flag.many}
    if words is None or len(levels) <= _LISTED or tree.slopes is not None:
        return Folded(tree, words, [])
    numbers: dict[tuple[int, ...], int] = {}
    places = []
    for node in np.flatnonzero(np.count_nonzero(tree.weights, axis=1) > _LISTED).tolist():
        alike: dict[tuple[str, float], list[int]] = {}
        for j in np.flatnonzero(tree.weights[node]).tolist():
            if j in levels:
                alike.setdefault((levels[j], float(tree.weights[node, j])), []).append(j)
        for group in alike.values():
            if len(group) > _LISTED:
                places.append((node, group, numbers.setdefault(tuple(group), len(numbers))))
    if not numbers:
        return Folded(tree, words, [])
    weights = np.column_stack([tree.weights, np.zeros((tree.n_nodes, len(numbers)))])
    for node, group, number in places:
        weights[node, tree.n_features + number] = weights[node, group[0]]
        weights[node, group] = 0.0
    groups, more = [list(group) for group in numbers], dict[int, FeatureWords](words)
    for number, group in enumerate(groups):
        column = levels[group[0]]
        name = f"in group {1 + sum(levels[other[0]] == column for other in groups[:number])}"
        more[tree.n_features + number] = FlagWords(f"{column} is {name}", f"{column} is not {name}", column)
    return Folded(replace(tree, weights=weights), more, groups)
