"""OCTSVM and RE-SVM: what trees cost, what repair does, the loophole of the printed program, other machines."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from tests.contracts.octsvm import octsvm, random_svm_tree
from tests.examples import looped

from treewright.engine.cart import tree_from_sklearn
from treewright.exceptions import InvalidInputError, UnsoundModelWarning
from treewright.models.octsvm.loss import octsvm_split_loss, relabelled_points, relabelling_margin
from treewright.models.octsvm.objective import OCTSVM, RESVM
from treewright.models.octsvm.program import farthest_distances
from treewright.models.octsvm.repair import best_scaled_tree, pruned_octsvm_tree
from treewright.models.octsvm.scale import ScaleCost, ScalePrice, best_scales
from treewright.solvers import Capability, Status, get_solver
from treewright.solvers.program_check import check
from treewright.tree import Tree, predict_labels, route


def noisy(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping clouds in the unit cube."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.clip(0.5 + 0.15 * rng.normal(size=(n, p)) + 0.15 * (2 * y[:, None] - 1), 0, 1)
    return X, y


def cost_by_hand(model: OCTSVM, tree: Tree) -> float:
    """The objective point by point, as the paper writes it: levels, errors, relabelled points."""
    order = {"l2": 2, "l1": 1, "linf": np.inf}[model.norm]
    norms = [np.linalg.norm(tree.weights[t], order) for t in tree.branches]
    longest = max(norms, default=0.0)
    if isinstance(model, RESVM):
        total = model.margin_price * (longest**2 / 2 if model.norm == "l2" else longest)
    else:
        total = model.margin_price * longest / 2 + model.c3 * len(norms)
    for x, k, weight in zip(model.X, model.y, model.weight, strict=True):
        node, label = 0, 2 * k - 1
        for _ in range(model.depth + 1):
            value = tree.weights[node] @ x - tree.threshold[node]
            if tree.left[node] < 0:  # omega = 0, omega_0 = +-1, here and on every level from here on
                value = 2 * tree.labels[node] - 1
            kept = model.c1 * max(0.0, 1 - label * value)
            flipped = model.c2 + model.c1 * max(0.0, 1 + label * value)
            total += weight * min(kept, flipped)
            if tree.left[node] >= 0:
                node = tree.left[node] if value <= 0 else tree.right[node]
    return float(total)


class TestLoss:
    @pytest.mark.parametrize("c2", [0.0, 0.5, 2.0, 3.0, 7.0, np.inf])
    def test_relabelled_where_it_is_cheaper(self, c2: float) -> None:
        m = np.linspace(-6, 3, 901)
        kept, flipped = 1.5 * np.maximum(0, 1 - m), c2 + 1.5 * np.maximum(0, 1 + m)
        np.testing.assert_allclose(octsvm_split_loss(m, 1.5, c2), np.minimum(kept, flipped))
        clear = np.abs(kept - flipped) > 1e-9
        np.testing.assert_array_equal(relabelled_points(m, 1.5, c2)[clear], (flipped < kept)[clear])
        assert relabelling_margin(1.5, c2) <= 0

    @pytest.mark.parametrize("c2", [0.0, 0.5, 2.0, 3.5, np.inf])
    def test_scales_against_a_grid(self, c2: float) -> None:
        rng = np.random.default_rng(1)
        distance, weight = rng.normal(size=(2, 9)), rng.random((2, 9))
        costs = [ScaleCost.of(d, w, 1.3, c2) for d, w in zip(distance, weight, strict=True)]
        grid = np.linspace(0, 6, 601)
        by_hand = [[w @ octsvm_split_loss(k * d, 1.3, c2) for k in grid] for d, w in zip(distance, weight, strict=True)]
        for cost, values in zip(costs, by_hand, strict=True):
            np.testing.assert_allclose(cost(grid), values, atol=1e-9)
        for price in (ScalePrice(0.4), ScalePrice(0.0, 0.3)):
            found = best_scales(costs, np.array([0.05, 0.0]), 6.0, price)
            reached = sum(float(c(np.array([k]))[0]) for c, k in zip(costs, found, strict=True))
            total = reached + float(price(np.array(found.max())))
            least = min(
                sum(min(v[low : k + 1]) for v, low in zip(by_hand, (5, 0), strict=True)) + float(price(grid[k]))
                for k in range(5, 601)
            )
            assert found[0] >= 0.05
            assert total <= least + 1e-9


class TestObjective:
    @looped("norm", ["l2", "l1", "linf"])
    @looped("depth", [0, 1, 2])
    def test_by_hand(self, depth: int, norm: str) -> None:
        model = octsvm(12, 2, depth=depth, c1=1.3, c2=0.9, c3=0.4, norm=norm)(depth)
        for seed in range(5):
            tree = model.repair(random_svm_tree(model, np.random.default_rng(seed)))
            assert model.objective(tree) == pytest.approx(cost_by_hand(model, tree))

    def test_re_svm_by_hand(self) -> None:
        model = octsvm(12, 2, RESVM, c1=1.3, c2=0.9)(0)
        tree = Tree.stump([2.0, -1.0], 0.3, [[1.0, 0.0], [0.0, 1.0]])
        assert model.objective(tree) == pytest.approx(cost_by_hand(model, tree))

    def test_a_band_needs_depth(self) -> None:
        """One hyperplane is wrong about three points of eleven; one more, on the side that is not pure, is right."""
        x = np.arange(11) / 10
        X, y = x[:, None], (np.abs(x - 0.5) < 0.22).astype(int)
        for depth, wrong in ((0, 3), (1, 0)):
            model = OCTSVM(X, y, np.ones(11), depth=depth, c2=1.0, c3=0.1, max_norm=20.0, margin_price=0.0, norm="linf")
            result = get_solver("highs").solve(model.build(), time_limit=20)
            assert np.count_nonzero(predict_labels(model.decode(result.x), X) != y) == wrong
            assert result.objective == pytest.approx(3.0 + 0.1 * (1 + depth))

    def test_merged_points_cost_the_same(self) -> None:
        model = octsvm(9, 2, c1=2.0, c2=3.0, c3=0.2)(4)
        rows = np.repeat(np.arange(9), model.weight.astype(int))
        single = replace(model, X=model.X[rows], y=model.y[rows], weight=np.ones(len(rows)))
        tree = model.repair(random_svm_tree(model, np.random.default_rng(0)))
        assert single.objective(tree) == pytest.approx(model.objective(tree))
        assert single.lower_bound() == pytest.approx(model.lower_bound())
        assert single.norm_limit == pytest.approx(model.norm_limit)
        assert single.build().summary() == model.build().summary()


class TestRepair:
    def every(self, seed: int) -> OCTSVM:
        made = octsvm(
            10,
            2,
            depth=seed % 3,
            c2=[0.5, 1.0, 3.0, np.inf][seed % 4],
            c3=0.1 * (seed % 2),
            norm=["l2", "l1", "linf"][seed % 3],
            **({"max_norm": 3.0, "margin_price": 0.0} if seed % 5 == 0 else {}),
        )
        return made(seed)

    @looped("seed", range(24))
    def test_feasible_trees_stay_and_others_become_so(self, seed: int) -> None:
        model = self.every(seed)
        tree = model.repair(random_svm_tree(model, np.random.default_rng(seed)))
        assert model.repair(tree) is tree
        assert tree.depth <= model.depth + 1
        level, leaf = tree.level, route(tree, model.X)
        order = {"l2": 2, "l1": 1, "linf": np.inf}[model.norm]
        for t in tree.branches:
            if model.max_norm is not None:
                assert np.linalg.norm(tree.weights[t], order) <= model.max_norm + 1e-6
            below = np.array([t in self.way(tree, end) for end in leaf])
            distance = np.abs(model.X[below] @ tree.weights[t] - tree.threshold[t])
            assert len(distance)
            if level[t] < model.depth:
                assert distance.min() >= model.tolerance * (1 - 0.01)
            else:
                assert tree.labels[[tree.left[t], tree.right[t]]].tolist() == [0, 1]
        assert model.objective(best_scaled_tree(model, tree)) <= model.objective(tree) + 1e-9

    @staticmethod
    def way(tree: Tree, node: int) -> set[int]:
        above, parent = {int(node)}, tree.parent
        while parent[node] >= 0:
            node = parent[node]
            above.add(int(node))
        return above

    def test_a_cart_tree_keeps_its_routes(self) -> None:
        X, y = noisy(60, 3, 0)
        cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        given = tree_from_sklearn(cart)
        model = OCTSVM(X, y, np.ones(60), depth=1, c2=1.0, max_norm=20.0, margin_price=0.0)
        tree = best_scaled_tree(model, given)
        sides = [t.weights[0] @ X.T <= t.threshold[0] for t in (given, tree)]
        assert np.array_equal(*sides) or np.array_equal(sides[0], ~sides[1])
        assert model.objective(tree) < min(model.leaf_objective, model.objective(given))
        assert model.repair(tree) is tree

    def test_a_mirrored_last_split_is_turned(self) -> None:
        model = OCTSVM(np.array([[0.0], [1.0]]), np.array([1, 0]), np.ones(2), depth=0, c1=9.0, c2=9.0)
        tree = model.repair(Tree.stump([1.0], 0.5, [[0.0, 1.0], [1.0, 0.0]]))
        assert tree.weights[0, 0] == -2.0 and tree.labels[1:].tolist() == [0, 1]
        assert model.objective(tree) == pytest.approx(1.0)

    def test_what_a_leaf_does_as_well_is_pruned(self) -> None:
        X, y = np.array([[0.0], [0.4], [1.0]]), np.array([0, 0, 1])
        model = OCTSVM(X, y, np.ones(3), depth=1, c1=1.0, c2=1.0, c3=0.1, max_norm=9.0, margin_price=0.0)
        labels = np.array([0, 0, 1, 0, 0, 0, 1])
        tree = Tree.from_heap([1, 0, 1], [[9.0], [0.0], [9.0]], [6.0, 0.0, 8.0], np.eye(2)[labels], labels)
        smaller = pruned_octsvm_tree(model, tree)
        assert (tree.n_nodes, smaller.n_nodes) == (5, 3)
        assert model.objective(smaller) == pytest.approx(0.1) == pytest.approx(model.objective(tree) - 0.1)

    def test_labels_are_needed(self) -> None:
        model = octsvm(6, 2)(0)
        with pytest.raises(InvalidInputError, match="2 classes and 2 features"):
            model.repair(Tree.leaf([1.0, 1.0, 1.0], n_features=2))
        with pytest.raises(InvalidInputError, match="categorical"):
            model.repair(
                Tree(
                    left=[1, -1, -1],
                    right=[2, -1, -1],
                    weights=np.zeros((3, 2)),
                    threshold=np.zeros(3),
                    values=np.ones((3, 2)),
                    labels=[0, 0, 1],
                    category=[0, -1, -1],
                    left_categories=np.array([[True], [False], [False]]),
                )
            )


class TestRefusals:
    @looped(
        "wrong, text",
        [
            ({"c1": 0.0}, "c1"),
            ({"c2": -1.0}, "c2"),
            ({"c3": np.inf}, "c3"),
            ({"depth": -1}, "depth"),
            ({"norm": "l3"}, "norm"),
            ({"max_norm": 0.0}, "max_norm"),
            ({"margin_price": 0.0}, "margin_price=0 needs a max_norm"),
            ({"tolerance": 0.0}, "tolerance"),
            ({"cutoff": -1.0}, "cutoff"),
            ({"formulation": "loose"}, "formulation"),
            ({"y": np.array([0, 2])}, "0 and 1"),
            ({"weight": np.array([1.0, np.nan])}, "weight"),
            ({"X": np.array([[0.0], [np.nan]])}, "missing"),
            ({"X": np.zeros((3, 1))}, "shape"),
        ],
    )
    def test_bad_values(self, wrong: dict, text: str) -> None:
        given = {"X": np.array([[0.0], [1.0]]), "y": np.array([0, 1]), "weight": np.ones(2)} | wrong
        with pytest.raises(InvalidInputError, match=text):
            OCTSVM(**given)

    def test_needs(self) -> None:
        X, y = noisy(6, 2, 0)
        assert Capability.CONE in OCTSVM(X, y, np.ones(6)).needs
        assert Capability.CONE not in OCTSVM(X, y, np.ones(6), norm="l1").needs


class TestLoophole:
    """Points of both classes at each place: no tree is right about more than half of them."""

    def printed(self) -> tuple[OCTSVM, OCTSVM]:
        X = np.repeat(np.linspace(0, 1, 3), 2)[:, None]
        tight = OCTSVM(X, np.arange(6) % 2, np.ones(6), depth=1, c1=1.0, c2=3.0)
        with pytest.warns(UnsoundModelWarning, match="either side"):
            return tight, replace(tight, formulation="paper")

    def test_the_printed_program_has_it_and_the_tight_one_does_not(self) -> None:
        tight, paper = self.printed()
        results = [get_solver("highs").solve(model.build(), time_limit=20) for model in (tight, paper)]
        assert [result.status for result in results] == [Status.OPTIMAL] * 2
        # Printed: omega = 0 and omega_0 = 0 at the root, each point on the side of its label, pruned children.
        assert results[1].objective == pytest.approx(6.0)
        # One of two equal points of different classes pays 2 on either level, whatever the tree.
        assert results[0].objective == pytest.approx(12.0) == tight.lower_bound()
        assert paper.objective(paper.repair(paper.decode(results[1].x))) >= 12.0 - 1e-9

    def test_its_solution_as_a_point(self) -> None:
        tight, paper = self.printed()
        sides, n = paper.y, len(paper.y)
        root = np.column_stack([np.ones(n), 1 - sides, sides])
        blocks = {
            "omega": 0.0,
            "intercept": [0.0, -1.0, 1.0],
            "d": 0.0,
            "z": root,
            "theta": np.column_stack([sides, np.zeros(n), np.ones(n)]),
            "e": np.column_stack([np.ones(n), np.zeros((n, 2))]),
            "xi": 0.0,
            "beta": 0.0,
            "norm": 0.0,
            "longest": 0.0,
        }
        found = check(paper.build(), paper.build().point(blocks))
        assert found.worst <= 1e-12 and found.objective == pytest.approx(6.0)
        # In the tight program equal points cannot be parted, nor can any point lie on the root.
        z = np.repeat(np.eye(2)[[0, 0, 1]], 1, axis=0)
        wanted = {"z": z, "omega": 0.0, "offset": [0.0, -1.0, 1.0], "f": [[0.0, -1.0, 1.0]] * 3, "norm": 0.0}
        e, xi = np.zeros((6, 3)), np.zeros((6, 3))
        e[:, 0] = 1.0
        point = tight.build().point(wanted | {"longest": 0.0, "e": e, "xi": xi})
        violations = check(tight.build(), point).violations
        assert violations["rows:left[1]"] == pytest.approx(tight.tolerance)
        assert violations["rows:right[1]"] == pytest.approx(tight.tolerance)

    @looped("seed", range(6))
    def test_trees_are_points_of_the_printed_program(self, seed: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsoundModelWarning)
            model = octsvm(8, 2, depth=seed % 3, c2=[1.0, np.inf][seed % 2], c3=0.2, formulation="paper")(seed)
        tree = model.repair(random_svm_tree(model, np.random.default_rng(seed)))
        found = check(model.build(), model.encode(tree))
        assert found.worst <= 1e-6, found.worst_name
        assert found.objective == pytest.approx(model.objective(tree), abs=1e-9)


class TestAgainstOthers:
    @pytest.mark.parametrize("c2", [1e6, np.inf])
    def test_re_svm_that_relabels_nothing_is_a_support_vector_machine(self, c2: float) -> None:
        X, y = noisy(40, 3, 1)
        model = RESVM(X, y, np.ones(40), c1=2.0, c2=c2)
        result = get_solver("highs").solve(model.build(), time_limit=20, gap=1e-7)
        svm = SVC(kernel="linear", C=2.0, tol=1e-8).fit(X, y)
        w, b = svm.coef_[0], svm.intercept_[0]
        primal = w @ w / 2 + 2.0 * np.maximum(0, 1 - (2 * y - 1) * (X @ w + b)).sum()
        assert result.objective == pytest.approx(primal, rel=1e-6)
        tree = model.decode(result.x)
        np.testing.assert_allclose(tree.weights[0], w, atol=1e-3)

    def test_depth_0_is_re_svm_for_matching_prices(self) -> None:
        """At the optimum of norm N, d(N^2 / 2) = N dN while half the norm has dN / 2: prices divided by 2 N match.

        That is a condition of the first order, so it is enough where the program is convex: nothing is relabelled.
        """
        X, y = noisy(10, 2, 0)
        y[3] = 1 - y[3]
        one = RESVM(X, y, np.ones(10), c1=4.0, c2=np.inf)
        best = get_solver("highs").solve(one.build(), time_limit=20, gap=1e-8)
        norm = float(np.linalg.norm(one.decode(best.x).weights[0]))
        same = OCTSVM(X, y, np.ones(10), depth=0, c1=4.0 / (2 * norm), c2=np.inf)
        found = get_solver("highs").solve(same.build(), time_limit=20, gap=1e-8)
        assert norm > 1
        assert found.objective == pytest.approx((best.objective - norm**2 / 2) / (2 * norm) + norm / 2, rel=1e-6)
        np.testing.assert_allclose(same.decode(found.x).weights, one.decode(best.x).weights, atol=1e-3)

    @pytest.mark.parametrize("seed", [0, 2])
    def test_depth_0_within_the_norm_of_re_svm_makes_its_errors(self, seed: int) -> None:
        X, y = noisy(10, 2, seed)
        y[3] = 1 - y[3]
        one = RESVM(X, y, np.ones(10), c1=8.0, c2=12.0)
        best = get_solver("highs").solve(one.build(), time_limit=20, gap=1e-8)
        tree = one.decode(best.x)
        norm = float(np.linalg.norm(tree.weights[0]))
        within = OCTSVM(X, y, np.ones(10), depth=0, c1=8.0, c2=12.0, margin_price=0.0, max_norm=norm)
        found = get_solver("highs").solve(within.build(), time_limit=20, gap=1e-8)
        assert norm > 1
        assert found.objective == pytest.approx(best.objective - norm**2 / 2, abs=1e-5)

    def test_the_cutoff_keeps_the_optimum(self) -> None:
        model = octsvm(6, 2, c1=9.0, c2=9.0, c3=0.1)(2)
        first = get_solver("highs").solve(model.build(), time_limit=20, gap=1e-7)
        tree = model.decode(first.x)
        closer = replace(model, cutoff=model.objective(tree))
        assert closer.norm_limit < model.norm_limit
        assert closer.repair(tree) is tree
        second = get_solver("highs").solve(closer.build(), start=closer.encode(tree), time_limit=20, gap=1e-7)
        assert second.objective == pytest.approx(first.objective, abs=1e-6)

    @pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
    def test_farthest(self, norm: str) -> None:
        X = np.random.default_rng(0).random((30, 4))
        order = {"l2": 2, "l1": np.inf, "linf": 1}[norm]
        by_hand = [max(np.linalg.norm(a - b, order) for b in X) for a in X]
        np.testing.assert_allclose(farthest_distances(X, norm), by_hand)
        many = np.vstack([X] * 101)
        assert np.all(farthest_distances(many, norm)[:30] >= np.array(by_hand) - 1e-12)

    def test_near_points_of_different_classes_pay(self) -> None:
        """Two points 0.1 apart with norms of 4 at most: their margins sum up to 0.4, so one of them pays."""
        X, y = np.array([[0.0], [0.45], [0.55], [1.0]]), np.array([0, 1, 0, 1])
        model = OCTSVM(X, y, np.ones(4), depth=1, c1=2.0, c2=3.0, margin_price=0.0, max_norm=4.0)
        start, stop = model.build().rows["near_pairs"]
        assert sorted(model.build().row_lower[start:stop]) == pytest.approx([0.2, 0.2, 1.5])
        for seed in range(20):
            tree = model.repair(random_svm_tree(model, np.random.default_rng(seed)))
            assert check(model.build(), model.encode(tree)).worst <= 1e-6


class TestEdges:
    @pytest.mark.parametrize("name", ["one point", "one class", "no weight", "equal points", "huge prices", "depth 3"])
    @pytest.mark.parametrize("norm", ["l2", "linf"])
    def test_small_and_odd_data(self, name: str, norm: str) -> None:
        X, y, weight = np.array([[0.0], [0.5], [1.0]]), np.array([0, 1, 0]), np.ones(3)
        settings = {"depth": 1, "c1": 1.0, "c2": 1.0, "norm": norm}
        expected = {"one point": 0.0, "one class": 0.0, "no weight": 0.0, "equal points": 2.0}.get(name)
        if name == "one point":
            X, y, weight = X[:1], y[:1], weight[:1]
        elif name == "one class":
            y = np.zeros(3, dtype=int)
        elif name == "no weight":
            weight = np.zeros(3)
        elif name == "equal points":
            X = np.zeros((3, 1))
        elif name == "huge prices":
            settings |= {"c1": 1e4, "c2": 1e6}
        else:
            settings |= {"depth": 3, "c3": 0.01}
        model = OCTSVM(X, y, weight, **settings)
        result = get_solver("highs").solve(model.build(), time_limit=20)
        tree = model.decode(result.x)
        assert result.status is Status.OPTIMAL
        assert model.objective(tree) == pytest.approx(result.objective, rel=1e-5, abs=1e-6)
        assert model.repair(tree) is tree
        if expected is not None:
            assert result.objective == pytest.approx(expected, abs=1e-9)
        assert model.lower_bound() - 1e-9 <= result.objective <= model.leaf_objective + 1e-6
