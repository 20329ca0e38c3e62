"""The file of rows: append-only, whatever happens."""

import json
import multiprocessing
import warnings

import numpy as np
import pytest

from harness import Store, latest
from treewright.exceptions import InvalidInputError


def write_many(path, name, times, together):
    store = Store(path)
    together.wait()
    for k in range(times):
        store.append({"key": f"{name} {k}", "text": name * (100 * (k % 50))})


def test_what_goes_in_comes_out(tmp_path):
    store = Store(tmp_path / "new" / "rows.jsonl")
    assert store.rows() == []
    row = {"key": "a", "n": np.int64(3), "x": np.float32(0.5), "list": (1, 2), "array": np.arange(2), "ä": "ß"}
    store.append(row)
    store.append({"key": "b", "specification": "other", "bad": [float("nan"), np.inf, -np.inf], "who": store.path})
    assert store.rows("other") == [
        {"key": "b", "specification": "other", "bad": [None, None, None], "who": str(store.path)}
    ]
    assert store.rows()[0] == {"key": "a", "n": 3, "x": 0.5, "list": [1, 2], "array": [0, 1], "ä": "ß"}
    for line in store.path.read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("cut", [1, 2, 5, 13])
def test_a_torn_last_line_is_left_out_and_does_not_spoil_the_next(tmp_path, cut):
    store = Store(tmp_path / "rows.jsonl")
    store.append({"key": "a"})
    store.append({"key": "b"})
    store.path.write_bytes(store.path.read_bytes()[:-cut])
    kept = [{"key": "a"}, {"key": "b"}] if cut == 1 else [{"key": "a"}]  # only the end of the line is missing
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.rows() == kept
    store.append({"key": "c"})
    if cut in (1, 13):  # nothing is broken; 13 took the whole row away
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert store.rows() == [*kept, {"key": "c"}]
    else:
        with pytest.warns(UserWarning, match="broken lines 2"):
            assert store.rows() == [*kept, {"key": "c"}]


def test_two_writers_do_not_mix(tmp_path):
    path = tmp_path / "rows.jsonl"
    forks = "fork" in multiprocessing.get_all_start_methods()  # so that nothing is imported anew
    context = multiprocessing.get_context("fork" if forks else "spawn")
    together = context.Barrier(2, timeout=60)  # neither is done before the other begins
    writers = [context.Process(target=write_many, args=(path, name, 200, together)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for name in "ab":
        own = [row for row in rows if row["text"] == name * len(row["text"]) and row["key"].startswith(name)]
        assert [row["key"] for row in own] == [f"{name} {k}" for k in range(200)]
    assert len(rows) == 400


def test_the_last_row_of_a_key_counts():
    rows = [{"key": "a", "n": 1}, {"key": "b", "n": 2}, {"key": "a", "n": 3}]
    assert latest(rows) == [rows[2], rows[1]]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("[1, 2]\n")
    with pytest.raises(InvalidInputError, match="line 1 is not an object"):
        Store(path).rows()
