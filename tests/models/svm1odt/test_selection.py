"""Algorithms 1, 2 and 3 of data selection, against programs and brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.exceptions import InvalidInputError
from treewright.models.svm1odt.selection.balanced import balanced_block, balanced_points, balanced_program
from treewright.models.svm1odt.selection.choice import ChoiceSettings, rows_worth_training
from treewright.models.svm1odt.selection.clusters import clustered_rows, split_distances
from treewright.models.svm1odt.selection.hull import convex_hull, in_unit_box
from treewright.models.svm1odt.selection.programs import expressed_points
from treewright.models.svm1odt.selection.room import selected_with_room
from treewright.models.svm1odt.selection.rounds import round_rows
from treewright.solvers import get_solver
from treewright.tree import Tree, predict_labels, route


def is_made_by(x, points, room=0.0, tolerance=1e-7):
    """Whether x is within `room` of the hull of points in each coordinate, by scipy's own program."""
    if not len(points):
        return False
    both, reach = np.vstack([points.T, -points.T]), room + tolerance
    sides = np.concatenate([x + reach, -x + reach])
    found = linprog(np.zeros(len(points)), A_ub=both, b_ub=sides, A_eq=np.ones((1, len(points))), b_eq=[1.0])
    return found.status == 0


def grid_tree():
    """Splits at 0 along a slanted line, then along the second feature."""
    weights = np.zeros((7, 2))
    weights[0], weights[1], weights[2] = [1.0, 0.5], [0.0, 1.0], [0.0, 1.0]
    return Tree(
        left=np.array([1, 3, 5, -1, -1, -1, -1]),
        right=np.array([2, 4, 6, -1, -1, -1, -1]),
        weights=weights,
        threshold=np.array([0.0, 0.3, -0.2, 0, 0, 0, 0]),
        values=np.eye(2)[[0, 0, 1, 0, 1, 1, 0]],
        labels=np.array([0, 0, 1, 0, 1, 1, 0]),
    )


def blobs(n, seed, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, n)


# ---------------------------------------------------------------- clusters


def test_clusters_are_leaf_times_class_of_distinct_rows():
    X, y = blobs(80, 0)
    X[40:] = X[:40]
    y[40:60] = y[:20]
    tree = grid_tree()
    data = clustered_rows(X, y, tree, np.zeros(2, bool), np.ones(2))
    leaf = route(tree, X)
    wanted = {(a, b, *row) for a, b, row in zip(leaf, y, X.tolist(), strict=True)}
    assert len(data.first) == len(wanted)
    for cluster in data.clusters:
        rows = data.first[cluster.points]
        assert set(leaf[rows]) == {cluster.leaf} and set(y[rows]) == {cluster.label}
        assert sorted([*cluster.lone, *(p for part in cluster.parts for p in part)]) == sorted(cluster.points)
    np.testing.assert_array_equal(X[data.first[data.place]], X)


def test_parts_have_equal_categories_and_gaps():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 3, 60), rng.normal(size=(60, 2))])
    X[:20, 1] = np.nan
    X[10:30, 0] = np.nan
    tree = Tree.leaf([60.0, 0.0], 3)
    data = clustered_rows(X, np.zeros(60, int), tree, np.array([True, False, False]), np.ones(3))
    (cluster,) = data.clusters
    assert cluster.parts
    for part in cluster.parts:
        rows = X[data.first[part]]
        assert len(np.unique(rows[:, 0])) == 1
        assert len(np.unique(np.isnan(rows), axis=0)) == 1
        assert data.coordinates(part).shape == (len(part), 1 if np.isnan(rows[0, 1]) else 2)


def test_distances_are_those_of_the_splits_on_the_way():
    X, _ = blobs(50, 2)
    tree = grid_tree()
    leaf = route(tree, X)
    width = np.array([2.0, 0.5])
    got = split_distances(tree, X, leaf, width)
    for i in range(50):
        path = [0, 1 if leaf[i] in (3, 4) else 2]
        # In units of the widths the point is X / width and the normal is h * width.
        each = [abs(tree.weights[b] @ X[i] - tree.threshold[b]) / np.linalg.norm(tree.weights[b] * width) for b in path]
        assert got[i] == pytest.approx(min(each))


