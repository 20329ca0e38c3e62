"""What the tests' own loop over examples promises."""

import pytest

from tests.examples import looped


@pytest.mark.parametrize("case", ["first"])
@looped("extra", [None])
def test_cases_and_fixtures_stay_beside_a_loop(extra, case, tmp_path):
    assert extra is None and case == "first" and tmp_path.is_dir()


def test_every_example_runs_in_order():
    seen = []
    looped("a, b", [(1, "x"), (2, "y")])(looped("seed", iter(range(2)))(lambda a, b, seed: seen.append((a, b, seed))))()
    assert seen == [(1, "x", 0), (1, "x", 1), (2, "y", 0), (2, "y", 1)]


def test_a_failure_names_its_examples():
    @looped("seed", range(9))
    @looped("kind", ["tame", "odd"])
    def body(kind, seed):
        assert kind == "tame" or seed < 4

    with pytest.raises(AssertionError) as caught:
        body()
    assert caught.value.__notes__ == ["kind = 'odd'", "seed = 4"]


def test_no_examples_and_names_that_a_test_does_not_take_are_mistakes():
    with pytest.raises(AssertionError, match="has no examples"):
        looped("seed", [])(lambda seed: None)()
    with pytest.raises(AssertionError, match="does not take seeds"):
        looped("seeds", range(3))(lambda seed: None)
