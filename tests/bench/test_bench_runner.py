"""Rows are made once, in parallel, whatever single ones do."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from tiny_bench import (
    Constant,
    a_lock,
    no_data,
    one_class_only,
    slow,
    slow_data,
    specification,
    two_blobs,
    what_only_here_is,
    with_harness,
)

import harness
from harness import DataSet, Method, Sample, Store, plan, run
from treewright import OCTHClassifier, __version__
from treewright.exceptions import InvalidInputError

HERE = Path(__file__).parent


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "rows.jsonl")


def by_method(store):
    return {row["method"]: row for row in store.rows()}


def without_times(rows):
    kept = ("key", "accuracy", "mcc", "accuracy_all", "mcc_all", "n", "p", "unlabelled", "parameters")
    return sorted(({name: row[name] for name in kept} for row in rows), key=lambda row: row["key"])


# ---------------------------------------------------------------------- one row


def test_a_row_has_what_scikit_learn_says_of_the_same_fit(store):
    run(plan(specification()), store, jobs=0)
    (row,) = store.rows()
    data = two_blobs()
    instance = harness.partly_labelled(data, 0, 0.5)
    tree = DecisionTreeClassifier(random_state=0).fit(data.X[instance.known], data.y[instance.known])
    hidden = ~instance.known
    assert row["accuracy"] == tree.score(data.X[hidden], data.y[hidden])
    assert (row["n"], row["p"], row["unlabelled"], row["share"]) == (40, 2, 20, 50.0)
    right = np.sum(tree.predict(data.X[hidden]) == data.y[hidden]) + np.sum(instance.known)
    assert row["accuracy_all"] == right / 40


def test_a_row_carries_machine_date_versions_and_commit(store):
    run(plan(specification()), store, jobs=0)
    (row,) = store.rows()
    assert row["machine"]["cores"] >= 1 and row["machine"]["system"]
    assert row["versions"]["treewright"] == __version__ and row["versions"]["numpy"] == np.__version__
    assert row["date"][:2] == "20" and row["date"].endswith("+00:00")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True)
    assert head.stdout.startswith(row["commit"].rstrip("+"))
    assert row["memory_gib"] > 0 and row["seconds"] >= 0


def test_only_the_fit_is_timed(store, own_clock):
    own = specification(Method("A", Constant), metrics=(takes_a_while,), data=(DataSet("slow", slowly_loaded),))
    run(plan(own), store, jobs=0)
    assert store.rows()[0]["seconds"] == 0.0 < store.rows()[0]["slept"] == own_clock.now / 2


def slowly_loaded():
    time.sleep(0.6)
    return two_blobs()


def takes_a_while(instance, outcome):
    time.sleep(0.6)
    return {"slept": 0.6}


def test_what_a_fit_says_of_itself_is_in_the_row(store):
    method = Method("OCT-H", OCTHClassifier, {"max_depth": 1, "random_state": 0, "time_limit": 20.0})
    run(plan(specification(replace(method, on=harness.labelled_rows))), store, jobs=0)
    data = two_blobs()
    known = harness.partly_labelled(data, 0, 0.5).known
    model = OCTHClassifier(1, random_state=0, time_limit=20.0).fit(data.X[known], data.y[known])
    (row,) = store.rows()
    assert (row["status"], row["objective"], row["bound"]) == (model.status_, model.objective_, model.bound_)
    assert row["status"] == "optimal" and 0 <= row["proof_seconds"] <= row["fit_seconds"]


def test_measures_of_the_same_name_are_refused(store):
    run(plan(specification(Method("A", Constant), metrics=(harness.accuracy, harness.accuracy))), store, jobs=0)
    assert "'accuracy' is measured twice" in store.rows()[0]["failure"]


def test_totals_that_the_sample_lacks_are_told(store):
    own = specification(Method("A", Constant, given=("totals",)), samples=(Sample("other", one_class_only),))
    run(plan(own), store, jobs=0)
    assert "gives no 'totals'" in store.rows()[0]["failure"]


# ---------------------------------------------------------------------- many rows


def test_processes_give_what_one_process_gives(tmp_path):
    own = specification(
        Method("CART", DecisionTreeClassifier, {"random_state": 0}, on=harness.labelled_rows),
        Method("0", Constant),
        samples=(Sample("simple", harness.partly_labelled, {"share": 0.5}, draws=2),),
    )
    serial, parallel = (Store(tmp_path / f"{name}.jsonl") for name in ("serial", "parallel"))
    assert run(plan(own), serial, jobs=0).made == 4
    assert run(plan(own), parallel, jobs=2).made == 4
    assert without_times(serial.rows()) == without_times(parallel.rows())


def test_a_second_run_makes_nothing_and_a_wider_one_the_rest(store):
    seen = []
    own = specification(Method("A", Constant), Method("B", Constant))
    assert run(plan(own), store, jobs=0, on_row=seen.append).made == 2
    assert [(now.done, now.total, now.row["method"]) for now in seen] == [(1, 2, "A"), (2, 2, "B")]
    content = store.path.read_bytes()
    ended = run(plan(own), store, jobs=0)
    assert (ended.made, ended.known) == (0, 2) and store.path.read_bytes() == content
    wider = specification(Method("A", Constant), Method("B", Constant, {"label": 1}))
    assert (run(plan(wider), store, jobs=0).made, len(store.rows())) == (1, 3)


def test_a_store_cut_at_any_byte_is_completed(tmp_path):
    own = specification(*(Method(name, Constant) for name in "ABC"))
    whole = Store(tmp_path / "whole.jsonl")
    run(plan(own), whole, jobs=0)
    content = whole.path.read_bytes()
    lines = [len(line) for line in content.splitlines(keepends=True)]
    for cut in (0, 1, lines[0] - 1, lines[0], lines[0] + 7, len(content) - 2):
        torn = Store(tmp_path / f"{cut}.jsonl")
        torn.path.write_bytes(content[:cut])
        ended = run(plan(own), torn, jobs=0)
        complete = 1 if lines[0] - 1 <= cut < lines[0] + lines[1] - 1 else 2 if cut > lines[0] else 0
        assert (ended.known, ended.made) == (complete, 3 - complete), cut
        rows = [line for line in torn.path.read_bytes().splitlines() if line.endswith(b"}")]
        assert len(rows) == 3


def test_skipped_and_failed_rows_are_recorded_and_the_others_go_on(store):
    own = specification(
        Method("skipped", Constant, on=harness.labelled_rows),
        Method("raises", Constant, {"deed": "raise"}),
        Method("exits", Constant, {"deed": "exit"}),
        Method("segfaults", Constant, {"deed": "segfault"}),
        Method("good", Constant),
        samples=(Sample("one class", one_class_only),),
    )
    ended = run(plan(own), store, jobs=2)
    rows = by_method(store)
    assert rows["skipped"]["skipped"] == "the labelled sample has one class" and "failure" not in rows["skipped"]
    assert rows["raises"]["failure"] == "ValueError: no such tree" and "in fit" in rows["raises"]["traceback"]
    assert rows["exits"]["failure"] == "the process ended with exit code 3"
    assert rows["segfaults"]["failure"] == "the process was ended by SIGSEGV"
    assert rows["good"]["accuracy"] == 1.0
    assert (ended.made, ended.failures) == (5, 3)
    assert all(row["machine"] and row["versions"] and row["date"] for row in rows.values())
    assert run(plan(own), store, jobs=0).made == 0  # failures stand
    alone = tuple(task for task in plan(own) if task.method.name == "raises")
    assert run(alone, store, jobs=0, retry=True).made == 1
    assert len(store.rows()) == 6 and len(harness.latest(store.rows())) == 5


def test_exit_codes_are_kept_while_other_processes_start(store):
    own = specification(*(Method(f"{k}", Constant, {"deed": "exit", "label": k % 2}) for k in range(6)))
    run(plan(own), store, jobs=3)
    failures = {row["method"]: row["failure"] for row in store.rows()}
    assert failures == {f"{k}": f"the process ended with exit code {3 + k % 2}" for k in range(6)}


@pytest.mark.parametrize(("metric", "words"), [(a_lock, "cannot pickle"), (what_only_here_is, "here_alone")])
def test_a_row_that_cannot_be_sent_fails_alone(metric, words, store):
    odd, fine = specification(Method("odd", Constant), metrics=(metric,)), specification(Method("fine", Constant))
    run((*plan(odd), *plan(fine)), store, jobs=1)
    rows = by_method(store)
    assert words in rows["odd"]["failure"] and rows["fine"]["unlabelled"] == 20


def test_data_that_cannot_be_loaded_fails_its_own_rows(store):
    own = specification(Method("A", Constant), data=(DataSet("gone", no_data), DataSet("blobs", two_blobs)))
    assert run(plan(own), store, jobs=0).failures == 1
    assert [row.get("failure") for row in store.rows()] == ["OSError: the disk is gone", None]


def test_a_row_that_takes_too_long_is_killed(store):
    own = specification(*(Method(name, Constant, {"seconds": 600.0}) for name in "AB"))
    began = time.perf_counter()
    run(plan(own), store, jobs=1, kill_after=1.0)
    assert time.perf_counter() - began < 120
    assert [row["failure"] for row in store.rows()] == ["killed after 1 seconds"] * 2


def test_functions_that_processes_cannot_import_are_told_before_any_work(store):
    own = specification(Method("A", lambda: Constant()))
    with pytest.raises(InvalidInputError, match="top level of a module"):
        run(plan(own), store, jobs=1)
    assert run(plan(own), store, jobs=0).made == 1


def test_kept_data_are_loaded_once(store, tmp_path):
    data = (DataSet("kept", slow_data, {"folder": str(tmp_path)}, keep=True),)
    own = specification(Method("A", Constant), Method("B", Constant), data=data)
    run(plan(own), store, jobs=0)
    assert (tmp_path / "loads").read_text() == "x"
    assert len({row["accuracy"] for row in store.rows()}) == 1 and len(store.rows()) == 2
    run(plan(replace(own, name="again")), store, jobs=0, cache=tmp_path / "elsewhere")
    assert (tmp_path / "loads").read_text() == "xx"


# ---------------------------------------------------------------------- Ctrl-C and kill


def test_an_interrupted_fit_is_no_result(store):
    own = specification(Method("good", Constant), Method("stopped", Constant, {"deed": "interrupt"}))
    ended = run(plan(own), store, jobs=0)
    assert (ended.made, ended.left) == (1, 1)
    assert list(by_method(store)) == ["good"]


def test_ctrl_c_keeps_what_is_finished(store):
    def stop(now):
        raise KeyboardInterrupt

    own = specification(*(Method(name, Constant) for name in "ABC"))
    ended = run(plan(own), store, jobs=0, on_row=stop)
    assert (ended.made, ended.left, list(by_method(store))) == (1, 2, ["A"])
    assert run(plan(own), store, jobs=0).made == 2


def started(tmp_path, *options):
    """A run of slow rows in a process group of its own, once its two quick rows are written."""
    store, stop = Store(tmp_path / "rows.jsonl"), tmp_path / "stop"
    command = [sys.executable, str(HERE / "tiny_bench.py"), str(stop), "--store", str(store.path), "--jobs", "2"]
    process = subprocess.Popen(
        [*command, *options],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=with_harness(),
    )
    deadline = time.monotonic() + 120
    while len(store.rows()) < 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
    return process, store, stop


def wait_for_the_end_of(group):
    """Whether all processes of a group end within a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals to process groups")
def test_ctrl_c_on_the_command_line(tmp_path):
    process, store, stop = started(tmp_path)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process gets it
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "4 rows are left, the same command goes on" in err
    assert "| quick 0 | 1 |" in out
    assert sorted(by_method(store)) == ["quick 0", "quick 1"]
    assert wait_for_the_end_of(process.pid)
    stop.touch()
    assert run(plan(slow(str(stop))), store, jobs=0).made == 4


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals to process groups")
def test_a_killed_run_leaves_no_processes_and_is_resumed(tmp_path):
    process, store, stop = started(tmp_path)
    process.kill()  # the run alone, not its rows
    process.communicate(timeout=60)
    assert wait_for_the_end_of(process.pid)
    stop.touch()
    ended = run(plan(slow(str(stop))), store, jobs=0)
    assert (ended.known, ended.made) == (2, 4)
    assert len({row["key"] for row in store.rows()}) == len(store.rows()) == 6