def test_categorical_splits_have_no_distance():
    tree = Tree(
        left=np.array([1, -1, 3, -1, -1]),
        right=np.array([2, -1, 4, -1, -1]),
        weights=np.array([[0, 0], [0, 0], [0, 2.0], [0, 0], [0, 0]]),
        threshold=np.array([0, 0, 1.0, 0, 0]),
        values=np.ones((5, 1)),
        labels=np.zeros(5, int),
        category=np.array([0, -1, -1, -1, -1]),
        left_categories=np.array([[True, False], [False] * 2, [False] * 2, [False] * 2, [False] * 2]),
    )
    X = np.array([[0.0, 3.0], [1.0, 3.0], [1.0, np.nan]])
    np.testing.assert_array_equal(split_distances(tree, X, route(tree, X), np.ones(2)), [np.inf, 2.5, np.inf])


# ---------------------------------------------------------------- Algorithm 1


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.5, 0.9]), st.sampled_from([0.05, 0.3, 0.8]))
def test_algorithm_1_follows_its_three_rules(seed, beta_1, beta_2):
    X, y = blobs(60, seed)
    X = np.round(X, 1)
    tree = grid_tree()
    chosen = rows_worth_training(X, y, tree, ChoiceSettings("hull", 0.0, beta_1, beta_2))
    leaf = route(tree, X)
    distance = split_distances(tree, X, leaf, np.ptp(X, axis=0))
    for cluster in chosen.clusters:
        mine = np.flatnonzero((leaf == cluster.leaf) & (y == cluster.label))
        points, first = np.unique(X[mine], axis=0, return_index=True)
        got = np.isin(
            points.view([("", float)] * 2), X[np.intersect1d(chosen.rows, mine)].view([("", float)] * 2)
        ).ravel()
        assert got.sum() == cluster.n_selected == len(np.intersect1d(chosen.rows, mine))
        inside = expressed_points(in_unit_box(points)).inside
        n = len(points)
        assert (cluster.n_rows, cluster.n_points, cluster.n_inside) == (len(mine), n, inside.sum())
        assert not np.any(got & inside)
        if inside.sum() >= (1 - beta_1) * n:
            assert cluster.rule == "extreme"
            np.testing.assert_array_equal(got, ~inside)
            continue
        outside = np.flatnonzero(~inside)
        if cluster.rule == "used":
            assert got.sum() > beta_2 * n
        else:
            assert cluster.rule == "used and nearest"
            assert got.sum() == min(len(outside), int(np.ceil(beta_2 * n)))
            if not inside.any():  # nothing is used: the nearest alone
                far = distance[mine[first]]
                assert far[got].max() <= far[outside[~got[outside]]].min(initial=np.inf)


def test_dropped_points_are_made_by_the_selected_of_their_cluster():
    X, y = blobs(150, 3, d=3)
    tree = Tree.stump([1.0, 0.2, 0.0], 0.1, [[1.0, 0.0], [0.0, 1.0]])
    chosen = rows_worth_training(X, y, tree, ChoiceSettings(beta_1=0.999))
    assert {cluster.rule for cluster in chosen.clusters} == {"extreme"}
    leaf = route(tree, X)
    for i in np.setdiff1d(np.arange(150), chosen.rows):
        mates = chosen.rows[(leaf[chosen.rows] == leaf[i]) & (y[chosen.rows] == y[i])]
        assert is_made_by(X[i], X[mates])


def test_points_used_have_large_shares():
    # Nine points inside a triangle that are near its first corner: only that one has a share of a third in each.
    inner = np.array([[0.1 + 0.01 * i, 0.1 + 0.02 * (i % 3)] for i in range(9)])
    X = np.vstack([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], inner])
    tree = Tree.leaf([12.0], 2)
    chosen = rows_worth_training(X, np.zeros(12, int), tree, ChoiceSettings(beta_1=0.01, beta_2=0.01))
    assert chosen.clusters[0].rule == "used"
    assert chosen.rows.tolist() == [0]
    more = rows_worth_training(X, np.zeros(12, int), tree, ChoiceSettings(beta_1=0.01, beta_2=0.2))
    assert more.clusters[0].rule == "used and nearest" and len(more.rows) == 3


