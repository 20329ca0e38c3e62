"""The fast search for extreme points selects what the linear programs select."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from treewright.core.budget import Budget
from treewright.models.svm1odt.selection.hull import convex_hull, in_unit_box
from treewright.models.svm1odt.selection.programs import (
    Corners,
    ExpressedPoint,
    absorbed_points,
    expressed_point,
    expressed_points,
)


def is_made_by(x, points, tolerance=1e-8):
    """Whether x is a convex combination of points, by another solver's interface and another program."""
    if not len(points):
        return False
    n, d = points.shape
    # Least sum of deviations; shares of sum 1.
    matrix = np.block([[points.T, np.eye(d), -np.eye(d)], [np.ones((1, n)), np.zeros((1, 2 * d))]])
    found = linprog(np.append(np.zeros(n), np.full(2 * d, 1e3)), A_eq=matrix, b_eq=np.append(x, 1.0))
    return found.status == 0 and found.fun <= 1e3 * tolerance


def cluster(kind, d, n, seed):
    rng = np.random.default_rng(seed)
    if kind == "random":
        X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d)
    elif kind == "grid":
        X = rng.integers(0, 4, (n, d)).astype(float)
    elif kind == "flat":
        k = rng.integers(1, d + 1)
        X = rng.normal(size=(n, k)) @ rng.normal(size=(k, d))
    elif kind == "collinear":
        # Lines of points through one another: many between two others.
        X = rng.integers(0, 4, (n, 3)) @ rng.normal(size=(3, d))
    elif kind == "tailed":
        # Most points are near one corner of their box, at scales far below its size.
        X = np.exp(3 * rng.normal(size=(n, d)))
    else:
        X = np.repeat(rng.normal(size=(n // 2 + 1, d)), 2, axis=0)
    # Shuffled: sorted rows begin and end with a corner, which can hide what goes wrong with the first row.
    return rng.permutation(np.unique(X, axis=0))


KINDS = ["random", "grid", "flat", "collinear", "repeated"]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.integers(1, 6), st.integers(1, 22), st.integers(0, 10**6))
def test_fast_hull_selects_the_points_of_the_programs(kind, d, n, seed):
    X = cluster(kind, d, n, seed)
    by_programs = expressed_points(in_unit_box(X))
    hull = convex_hull(X)
    assert hull.complete
    np.testing.assert_array_equal(hull.inside, by_programs.inside)
    np.testing.assert_array_equal(hull.corners, np.flatnonzero(~by_programs.inside))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([*KINDS, "tailed"]), st.integers(1, 9), st.integers(1, 120), st.integers(0, 10**6))
def test_points_inside_are_few_corners_combined(kind, d, n, seed):
    X = cluster(kind, d, n, seed)
    hull = convex_hull(X)
    rows = np.flatnonzero(hull.inside)
    shares = hull.combinations(rows).toarray()
    unit = in_unit_box(X)
    assert np.all(shares >= 0)
    assert not np.any(shares[:, rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-8)
    np.testing.assert_allclose(shares @ unit, unit[rows], atol=1e-8)
    # Caratheodory, on which the threshold of Algorithm 1 rests.
    assert np.all(np.count_nonzero(shares, axis=1) <= d + 1)
    assert np.all(shares.max(axis=1, initial=1.0 if not len(rows) else 0.0) >= 1 / (d + 1) - 1e-8)


@pytest.mark.parametrize(("d", "n"), [(2, 400), (3, 400), (5, 150)])
def test_corners_are_those_of_qhull(d, n):
    X = np.random.default_rng(d).normal(size=(n, d))
    np.testing.assert_array_equal(convex_hull(X).corners, np.sort(ConvexHull(X).vertices))


@pytest.mark.parametrize("d", [2, 3, 4, 6])
def test_corners_of_a_full_grid_are_those_of_the_cube(d):
    X = np.stack(np.meshgrid(*[np.arange(4.0)] * d), axis=-1).reshape(-1, d)
    X = X[: 4**d]
    corners = convex_hull(X).corners
    np.testing.assert_array_equal(corners, np.flatnonzero(np.all((X == 0) | (X == 3), axis=1)))


def test_points_of_a_sphere_are_all_corners_and_scaled_ones_are_not():
    rng = np.random.default_rng(3)
    ball = rng.normal(size=(150, 9))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    X = np.vstack([ball, 0.2 * ball])
    hull = convex_hull(X)
    assert np.all(np.isin(np.arange(150), hull.corners))
    for p in np.flatnonzero(hull.inside)[:10]:
        assert is_made_by(X[p], X[hull.corners])
    for p in hull.corners[-10:]:
        assert not is_made_by(X[p], np.delete(X, p, axis=0))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_units_and_places_of_features_do_not_matter(scale):
    X = cluster("grid", 3, 60, 5)
    moved = X * np.array([scale, 1.0, 7.0]) + np.array([0.0, 1000.0, -3.0])
    np.testing.assert_array_equal(convex_hull(X).corners, convex_hull(moved).corners)


def test_one_point_and_few_points_are_corners():
    assert convex_hull(np.ones((1, 3))).corners.tolist() == [0]
    assert convex_hull(np.eye(4)).corners.tolist() == [0, 1, 2, 3]
    assert convex_hull(np.arange(5.0)[:, None]).corners.tolist() == [0, 4]


def test_a_point_in_the_middle_has_no_direction():
    for X in (
        [[1.2], [1.0], [0.0], [2.0]],
        [[0.2, 0.1], [0.0, 0.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]],
    ):
        hull = convex_hull(np.array(X))
        np.testing.assert_array_equal(hull.corners, np.arange(2, len(X)))


def test_without_time_no_point_is_wrongly_inside():
    X = np.random.default_rng(0).normal(size=(500, 4))
    stopped = Budget()
    stopped.stop()
    hull = convex_hull(X, stopped)
    assert not hull.complete
    assert not np.any(hull.inside & ~convex_hull(X).inside)
    assert convex_hull(X).combinations(np.flatnonzero(convex_hull(X).inside), stopped) is None


def test_program_of_one_point_has_nonnegative_shares():
    # Beyond the end of a line: without the bounds that the paper leaves out it would be an affine combination.
    X = np.array([[0.0], [1.0], [2.0]])
    assert expressed_point(X, 2)[0] == pytest.approx(0.0, abs=1e-7)
    b, shares = expressed_point(X, 1)
    assert b == pytest.approx(1.0)
    np.testing.assert_allclose(shares, [0.5, 0.0, 0.5], atol=1e-9)


def test_program_with_room_is_fractional_where_the_room_is_short():
    # Coordinates within 0.1: b (1 - 0.8) <= 0.1, so b is a half and its floor is 0.
    X = np.array([[0.0], [0.8], [1.0]])
    assert expressed_point(X, 2, epsilon=0.1)[0] == pytest.approx(0.5)
    assert expressed_point(X, 2, epsilon=0.2)[0] == pytest.approx(1.0)
    assert expressed_points(X, epsilon=0.1).inside.tolist() == [False, True, False]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(3, 15), st.integers(0, 10**6))
def test_transformation_leaves_shares_to_corners_alone(d, n, seed):
    X = in_unit_box(cluster("random", d, n, seed))
    solution = expressed_points(X)
    made = absorbed_points(solution)
    np.testing.assert_array_equal(made.inside, solution.inside)
    shares = made.shares.toarray()
    assert not np.any(shares[:, made.inside]) and not np.any(shares[~made.inside])
    np.testing.assert_allclose(shares[made.inside].sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(shares[made.inside] @ X, X[made.inside], atol=1e-6)


def test_transformation_is_the_papers_elimination():
    rng = np.random.default_rng(1)
    inside = np.array([False, True, True, True, False])
    table = rng.dirichlet(np.ones(4), 5)
    shares = np.zeros((5, 5))
    for j in np.flatnonzero(inside):
        shares[j, np.arange(5) != j] = table[j]
    from scipy import sparse

    made = absorbed_points(ExpressedPoint(inside, sparse.csr_array(shares))).shares.toarray()
    lam = shares.copy()  # as in the proof of Theorem 4, one share at a time
    for _ in range(400):
        pairs = [(j, i) for j in (1, 2, 3) for i in (1, 2, 3) if i != j and lam[j, i] > 1e-15]
        if not pairs:
            break
        j, i = pairs[0]
        row = lam[j] + lam[j, i] * lam[i]
        row[[i, j]] = 0.0
        lam[j] = row / (1 - lam[j, i] * lam[i, j])
    np.testing.assert_allclose(made[inside], lam[inside], atol=1e-10)


def test_points_that_only_make_one_another_keep_one():
    # Two points nearer than the room: the program says both are inside, and nothing is left to write them by.
    X = np.array([[0.0], [0.05], [1.0], [0.97]])
    solution = expressed_points(X, epsilon=0.1)
    assert solution.inside.all()
    made = absorbed_points(solution)
    assert not made.inside.all()
    np.testing.assert_allclose(made.shares.toarray()[made.inside].sum(axis=1), 1.0)


def test_program_of_corners_is_kept_between_questions():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(12, 3))
    program = Corners(points)
    for x in rng.normal(size=(30, 3)) * 0.7:
        shares = program.shares(x)
        assert (shares is not None) == is_made_by(x, points)
        if shares is not None:
            np.testing.assert_allclose(points.T @ shares, x, atol=1e-7)
    inner = points.mean(axis=0)
    assert program.shares(inner) is not None
    for k in range(9):
        program.leave_out(k)
    assert program.shares(inner) is None
    assert program.shares(points[11], without=11) is None and program.shares(points[11]) is not None
