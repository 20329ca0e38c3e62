"""Rows selected again at every layer of a tree: what the authors of SVM1-ODT name as the next thing to do.

Once the splits of a layer are learned, all rows pass them, and at each node of the next layer rows are selected anew,
from those that reach it, before the subtree there is trained (Zhu et al. 2020, conclusions). A selection for the whole
tree is about the clusters of its leaves; one for a subtree has a smaller problem and may take other rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from treewright.core.arrays import BoolArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.models.svm1odt.completed import completed_heap_tree
from treewright.models.svm1odt.objective import SVM1ODT
from treewright.models.svm1odt.search import search_svm1odt
from treewright.models.svm1odt.selection.choice import ChoiceSettings, rows_worth_training
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import optimize
from treewright.optimize.incumbent import Incumbent
from treewright.tree import Tree, route
from treewright.tree.structure import Shape

__all__ = ["train_layers"]

_SEARCH_SHARE = 0.6
"""Share of the time of a subtree for its search, before branch and bound."""


@stage("layers of the tree")
def train_layers(model: SVM1ODT, starts: list[Tree], conduct: Conduct, budget: Budget) -> tuple[Tree, BoolArray]:
    """Train an SVM1-ODT from the root down, subtrees on rows selected at their nodes; never worse than the first tree.

    Parameters
    ----------
    model : SVM1ODT
        The model on all points.
    starts : list of Tree
        Trees to start from, in the units of the model.
    conduct : Conduct
        Solver and gap.
    budget : Budget
        Time for all of it, the same for each layer.

    Returns
    -------
    Tree
        The best tree of the model.
    ndarray of bool, shape (n_points,)
        Points that were selected at some node.
    """
    best, selected = Incumbent(model), np.zeros(len(model.X), dtype=bool)
    search_svm1odt(
        best, model, starts, budget.share(1 / (model.depth + 1)), conduct.seed, conduct.threads, conduct.search.svm1odt
    )
    for layer in range(model.depth):
        time = budget.share(1 / (model.depth - layer))
        assert best.solution is not None
        # Nodes of a layer part the points among them, so that each may be trained from the same tree.
        tree = completed_heap_tree(best.solution, model.depth, model.n_classes)
        nodes = _nodes_of(model, tree, layer)
        for number, (node, inside) in enumerate(nodes):
            if time.over:
                break
            part = time.share(1 / (len(nodes) - number))
            rows, below = _trained(model, tree, node, inside, conduct, part)
            selected[rows] = True
            grafted = _grafted(completed_heap_tree(best.solution, model.depth, model.n_classes), node, below)
            best.offer(grafted)
            assert best.solution is not None
    assert best.solution is not None
    return best.solution, selected


def _nodes_of(model: SVM1ODT, tree: Tree, layer: int) -> list[tuple[int, IntArray]]:
    """Nodes of a layer of a complete tree at which points of several classes arrive, and these points."""
    at = Shape.of(tree).at_level[layer][route(tree, model.X)]
    found = [(node, np.flatnonzero(at == node)) for node in range(2**layer - 1, 2 ** (layer + 1) - 1)]
    return [(node, inside) for node, inside in found if len(np.unique(model.y[inside])) > 1]


def _trained(
    model: SVM1ODT, tree: Tree, node: int, inside: IntArray, conduct: Conduct, budget: Budget
) -> tuple[IntArray, Tree]:
    """Rows selected at a node, and the subtree that is trained on them, complete."""
    below = _cut(tree, node)
    chosen = rows_worth_training(
        model.X[inside],
        model.y[inside],
        below,
        ChoiceSettings("hull"),
        categorical=model.is_categorical,
        width=np.ones(model.X.shape[1]),
        budget=budget.share(0.3),
    )
    rows = inside[chosen.rows]
    some = replace(
        model, X=model.X[rows], y=model.y[rows], weight=model.weight[rows], size=model.sizes[rows], depth=below.depth
    )

    def search(best: Incumbent[Tree], time: Budget) -> None:
        search_svm1odt(best, some, [below], time, conduct.seed, conduct.threads, conduct.search.svm1odt)

    found = optimize(some, search, replace(conduct, told=None), budget, _SEARCH_SHARE).solution
    return rows, completed_heap_tree(found, below.depth, model.n_classes)


def _places(node: int, depth: int) -> IntArray:
    """Numbers, in a complete tree, of the nodes of the complete subtree of that depth at a node."""
    level = np.floor(np.log2(np.arange(2 ** (depth + 1) - 1) + 1)).astype(np.int64)
    within = np.arange(len(level)) - (2**level - 1)
    return np.asarray((node + 1) * 2**level - 1 + within)


def _cut(tree: Tree, node: int) -> Tree:
    """The subtree of a complete tree at a node."""
    depth = tree.depth - int(tree.level[node])
    at, inner = _places(node, depth), np.arange(2 ** (depth + 1) - 1) < 2**depth - 1
    k = np.arange(len(at))
    assert tree.labels is not None
    return Tree(
        np.where(inner, 2 * k + 1, -1),
        np.where(inner, 2 * k + 2, -1),
        tree.weights[at],
        tree.threshold[at],
        tree.values[at],
        tree.labels[at],
        tree.category[at],
        tree.left_categories[at],
        tree.missing_left[at],
    )


def _grafted(tree: Tree, node: int, below: Tree) -> Tree:
    """A complete tree with another complete subtree at a node."""
    assert tree.labels is not None and below.labels is not None
    at = _places(node, below.depth)
    changed = {}
    for name in ("weights", "threshold", "values", "labels", "category", "left_categories", "missing_left"):
        table = np.array(getattr(tree, name))
        table[at] = getattr(below, name)
        changed[name] = table
    return replace(tree, **changed)