def test_order_of_rows_units_and_weights_change_nothing():
    X, y = blobs(120, 4)
    tree, some = grid_tree(), ChoiceSettings(beta_1=0.3, beta_2=0.2)
    rows = rows_worth_training(X, y, tree, some).rows
    order = np.random.default_rng(0).permutation(120)
    np.testing.assert_array_equal(np.sort(order[rows_worth_training(X[order], y[order], tree, some).rows]), rows)
    scale, shift = np.array([1000.0, 0.01]), np.array([5.0, -7.0])
    moved = tree.unscaled(1 / scale, shift)  # the same tree on X * scale + shift
    np.testing.assert_array_equal(rows_worth_training(X * scale + shift, y, moved, some).rows, rows)
    weight = np.where(np.arange(120) % 3 == 0, 0.0, 2.0)
    kept = np.flatnonzero(weight)
    chosen = rows_worth_training(X, y, tree, some, weight=weight, width=np.ones(2))
    np.testing.assert_array_equal(
        chosen.rows, kept[rows_worth_training(X[kept], y[kept], tree, some, width=np.ones(2)).rows]
    )
    np.testing.assert_array_equal(chosen.weight, 2.0)


def test_without_time_the_nearest_points_are_taken_and_it_says_so():
    X, y = blobs(200, 5)
    tree, stopped = grid_tree(), Budget(1e-9)
    chosen = rows_worth_training(X, y, tree, ChoiceSettings(beta_2=0.1), budget=stopped)
    leaf = route(tree, X)
    distance = split_distances(tree, X, leaf, np.ptp(X, axis=0))
    assert chosen.fallback and not chosen.interrupted and "time was over" in chosen.reason
    figures = chosen.figures()
    assert (figures["n_rows"], figures["n_points"], figures["fallback"]) == (200, 200, 1)
    assert figures["n_selected"] == len(chosen.rows) == 200 * figures["share"]
    for cluster in chosen.clusters:
        mine = np.flatnonzero((leaf == cluster.leaf) & (y == cluster.label))
        nearest = mine[np.argsort(distance[mine])][: int(np.ceil(0.1 * len(mine)))]
        assert set(nearest) == set(np.intersect1d(chosen.rows, mine))


def test_a_stop_ends_the_hulls_and_keeps_what_was_done():
    X, y = blobs(200, 6)
    budget, heard = Budget(), []

    def told(cluster):
        heard.append(cluster)
        if len(heard) == 2:
            budget.stop()

    chosen = rows_worth_training(X, y, grid_tree(), budget=budget, told=told)
    assert chosen.interrupted and "stopped" in chosen.reason
    assert [c.rule == "nearest" for c in heard] == [False, False] + [True] * (len(heard) - 2)
    assert [c.n_points for c in heard] == sorted(c.n_points for c in heard)


# ---------------------------------------------------------------- room


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(2, 16), st.sampled_from([0.05, 0.2, 0.6]), st.integers(0, 10**6))
def test_selection_with_room_is_feasible_and_begins_from_the_program(d, n, epsilon, seed):
    rng = np.random.default_rng(seed)
    X = in_unit_box(np.unique(np.round(rng.random((n, d)), 2), axis=0))
    found = selected_with_room(X, convex_hull(X), epsilon)
    np.testing.assert_array_equal(found.said, expressed_points(X, epsilon).inside)
    assert not np.any(found.inside & ~found.said)
    kept, dropped = np.flatnonzero(~found.inside), np.flatnonzero(found.inside)
    assert len(kept)
    for i in dropped:
        assert is_made_by(X[i], X[kept], room=epsilon)
    shares = found.combinations(dropped).toarray()
    assert not np.any(shares[:, dropped])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-7)
    assert np.all(np.abs(shares @ X - X[dropped]) <= epsilon + 1e-7)


