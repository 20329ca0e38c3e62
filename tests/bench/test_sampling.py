"""The papers' protocols: sizes, chances, seeds and refusals."""

from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.examples import looped

from harness.sampling import biased_sample, drop_duplicate_rows, simple_random_sample
from treewright.exceptions import InvalidInputError

Y = np.repeat(["A", "B"], [300, 700])

# ---------------------------------------------------------------------- biased samples


@given(st.integers(1, 300), st.floats(1e-3, 1.0), st.integers(0, 2**32))
def test_size_of_samples(n, share, seed):
    wanted = max(1, int(share * n + 0.5))
    y = np.arange(n) % 2
    assert simple_random_sample(n, share, seed).sum() == wanted
    assert biased_sample(y, share, {k: 1.0 + k for k in np.unique(y).tolist()}, random_state=seed).sum() == wanted


def test_masks_have_one_entry_a_row():
    for mask in (biased_sample(Y, 0.1, positive="A", random_state=0), simple_random_sample(1000, 0.1, 0)):
        assert mask.dtype == bool and mask.shape == (1000,)


def successive_chances(weights, size):
    """Chance that each set is drawn, one row after the other without replacement, exactly."""
    chances = Counter()
    for order in permutations(range(len(weights)), size):
        chance, left = Fraction(1), sum(weights)
        for row in order:
            chance *= Fraction(weights[row]) / left
            left -= weights[row]
        chances[frozenset(order)] += chance
    return chances


@pytest.mark.parametrize("per_class", [False, True])
def test_chances_are_those_of_successive_drawing(per_class):
    y = np.array(["A", "B", "B", "B", "A"])
    a, b = Fraction(85, 100), Fraction(15, 100)
    weights = [a / 2 if v == "A" else b / 3 for v in y] if per_class else [a if v == "A" else b for v in y]
    chances = successive_chances(weights, 2)
    rng, n_draws = np.random.default_rng(0), 5_000
    drawn = Counter(
        frozenset(np.flatnonzero(biased_sample(y, 0.4, positive="A", random_state=rng, per_class=per_class)))
        for _ in range(n_draws)
    )
    for rows, chance in chances.items():
        deviation = np.sqrt(float(chance * (1 - chance)) / n_draws)
        assert abs(drawn[rows] / n_draws - float(chance)) < 5 * deviation


def test_weights_as_pair_or_mapping_are_the_same():
    pair = biased_sample(Y, 0.1, (0.85, 0.15), positive="A", random_state=3)
    mapping = biased_sample(Y, 0.1, {"A": 0.85, "B": 0.15}, random_state=3)
    multiple = biased_sample(Y, 0.1, {"B": 3, "A": 17}, random_state=3)
    assert np.array_equal(pair, mapping) and np.array_equal(pair, multiple)


def test_several_classes_share_the_weight_of_the_others():
    y = np.repeat([1, 2, 3], 400)
    pair = biased_sample(y, 0.1, positive=1, random_state=0)
    mapping = biased_sample(y, 0.1, {1: 0.85, 2: 0.15, 3: 0.15}, random_state=0)
    assert np.array_equal(pair, mapping)


def test_a_class_of_weight_zero_is_not_drawn():
    mask = biased_sample(Y, 0.3, {"A": 1, "B": 0}, random_state=0)
    assert np.array_equal(mask, Y == "A")
    with pytest.raises(InvalidInputError, match="310 rows are to be drawn, but only 300 have a weight; zero for 'B'"):
        biased_sample(Y, 0.31, {"A": 1, "B": 0})


def test_all_classes_on_request():
    y = np.array(["A"] * 50 + ["B"])
    lacking = [s for s in range(50) if len(set(y[biased_sample(y, 0.1, positive="A", random_state=s)])) == 1]
    assert lacking  # the plain protocol may leave a class out
    for seed in lacking:
        mask = biased_sample(y, 0.1, positive="A", random_state=seed, require_all_classes=True)
        assert set(y[mask]) == {"A", "B"} and mask.sum() == 5


@pytest.mark.parametrize(
    "share, weights, words",
    [
        (0.001, (0.85, 0.15), "1 rows are drawn, too few for all 2 classes"),
        (0.1, (1, 0), "class 'B' has weight zero and is never drawn"),
        (0.002, (1, 1e-12), "none of 1000 samples of 2 rows had all classes 'A', 'B'.*weight of 'B'"),
    ],
)
def test_all_classes_where_that_cannot_be(share, weights, words):
    with pytest.raises(InvalidInputError, match=words):
        biased_sample(Y, share, weights, "A", 0, require_all_classes=True)


