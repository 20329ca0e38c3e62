"""Every benchmark runs from end to end on made-up tables, and the shared command line does what it says."""

import gzip
import hashlib
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tiny_bench import Constant, specification, two_blobs, with_harness

import harness
from harness import Method, Store, plan

ROOT = Path(__file__).parents[2]
S2OCT = ("lupus", "irish", "iris", "penguins", *(f"other{k}" for k in range(20)))
SVM1ODT = (
    *("iris", "congressional_voting", "spectf_heart_train", "breast_cancer_wisconsin_original"),
    *("heart_disease_cleveland", "image_segmentation_train", "banknote_authentication", "echocardiogram", "sonar"),
    *("haberman_survival", "hepatitis", "planning_relax", "ionosphere", "monks_1_train", "monks_3_train", "wine"),
    *("avila_train", "htru2", "pendigits_train", "skin_segmentation", "statlog_satimage_train", "ann_thyroid_train"),
    *("wall_following_robot_2", "seismic_bumps", "spambase"),
)
OCTSVM = (
    *("australian", "heart", "monks_415", "parkinson_replicated_acoustic"),
    *("breast_cancer_wisconsin_original", "ionosphere", "sonar"),
)
C2RF = ("magic", "ring", "twonorm", "waveform_21", "agaricus_lepiota", "connect_4", "clean2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of the names that the benchmarks ask for, small and made up."""
    path = tmp_path_factory.mktemp("tables")
    lines = ["name\tpapers\tfile\tsha256"]

    def add(name, papers, file, n, p, classes):
        rng = np.random.default_rng(len(lines))
        target = np.arange(n) % classes if classes else rng.integers(0, 50, n)
        X = np.round(100 + 20 * rng.normal(size=(n, p)) + 30 * (target % 10)[:, None])
        rows = ["\t".join([*(f"f{j}" for j in range(p)), "target"])]
        rows += ["\t".join(f"{value:g}" for value in (*x, t)) for x, t in zip(X, target, strict=True)]
        content = gzip.compress(("\n".join(rows) + "\n").encode(), mtime=0)
        (path / file).parent.mkdir(exist_ok=True)
        (path / file).write_bytes(content)
        lines.append(f"{name}\t{papers}\t{file}\t{hashlib.sha256(content).hexdigest()}")

    for k, name in enumerate((*S2OCT, *C2RF)):
        large = name in C2RF
        add(
            name,
            "S2OCT;C2RF" if large else "S2OCT",
            f"s2oct/{k:02d}_{name}.tsv.gz",
            1200 if large else 210,
            3,
            2 + k % 2,
        )
    for name in SVM1ODT:
        add(name, "SVM1ODT", f"svm1odt/{name}.tsv.gz", 60, 3, 3)
    for name in OCTSVM:
        add(name, "OCTSVM", f"octsvm/{name}.tsv.gz", 60, 3, 2)
    for file in ("mnist_train", "mnist_test"):
        add(file, "LapTAO", f"laptao/{file}.tsv.gz", 160, 12, 10)
    add("cpu_act", "LapTAO", "laptao/cpu_act.tsv.gz", 160, 4, 0)
    (path / "MANIFEST.tsv").write_text("\n".join(lines) + "\n")
    return path


# Rows of the whole experiments on 31 tables, 7 of them C2RF's, counted by hand.
ROWS = {
    "axis": {"axis": 16 * 3 * 4},
    "selection": {"selection": 4 * 4},
    "s2oct": {"s2oct": 12 * 31 + 6 * 20, "s2oct-simple": 11 * 31 + 5 * 20, "s2oct-axis": 2 * 2},
    "s2oct_more": {"s2oct-more": 5},
    "c2rf": {"c2rf": 3 * 2 * 5 * 7 + 7, "c2rf-ablation": 5 * 7},
    "laptao": {
        "laptao-choose": 7 * 2,
        # six methods with 10 draws in all, seven with a draw a share, one with a single draw
        "laptao-mnist": 6 * 10 + 7 * 6 + 1,
        # a depth: six methods at all shares and one at the first, on 5 + 10 splits; three without depth on 10;
        # LapTAO on two other kinds of features on 5
        "laptao-cpu_act": 3 * (7 * 6 + 1) * 15 + 3 * 6 * 10 + 2 * 6 * 5,
        "laptao-scale": 4 * 2,
    },
    "laptao_tables": {"laptao-tables": 31 * 16 * 2},
    "mixed": {"mixed": 6 * 5 * 4},
    "leaf_probabilities": {"leaf_probabilities": 20 * 5 * 7, "leaf_probabilities-taught": 7 * 2 * 4},
    "oct": {"oct": 20 * 3 * 8, "oct-large": 3, "oct-deep": 6},
    "oct_h": {"oct_h": 3 * 5, "oct_h-more": 3 * 5},
    "octsvm": {
        "octsvm-noise": 7 * 16 * 8,
        "octsvm-grid": 7 * 16,
        "octsvm-shapes": 6 * 5 * 7,
        "octsvm-labels": 8 * 10 * 5,
        "octsvm-proofs": 4 * 8,
    },
    "stretch": {"stretch": 31 * 4 * 3, "stretch-axis": 31 * 4 * 3},
    "svm1odt": {
        "svm1odt-medium": 16 * 5 * 8,
        "svm1odt-deep": 2 * 5 * 8,
        "svm1odt-more": 5 * 9,
        "svm1odt-grid": 16 * 5 * (20 + 9),
        "svm1odt-large": 4 * 2 * 5,
        "svm1odt-search": 16 * 4,
    },
    "tao": {"tao": 2 * 3},
}


@pytest.mark.parametrize("name", ROWS)
def test_every_comparison_is_there(name, folder):
    specifications = import_module(name).SPECIFICATIONS
    assert {one.name: len(plan(one, folder)) for one in specifications} == ROWS[name]


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("part", [part for parts in ROWS.values() for part in parts])
def test_every_benchmark_runs(part, folder, tmp_path, capsys):
    name = next(name for name, parts in ROWS.items() if part in parts)
    options = ["--quick", "--jobs", "0", "--data", str(folder), "--store", str(tmp_path / "rows.jsonl")]
    limit = ["--time-limit", "0.05"] if name.startswith(("axis", "s2oct", "c2rf", "svm1odt", "oct")) else []
    # Two threads are two processes to start: in one of the parts of a script they are seen to be passed on.
    threads = ["--threads", "1"] if part in ("laptao-choose", "laptao-mnist") else []
    code = harness.main(*import_module(name).SPECIFICATIONS, argv=[part, *options, *limit, *threads])
    rows = Store(tmp_path / "rows.jsonl").rows()
    assert [row["failure"] for row in rows if "failure" in row] == [] and code == 0
    assert rows and {row["specification"] for row in rows} == {f"{part}-quick"}
    assert not any(row.get("contradictions") for row in rows)
    table = capsys.readouterr().out
    assert "|---|" in table and f"{len(rows)} rows" in table


def test_the_shares_of_c2rf_are_those_of_its_own_forest(folder, tmp_path):
    own = import_module("c2rf").SPECIFICATIONS[0].quick
    store = Store(tmp_path / "rows.jsonl")
    harness.run(plan(own, folder), store, jobs=0)
    (row,) = harness.only(store.rows(), method="C2RF, threshold", setting="paper")
    assert row["also"]["forest, cut"]["deviation"] == 0.0
    found = {row["method"] for row in harness.finished(store.rows())}
    assert found == {"C2RF, threshold", "C2RF, paper's model", "forest", "forest, cut"}


def test_a_script_runs_in_processes(folder, tmp_path, capsys):
    options = ["--quick", "--jobs", "2", "--data", str(folder), "--store", str(tmp_path / "rows.jsonl")]
    methods = ["--only", "CART", "--only", "CART, cut", "--sets", "lupus"]
    command = [sys.executable, str(ROOT / "benchmarks" / "s2oct.py"), *options, *methods]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "| CART | 1 |" in ended.stdout and "[2/2, 0:00 left]" in ended.stderr
    assert harness.main(*import_module("s2oct").SPECIFICATIONS, argv=[*options, *methods, "--summary"]) == 0
    assert capsys.readouterr() == (ended.stdout, "")


def test_the_example_of_the_docs_runs(tmp_path):
    example = (ROOT / "docs" / "benchmarks.md").read_text().split("```python\n")[1].split("```")[0]
    (tmp_path / "few.py").write_text(example)
    command = [sys.executable, "few.py", "--jobs", "2", "--draws", "1", "--time-limit", "0.5"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=with_harness())
    assert ended.returncode == 0, ended.stderr
    rows = {row["method"]: row for row in Store(tmp_path / "results" / "few-labels.jsonl").rows()}
    assert list(rows["S2OCT"]["parameters"].values()) == [0.5]
    assert "| CART | 1 |  |" in ended.stdout and "3 rows." in ended.stdout


# ---------------------------------------------------------------------- the command line


@pytest.fixture
def call(tmp_path, capsys):
    """Call the command line of two tiny specifications."""
    methods = (Method("A", Constant, {"label": 1}), Method("B", Constant, {"seconds": harness.TIME_LIMIT}))
    own = specification(*methods, time_limit=0.0).with_quick(methods=methods[:1])
    other = specification(Method("C", Constant, {"deed": "raise"}), name="other")

    def call(*argv):
        code = harness.main(own, other, argv=["--store", str(tmp_path / "rows.jsonl"), "--jobs", "0", *argv])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_the_first_part_is_run_and_others_by_name(call, tmp_path):
    assert call()[:2] == (0, "| method | fits |\n|---|---|\n| A | 1 |\n| B | 1 |\n\n2 rows.\n")
    code, out, err = call("other")
    assert code == 1 and "1 rows, 1 failed." in out and "failed: ValueError: no such tree" in err
    assert call("other")[2] == ""  # not made again
    assert call("other", "--retry")[0] == 1
    assert call("tiny", "other")[0] == 0
    assert len(Store(tmp_path / "rows.jsonl").rows()) == 4


def test_the_solver_is_an_option_where_it_is_left_open(call, tmp_path, capsys):
    code, _, told = call("--solver", "scip")
    assert code == 2 and "no method of 'tiny' leaves its solver open" in told
    own = specification(Method("A", Constant, {"label": harness.SOLVER}))
    argv = ["--store", str(tmp_path / "open.jsonl"), "--jobs", "0", "--solver", "scip"]
    harness.main(own, argv=argv)
    (row,) = Store(tmp_path / "open.jsonl").rows()
    assert row["parameters"] == {"label": "scip"}


def test_the_ablation_of_c2rf_can_set_priorities(folder):
    """On HiGHS, which knows none, two of its four programs were the other two."""
    ablation = import_module("c2rf").SPECIFICATIONS[1]
    asked = [task.method.parameters for task in plan(ablation, folder)]
    assert {one["solver"] for one in asked} == {"scip"} and sum(one.get("branching") is True for one in asked) == 2 * 7
    assert {
        one["solver"] for one in (t.method.parameters for t in plan(replace(ablation, solver="gurobi"), folder))
    } == {"gurobi"}


def test_a_failure_does_not_stop_the_parts_after_it(tmp_path, capsys):
    parts = [specification(Method("C", Constant, {"deed": "raise"})), specification(Method("A", Constant), name="next")]
    argv = ["tiny", "next", "--store", str(tmp_path / "rows.jsonl"), "--jobs", "0"]
    assert harness.main(*parts, argv=argv) == 1
    assert "| A | 1 |" in capsys.readouterr().out


def test_a_time_limit_makes_other_rows_and_the_summary_tells_them_apart(call, tmp_path):
    call()
    call("--time-limit", "0.05")
    assert [row["parameters"] for row in Store(tmp_path / "rows.jsonl").rows()] == [
        {"label": 1},
        {"seconds": 0.0},
        {"seconds": 0.05},
    ]
    code, out, err = call("--summary")
    assert code == 0 and "2 rows." in out and "1 rows were made again with other parameters" in err
    listed = call("--list", "--time-limit", "9", "--draws", "2")[1].splitlines()
    assert [line[:6] for line in listed] == ["done  ", "to do ", "to do ", "to do "]


def test_parts_of_rows(call):
    assert "| B |" not in call("--only", "A")[1]
    assert "| A |" not in call("--skip", "A", "--summary")[1]
    assert "| A | 3 |" in call("--draws", "3", "--sets", "blobs", "--samples", "simple")[1]
    assert "1 rows." in call("--quick")[1]


def test_stores_are_compared(call, tmp_path):
    call()
    (tmp_path / "before.jsonl").write_bytes((tmp_path / "rows.jsonl").read_bytes())
    out = call("--against", str(tmp_path / "before.jsonl"), "--format", "text")[1]
    share = np.mean(harness.partly_labelled(two_blobs(), 0, 0.5).y_test)  # A always says 1, B 0
    assert "before -> now" in out
    assert f"{share:.2%} -> {share:.2%}" in out and f"{1 - share:.2%} -> {1 - share:.2%}" in out


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["nothing"], "no part 'nothing': tiny, other"),
        (["--only", "Z"], "no method 'Z'"),
        (["--time-limit", "-1"], "--time-limit is -1.0"),
        (["--threads", "0"], "--threads is 0"),
        (["--draws", "0"], "--draws is 0"),
        (["--jobs", "-1"], "jobs is -1"),
        (["other", "--quick"], "'other' has no quick one"),
        (["--against", "nowhere.jsonl"], "no store nowhere.jsonl"),
    ],
)
def test_wrong_arguments_are_told(call, argv, text):
    code, out, err = call(*argv)
    assert (code, out) == (2, "") and err.startswith("error: ") and text in err