def test_theorem_4_fails_for_points_near_one_another():
    # The program drops both ends of a line, each by its neighbour; the 0-1 program could not write them by anything.
    X = np.array([[0.0], [0.05], [1.0]])
    found = selected_with_room(X, convex_hull(X), 0.1)
    assert found.said.tolist() == [True, True, False]
    assert found.inside.tolist() == [False, True, False]


def test_room_selects_fewer_rows():
    X, y = blobs(150, 7)
    tree, wide = grid_tree(), 0.999
    none = rows_worth_training(X, y, tree, ChoiceSettings(beta_1=wide))
    some = rows_worth_training(X, y, tree, ChoiceSettings(epsilon=0.05, beta_1=wide))
    assert set(some.rows) < set(none.rows)
    assert rows_worth_training(X, y, tree, ChoiceSettings(epsilon=0.05), budget=Budget(1e-9)).fallback


# ---------------------------------------------------------------- Algorithm 2


def value_of(X, selected):
    """The objective of (6): points between the selected ones, less these; nothing if one is between the others."""
    chosen = np.flatnonzero(selected)
    if any(is_made_by(X[i], X[chosen[chosen != i]]) for i in chosen):
        return -np.inf
    return sum(is_made_by(X[i], X[chosen]) for i in np.flatnonzero(~selected)) - len(chosen)


def best_value(X):
    n = len(X)
    subsets = (list(c) for k in range(n + 1) for c in combinations(range(n), k))
    return max(value_of(X, np.isin(np.arange(n), c)) for c in subsets)


@pytest.mark.parametrize("seed", range(4))
def test_balanced_programs_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    X = in_unit_box(np.unique(rng.integers(0, 4, (7, 1 + seed % 2)), axis=0).astype(float))
    made = np.flatnonzero(convex_hull(X).inside)
    best, free = best_value(X), np.full(len(made), np.nan)
    if len(made):
        exact = get_solver("highs").solve(balanced_program(X, made, free, True))
        relaxed = get_solver("highs").solve(balanced_program(X, made, free, False))
        assert -exact.objective == pytest.approx(best, abs=1e-6)
        assert -relaxed.objective >= best - 1e-6
    found = value_of(X, balanced_block(X, Budget()))
    assert 0 <= found <= best


