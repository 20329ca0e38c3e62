"""A tree that was solved for on points, turned back to rows and units of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treewright.data import Problem, Reduction
from treewright.training.optimize import Outcome
from treewright.training.record import FitRecord
from treewright.tree import Tree, leaf_counts, predict_labels

__all__ = ["SolvedTree", "solved_tree"]


@dataclass(frozen=True)
class SolvedTree:
    """A tree in the units of the data, and the record of its fit."""

    tree: Tree
    record: FitRecord


def solved_tree(problem: Problem, reduction: Reduction, outcome: Outcome[Tree]) -> SolvedTree:
    """Turn the tree of an outcome back to the units of the data.

    Its nodes get the weights of the classes among the labelled rows. Where rounding makes rows of these units go
    another way than on points, the proof does not hold for them, and the record says so.

    Parameters
    ----------
    problem : Problem
        The rows.
    reduction : Reduction
        How they became points.
    outcome : Outcome
        A tree on points.
    """
    found = outcome.solution
    assert found.labels is not None
    tree = reduction.invert_tree(found)
    counts = leaf_counts(tree, problem.X, problem.y, problem.weight, problem.n_classes)
    # Where labelled rows contradict a leaf's class, as totals can force, the leaf is sure of its class.
    counts[counts.argmax(axis=1) != found.labels] = 0.0
    tree = tree.with_leaves(counts, found.labels)
    scaled = problem.X if reduction.scaling is None else reduction.scaling.apply(problem.X)
    differing = int(np.count_nonzero(predict_labels(found, scaled) != predict_labels(tree, problem.X)))
    if not differing:
        return SolvedTree(tree, outcome.record)
    reason = (
        f"{differing} training rows are classified otherwise in the original units than in the scaled ones, for which "
        "objective and bound hold: a feature varies too little for its size (1e15 + 0.1, say). Subtract a constant "
        "from such features"
    )
    return SolvedTree(tree, outcome.record.unproven(reason))
