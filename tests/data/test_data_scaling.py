"""Scalings: their formulas, their inverses on points and trees, and extreme ranges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from tests.examples import looped

from treewright.data import Scaling, s2oct_scaling, unit_scaling
from treewright.exceptions import InvalidInputError
from treewright.tree import Tree, predict_values, route

SCALINGS = [unit_scaling, s2oct_scaling]
LARGEST = np.finfo(np.float64).max


# ---------------------------------------------------------------------- formulas


def test_unit():
    X = np.array([[2.0, -1.0, 7.0], [4.0, 3.0, 7.0], [3.0, 0.0, 7.0]])
    assert unit_scaling(X).apply(X).tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.5, 0.25, 0.0]]


def test_unit_of_sparse_points_keeps_zeros():
    X = np.array([[0.0, -1.0, 7.0, 0.0], [4.0, 3.0, 7.0, 0.0], [3.0, 0.0, 7.0, 0.0]])
    scaling = unit_scaling(sparse.csr_array(X))
    scaled = scaling.apply(sparse.csr_array(X))
    assert scaled.toarray().tolist() == [[0.0, -0.25, 0.0, 0.0], [1.0, 0.75, 0.0, 0.0], [0.75, 0.0, 0.0, 0.0]]
    assert np.array_equal(scaling.scale, unit_scaling(X).scale)
    with pytest.raises(InvalidInputError, match="cannot be shifted"):
        unit_scaling(X).apply(sparse.csr_array(X))


def test_s2oct_centres_by_the_middle_of_the_range():
    X = np.array([[0.0, 10.0], [1.0, 10.0], [200.0, 10.0]])  # half range 100: stays
    assert s2oct_scaling(X).apply(X).tolist() == [[-100.0, 0.0], [-99.0, 0.0], [100.0, 0.0]]


def test_s2oct_scales_only_what_leaves_the_box():
    X = np.array([[1000.0, 0.0], [1100.0, 0.5], [1400.0, 1.0]])
    scaled = s2oct_scaling(X).apply(X)
    low, high = X[:, 0].min(), X[:, 0].max()
    np.testing.assert_allclose(scaled[:, 0], 200 * (X[:, 0] - low) / (high - low) - 100, rtol=1e-14)
    assert scaled[:, 1].tolist() == [-0.5, 0.0, 0.5]


def test_a_constant_feature_never_matters():
    X = np.array([[1.0, 7.0], [2.0, 7.0]])
    tree = Tree.stump(weights=[1.0, 5.0], threshold=0.1, values=[[1.0, 0.0], [0.0, 1.0]])
    for make in SCALINGS:
        assert make(X).scale[1] == 0
        assert make(X).invert_tree(tree).weights[0, 1] == 0
        assert make(X).invert_points(make(X).apply([[1.0, 99.0]]))[0, 1] == 7.0


def test_identity():
    scaling = Scaling.identity(3)
    X = np.array([[1.5, -2.0, 1e300]])
    assert scaling.apply(X).tolist() == scaling.invert_points(X).tolist() == X.tolist()
    tree = Tree.stump(weights=[1.0, 5.0, 0.0], threshold=0.1, values=[[1.0, 0.0], [0.0, 1.0]])
    assert scaling.invert_tree(tree) == tree and scaling.apply_tree(tree) == tree


def test_missing_values_stay_missing():
    scaling = unit_scaling([[0.0, 1.0], [2.0, 1.0]])
    assert np.isnan(scaling.apply([[np.nan, 1.0]])).tolist() == [[True, False]]
    assert np.isnan(scaling.apply([[np.nan, np.nan]])).tolist() == [[True, True]]


# ---------------------------------------------------------------------- refusing


@pytest.mark.parametrize(
    "scale, shift, words",
    [
        ([1.0, np.inf], [0.0, 0.0], "finite"),
        ([1.0], [0.0, 0.0], "scale has 1 features, shift has 2"),
        ([-1.0], [0.0], "zero or more"),
        ([[1.0]], [[0.0]], "one finite number a feature"),
    ],
)
def test_scalings_that_are_refused(scale, shift, words):
    with pytest.raises(InvalidInputError, match=words):
        Scaling(scale=np.array(scale), shift=np.array(shift))


@pytest.mark.parametrize("make", SCALINGS)
def test_points_that_are_refused(make):
    with pytest.raises(InvalidInputError, match="inf in row 2, feature 0"):
        make([[1.0], [np.nan], [np.inf]])
    with pytest.raises(InvalidInputError, match="at least one row"):
        make(np.zeros((0, 2)))
    with pytest.raises(InvalidInputError, match="shape"):
        make([1.0, 2.0])
    with pytest.raises(InvalidInputError, match=r"\(1, 3\), the scaling needs \(n, 1\)"):
        make([[1.0], [2.0]]).apply([[1.0, 2.0, 3.0]])


def test_trees_that_are_refused():
    scaling = unit_scaling([[1.0, 0.0], [3.0, 1.0]])
    with pytest.raises(InvalidInputError, match="tree has 1 features, the scaling 2"):
        scaling.invert_tree(Tree.leaf([1.0, 0.0], n_features=1))
    coded = Tree(
        left=[1, -1, -1],
        right=[2, -1, -1],
        weights=np.zeros((3, 2)),
        threshold=np.zeros(3),
        values=np.ones((3, 2)),
        labels=[0, 0, 1],
        category=[0, -1, -1],
        left_categories=[[True, False]] * 3,
    )
    with pytest.raises(InvalidInputError, match="feature 0 has categorical splits"):
        scaling.invert_tree(coded)
    only_second = Scaling(scale=np.array([1.0, 2.0]), shift=np.array([0.0, 1.0]))
    assert only_second.invert_tree(coded) == coded


# ---------------------------------------------------------------------- properties


def points(elements, max_features=3):
    shape = st.tuples(st.integers(1, 12), st.integers(1, max_features))
    return shape.flatmap(lambda s: hnp.arrays(np.float64, s, elements=elements))


ordinary = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda v: round(v, 6))
any_finite = st.floats(allow_nan=False, allow_infinity=False)
extreme = st.sampled_from([0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-310, 1e-300, -1e-300, 1e300, -1e300, LARGEST, -LARGEST])


def rounding_of_shift(X, scaling):
    """How far a scaled value may be off because the shift is a rounded number as large as the values."""
    return 2 * np.finfo(np.float64).eps * (np.abs(X).max(axis=0) * scaling.scale)


@pytest.mark.parametrize("make", SCALINGS)
@given(X=points(ordinary))
def test_points_come_back(make, X):
    scaling = make(X)
    back = scaling.invert_points(scaling.apply(X))
    varied = np.ptp(X, axis=0) > 0
    # The shift is added back, so rounding is relative to the values, not to the range.
    assert np.all(np.abs(back - X)[:, varied] <= 1e-14 * np.abs(X).max(axis=0)[varied])
    assert np.array_equal(back[:, ~varied], X[:, ~varied])


@given(X=points(ordinary))
def test_scaled_ranges(X):
    varied = np.ptp(X, axis=0) > 0
    unit, box = unit_scaling(X).apply(X), s2oct_scaling(X)
    assert np.all((unit >= 0) & (unit <= 1))
    assert np.all(unit[:, varied].max(axis=0, initial=1) >= 1 - 1e-15) and np.all(unit.min(axis=0) == 0)
    assert np.all(np.abs(box.apply(X)) <= 100 * (1 + 1e-15) + rounding_of_shift(X, box))


@pytest.mark.parametrize("make", SCALINGS)
@given(X=points(st.one_of(any_finite, extreme)))
def test_extreme_ranges_stay_finite(make, X):
    scaling = make(X)
    scaled = scaling.apply(X)
    assert np.all(np.isfinite(scaled))
    assert np.all(np.isfinite(scaling.invert_points(scaled)))
    bound = {unit_scaling: 1, s2oct_scaling: 100}[make]
    assert np.all(np.abs(scaled) <= bound * (1 + 1e-12) + rounding_of_shift(X, scaling))
    assert np.all(scaled[:, np.all(np.equal(X, X[0]), axis=0)] == 0)
    used = scaling.scale > 0
    away = np.abs(scaling.invert_points(scaled) / 2 - X / 2)[:, used]  # halves do not overflow
    assert np.all(away <= 1e-14 * np.abs(X).max(axis=0)[used])


@st.composite
def trees(draw, n_features):
    """Complete trees of depth 0 to 2 with small weights."""
    depth = draw(st.integers(0, 2))
    n_branches = 2**depth - 1
    weights = draw(hnp.arrays(np.float64, (n_branches, n_features), elements=st.integers(-4, 4).map(float)))
    threshold = draw(hnp.arrays(np.float64, n_branches, elements=st.integers(-8, 8).map(lambda v: v / 4)))
    n_nodes = 2 * n_branches + 1
    return Tree.from_heap(
        split=np.ones(n_branches, dtype=bool),
        weights=weights,
        threshold=threshold,
        values=np.ones((n_nodes, 2)),
        labels=np.arange(n_nodes) % 2,
    )


def far_from_every_split(tree, points, margin):
    slack = np.abs(points @ tree.weights[tree.branches].T - tree.threshold[tree.branches])
    return np.all(slack > margin, axis=1)


@pytest.mark.parametrize("make", SCALINGS)
@given(X=points(ordinary), data=st.data())
def test_inverted_trees_route_the_same(make, X, data):
    tree = data.draw(trees(X.shape[1]))
    scaling = make(X)
    scaled = scaling.apply(X)
    # Unscaled, a split loses the digits that cancel between x and its shift.
    lost = np.max(np.abs(X).max(axis=0) * scaling.scale, initial=1.0)
    clear = far_from_every_split(tree, scaled, 1e-12 * lost)
    inverted = scaling.invert_tree(tree)
    assert np.array_equal(route(inverted, X)[clear], route(tree, scaled)[clear])
    assert np.array_equal(inverted.labels, tree.labels)
    again = scaling.apply_tree(inverted)
    assert np.array_equal(route(again, scaled)[clear], route(tree, scaled)[clear])


@pytest.mark.parametrize("make", SCALINGS)
@given(X=points(ordinary), data=st.data())
def test_scaled_trees_route_the_same(make, X, data):
    tree = data.draw(trees(X.shape[1]))
    scaling = make(X)
    clear = far_from_every_split(tree, X, 1e-12 * (1 + np.abs(X).max()))
    scaled_tree = scaling.apply_tree(tree)
    assert np.array_equal(route(scaled_tree, scaling.apply(X))[clear], route(tree, X)[clear])


@looped("make", SCALINGS)
@looped("size", [1e-307, 1e-300, 1e-200, 1e200, 1e300, 8e307, LARGEST])
@looped("weight", [1.0, -3.0, 1e-12, 1e5])
def test_trees_on_extreme_ranges(make, size, weight):
    X = np.linspace(-1, 1, 9)[:, None] * np.array([[size, 1.0]])
    scaling = make(X)
    scaled = scaling.apply(X)
    split = 0.3 * weight * (scaled[:, 0].max() - scaled[:, 0].min()) + weight * scaled[0, 0]
    tree = Tree.stump(weights=[weight, 0.0], threshold=split, values=[[1.0, 0.0], [0.0, 1.0]])
    expected = route(tree, scaled)
    assert 0 < np.count_nonzero(expected == 1) < len(X)
    inverted = scaling.invert_tree(tree)
    assert np.array_equal(route(inverted, X), expected)
    assert np.array_equal(route(scaling.apply_tree(inverted), scaled), expected)


@pytest.mark.parametrize("make", SCALINGS)
@given(X=points(ordinary), data=st.data())
def test_linear_leaves_predict_the_same_on_scaled_points(make, X, data):
    tree, scaling = data.draw(trees(X.shape[1])), make(X)
    small = st.integers(-8, 8).map(float)
    slopes = data.draw(hnp.arrays(np.float64, (tree.n_nodes, 2, X.shape[1]), elements=small))
    tree, scaled = tree.with_leaves(tree.values, None, slopes), scaling.apply(X)
    lost = np.max(np.abs(X).max(axis=0) * scaling.scale, initial=1.0)
    clear = far_from_every_split(tree, scaled, 1e-12 * lost)
    inverted = scaling.invert_tree(tree)
    assert predict_values(inverted, X)[clear] == pytest.approx(predict_values(tree, scaled)[clear], abs=1e-12 * lost)
    again = scaling.apply_tree(inverted)
    used = scaling.scale > 0
    assert again.slopes[:, :, used] == pytest.approx(slopes[:, :, used]) and not np.any(again.slopes[:, :, ~used])
    assert again.values == pytest.approx(tree.values, abs=1e-12 * lost)
    # The other way round: a tree in the units of the data. Features of scale zero count with their value.
    size = 1e-12 * (1 + np.abs(X).max())
    clear = far_from_every_split(tree, X, size)
    there = predict_values(scaling.apply_tree(tree), scaled)
    assert there[clear] == pytest.approx(predict_values(tree, X)[clear], abs=10 * size)


def test_slopes_that_floating_point_cannot_hold_are_left_out():
    scaling = Scaling(scale=np.array([1e300, 1e-300]), shift=np.array([0.0, 1e308]))
    leaf = Tree.leaf([1.0], 2, classification=False)
    inverted = scaling.invert_tree(leaf.with_leaves([[1.0]], None, [[[1e20, 2.0]]]))
    assert inverted.slopes.tolist() == [[[0.0, 2e-300]]]
    assert scaling.apply_tree(leaf.with_leaves([[1.0]], None, [[[1.0, 1e20]]])).slopes.tolist() == [[[1e-300, 0.0]]]


def test_a_range_too_small_to_invert_counts_as_constant():
    X = np.array([[0.0, 0.0], [5e-324, 1.0]])
    assert unit_scaling(X).scale[0] == 0


def test_new_points_far_away_stay_finite():
    scaling = unit_scaling([[0.0], [1e-300]])
    assert np.isfinite(scaling.apply([[1e300], [-1e300]])).all()