@looped(
    "arguments, words",
    [
        ({"share": 0.0}, "share is 0.0; it must be above 0"),
        ({"share": 1.5}, "share is 1.5"),
        ({"share": float("nan")}, "share is nan"),
        ({"share": "0.1"}, "share is '0.1'; it must be a number"),
        ({"share": True}, "share is True; it must be a number"),
        ({"positive": None}, "positive is None; .* must be a class: 'A', 'B'"),
        ({"positive": "Z"}, "positive is 'Z'"),
        ({"weights": (1, 2, 3)}, "two numbers"),
        ({"weights": (1, -2)}, "none negative"),
        ({"weights": (0, 0)}, "not all zero"),
        ({"weights": (1, float("nan"))}, "finite"),
        ({"weights": {"A": 1}}, "class 'B' has no weight"),
        ({"weights": {"A": 1, "B": 1, "C": 1}}, "class 'C' is not in y"),
        ({"weights": {"A": 1, "B": "x"}}, "weight of class 'B' is 'x'"),
        ({"random_state": "seed"}, "random_state is 'seed'"),
        ({"random_state": -1}, "random_state is -1"),
        ({"y": []}, "there are no rows"),
        ({"y": ["A", None]}, "row 1 has none"),
    ],
)
def test_biased_samples_that_are_refused(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        biased_sample(**{"y": Y, "share": 0.1, "positive": "A", **arguments})


# ---------------------------------------------------------------------- simple random samples


def test_every_row_has_the_same_chance():
    rng, n_draws = np.random.default_rng(0), 4000
    counts = sum(simple_random_sample(10, 0.3, rng).astype(int) for _ in range(n_draws))
    assert np.all(np.abs(counts / n_draws - 0.3) < 5 * np.sqrt(0.3 * 0.7 / n_draws))


@pytest.mark.parametrize("n, share", [(0, 0.5), (-1, 0.5), (10, 0.0), (10, 1.1), (10, -0.1)])
def test_simple_samples_that_are_refused(n, share):
    with pytest.raises(InvalidInputError):
        simple_random_sample(n, share)


def test_seeds():
    draws = {
        "biased": lambda r: biased_sample(Y, 0.1, positive="A", random_state=r),
        "simple": lambda r: simple_random_sample(1000, 0.1, r),
    }
    for draw in draws.values():
        assert np.array_equal(draw(5), draw(5))
        assert np.array_equal(draw(5), draw(np.int64(5)))
        assert not np.array_equal(draw(5), draw(6))
        assert np.array_equal(draw(np.random.RandomState(1)), draw(np.random.RandomState(1)))
        assert np.array_equal(draw(np.random.default_rng(1)), draw(np.random.default_rng(1)))
        assert np.array_equal(draw(np.random.SeedSequence(1)), draw(np.random.SeedSequence(1)))
        generator = np.random.default_rng(1)
        assert not np.array_equal(draw(generator), draw(generator))
        legacy = np.random.RandomState(1)
        assert not np.array_equal(draw(legacy), draw(legacy))
        assert draw(None).shape == (1000,)


# ---------------------------------------------------------------------- repeated rows


@given(
    st.integers(0, 3).flatmap(
        lambda p: hnp.arrays(
            np.float64, st.tuples(st.integers(1, 20), st.just(p)), elements=st.integers(-1, 1).map(float)
        )
    ),
    st.data(),
)
def test_the_first_of_equal_rows_is_kept(X, data):
    y = data.draw(st.lists(st.sampled_from(["a", "b"]), min_size=len(X), max_size=len(X)))
    seen, expected = set(), []
    for row, (x, label) in enumerate(zip(X.tolist(), y, strict=True)):
        if (*x, label) not in seen:
            expected.append(row)
        seen.add((*x, label))
    assert drop_duplicate_rows(X, y).tolist() == expected


def test_equal_numbers_that_are_written_differently():
    assert drop_duplicate_rows([[0.0], [-0.0], [np.nan], [-np.nan]], [1, 1, 1, 1]).tolist() == [0, 2]
    assert drop_duplicate_rows([[1.0], [1.0], [1.0]], ["a", None, None]).tolist() == [0, 1]
    frame = pd.DataFrame({"u": [1, 1, 2], "v": [0.5, 0.5, 0.5]})
    assert drop_duplicate_rows(frame, pd.Series([1, 1, 1])).tolist() == [0, 2]


def test_repeated_rows_of_different_length_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        drop_duplicate_rows([[1.0], [2.0]], [1])
