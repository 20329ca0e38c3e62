"""Segments against values along the way, step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treewright.data import PointTotals
from treewright.splits.thresholds import Segment


def way_of(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 9))
    draw = (lambda: rng.integers(-3, 4, n).astype(float)) if rng.random() < 0.5 else (lambda: rng.normal(size=n))
    return rng, draw(), draw()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_sides_along_the_way_are_those_of_the_values(seed, some):
    rng, start, end = way_of(seed)
    among = rng.random(len(start)) < 0.7 if some else np.ones(len(start), dtype=bool)
    way = Segment(start, end, among if some else None)
    assert np.all(np.diff(way.edges) >= 0) and way.edges[0] == 0.0 and way.edges[-1] == 1.0
    assert sorted(way.points) == np.flatnonzero(((start > 0) != (end > 0)) & among).tolist()
    right = start > 0
    for step in range(len(way.points) + 1):
        if step:
            right[way.points[step - 1]] ^= True
        value = start + way.middle(step) * (end - start)
        neighbours = way.points[max(0, step - 1) : step + 1]
        assert np.abs(value[neighbours]).min(initial=np.inf) >= way.room[step] - 1e-12
        if way.room[step] > 1e-9:
            assert np.array_equal((value > 0)[among], right[among])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-9, 0.1173, 0.5171]), st.booleans())
def test_the_best_step_is_the_best_of_all_places(seed, room, widest):
    rng, start, end = way_of(seed)
    if not len(start):
        return
    totals = PointTotals(rng.integers(0, 3, (len(start), 2)), [[0, 2], [1, 0]], [[9, 3], [9, 4]])
    way = Segment(start, end)
    label = (start > 0).astype(int)
    missed = totals.missed_along(label, way.points, (end[way.points] > 0).astype(int))
    found = way.best(missed, room, widest)
    each = []
    for step, (low, high) in enumerate(zip(way.edges[:-1], way.edges[1:], strict=True)):
        value = start + (low + high) / 2 * (end - start)
        change = way.points[max(0, step - 1) : step + 1]
        if np.abs(value[change]).min(initial=np.inf) >= room and high > low:
            each.append((totals.missed((value > 0).astype(int)), (low + high) / 2, high - low))
    if found is None:
        assert not each
        return
    share, least = found
    assert least == min(cost for cost, _, _ in each)
    ties = [(middle, width) for cost, middle, width in each if cost == least]
    best = max(ties, key=lambda tie: tie[1]) if widest else ties[0]
    assert share == pytest.approx(best[0])


def test_without_changes_there_is_one_step():
    way = Segment(np.array([1.0, -2.0]), np.array([2.0, -1.0]))
    assert way.edges.tolist() == [0.0, 1.0] and way.room.tolist() == [np.inf]
    assert way.best(np.array([4]), room=1.0) == (0.5, 4.0)