def test_balanced_selection_of_the_papers_figure():
    # A full rectangle and a few points on a circle around it: four vertices, not the circle.
    rectangle = np.stack(np.meshgrid(np.arange(5.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    circle = np.array([[2.0, 9.0], [2.0, -6.0], [-5.0, 1.5], [9.0, 1.5]])
    X = in_unit_box(np.vstack([rectangle, circle]))
    selected, inside = balanced_points(X)
    # The circle alone is worth 20 - 4, the rectangle 16 - 4 and a mixture no more.
    assert value_of(X, selected) == inside.sum() - selected.sum()
    assert inside.sum() - selected.sum() >= 16 - 4


def test_blocks_are_feasible_for_the_whole_cluster():
    rng = np.random.default_rng(8)
    X = rng.random((70, 2))
    selected, inside = balanced_points(X, block=12)
    assert not np.any(selected & inside) and selected.any()
    assert value_of(X, selected) == inside.sum() - selected.sum() > 0
    assert balanced_points(X, Budget(1e-9)) is None


def test_balanced_choice_fills_up_with_the_nearest():
    X, y = blobs(60, 9)
    chosen = rows_worth_training(X, y, grid_tree(), ChoiceSettings("balanced", beta_2=0.4))
    for cluster in chosen.clusters:
        assert cluster.rule in ("balanced", "balanced and nearest")
        assert cluster.n_selected >= min(np.ceil(0.4 * cluster.n_points), cluster.n_points - cluster.n_inside)


# ---------------------------------------------------------------- Algorithm 3


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_sets_of_a_round(seed, d):
    rng = np.random.default_rng(seed)
    X, y = np.round(rng.normal(size=(70, d)), 1), rng.integers(0, 2, 70)
    tree = Tree.stump(rng.normal(size=d), 0.0, [[2.0, 1.0], [1.0, 2.0]])
    found = round_rows(X, y, tree)
    parts = [found.wrong, found.inside, found.used, found.rest]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(70))
    np.testing.assert_array_equal(found.wrong, np.flatnonzero(predict_labels(tree, X) != y))
    np.testing.assert_array_equal(found.rows, np.setdiff1d(np.arange(70), found.inside))
    heavy = np.isin(found.rows, found.used)
    np.testing.assert_array_equal(found.weight, np.where(heavy, len(found.wrong) + 1, 1))
    leaf = route(tree, X)
    unit = in_unit_box(X)
    for i in found.inside:
        assert is_made_by(unit[i], unit[found.used[leaf[found.used] == leaf[i]]])
    for side in (1, 2):  # what is not inside is extreme, and comes once
        mine = [i for i in [*found.used, *found.rest] if leaf[i] == side]
        for i in mine:
            assert not is_made_by(unit[i], unit[[j for j in mine if j != i]])


def test_copies_of_an_extreme_row_are_inside_and_it_is_used():
    X = np.array([[0.0], [0.0], [1.0], [5.0]])
    tree = Tree.stump([1.0], 3.0, [[1.0, 0.0], [0.0, 1.0]])
    found = round_rows(X, np.array([0, 0, 0, 1]), tree)
    assert (found.inside.tolist(), found.used.tolist(), found.rest.tolist()) == ([1], [0], [2, 3])


def test_weights_of_a_round_have_the_units_of_the_rows():
    X, y = blobs(60, 10)
    weight = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    tree = grid_tree()
    found, tenfold = round_rows(X, y, tree, weight=weight), round_rows(X, y, tree, weight=10 * weight)
    np.testing.assert_allclose(tenfold.weight, 10 * found.weight)
    heavy = np.isin(found.rows, found.used)
    assert np.all(found.weight[heavy] > weight[found.wrong].sum())
    np.testing.assert_array_equal(found.weight[~heavy], weight[found.rows[~heavy]])


def test_a_round_without_time_drops_nothing_wrongly():
    X, y = blobs(60, 11)
    tree = grid_tree()
    early = round_rows(X, y, tree, budget=Budget(1e-9))
    assert not early.complete and not len(early.inside)
    assert len(early.rows) == 60


def test_used_rows_may_be_right_where_rows_between_them_are_wrong():
    # Proposition 2 overlooks that a class may have several leaves: the second tree is right on all rows of the round
    # and has more errors than the first. With its errors held the round forbids it.
    X = np.array([[0.0], [1.4], [1.5], [1.55], [1.6], [1.65], [3.0]])
    y = np.array([0, 1, 0, 0, 0, 0, 0])
    one_leaf = Tree.leaf([6.0, 1.0], 1)
    found = round_rows(X, y, one_leaf)
    assert (found.wrong.tolist(), found.used.tolist(), found.inside.tolist()) == ([1], [0, 6], [2, 3, 4, 5])
    between = Tree(
        left=np.array([1, -1, 3, -1, -1]),
        right=np.array([2, -1, 4, -1, -1]),
        weights=np.array([[1.0], [0.0], [1.0], [0.0], [0.0]]),
        threshold=np.array([1.0, 0.0, 2.0, 0.0, 0.0]),
        values=np.eye(2)[[0, 0, 1, 1, 0]],
        labels=np.array([0, 0, 1, 1, 0]),
    )
    wrong = np.flatnonzero(predict_labels(between, X) != y)
    assert not np.any(np.isin(wrong, found.rows)) and len(wrong) > len(found.wrong)
    held = round_rows(X, y, one_leaf, held=wrong)
    assert np.all(np.isin(wrong, held.rest))
    cost = held.weight @ (predict_labels(between, X[held.rows]) != y[held.rows])
    assert cost > held.weight @ (predict_labels(one_leaf, X[held.rows]) != y[held.rows])


# ---------------------------------------------------------------- parameters


@looped(
    "bad",
    [{"method": "all"}, {"epsilon": -0.1}, {"epsilon": np.nan}, {"beta_1": 0.0}, {"beta_2": 1.0}, {"block": 2},
     {"method": "balanced", "epsilon": 0.1}],
)  # fmt: skip
def test_bad_settings_are_refused(bad):
    with pytest.raises(InvalidInputError):
        ChoiceSettings(**bad)
