"""What is drawn in a fit can be told and repeated, and how fast the machine is decides nothing unless that is said."""

import json
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor
from tests.cli_register import command, register

from treewright import (
    C2RFClassifier,
    LapTAOClassifier,
    OCTClassifier,
    S2OCTClassifier,
    SelfTrainingRegressor,
    SSCTClassifier,
    TAOClassifier,
    TAORegressor,
    TotalsClassifier,
    estimated_accuracy,
    find_wrong_labels,
    load_model,
)
from treewright.cli import main
from treewright.core.budget import Budget
from treewright.data.tables.files import read_table
from treewright.estimators.record_files import record_from_dict, record_to_dict
from treewright.exceptions import ModelFileError
from treewright.report import fit_report

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)).round(1)
TRUTH = (X[:, 0] + 0.8 * RNG.normal(size=120) > 0).astype(int)
FEW = np.where(np.arange(120) < 30, TRUTH, -1)
TOTALS = {1: int(TRUTH[30:].sum())}
FOREST = RandomForestClassifier(5)

MODELS = {
    "oct": (OCTClassifier(1), TRUTH, {}),
    "tao": (TAOClassifier(2, max_iter=2, init="random"), TRUTH, {}),
    "tao, taught": (TAOClassifier(2, max_iter=2, teacher=FOREST), FEW, {}),
    "tao, regression": (TAORegressor(2, max_iter=2, init="random"), TRUTH.astype(float), {}),
    "laptao": (LapTAOClassifier(2, max_iter=2, teacher=FOREST), FEW, {}),
    "ssct": (SSCTClassifier(max_depth=3, max_features=1), FEW, {}),
    "totals": (TotalsClassifier(FOREST), FEW, {"totals": TOTALS}),
    "c2rf": (C2RFClassifier(FOREST), FEW, {"totals": TOTALS}),
    "s2oct": (S2OCTClassifier(2, teacher=FOREST), FEW, {"totals": TOTALS}),
    "self-training": (
        SelfTrainingRegressor(DecisionTreeRegressor(max_features=1, max_depth=3)),
        np.where(FEW < 0, np.nan, FEW),
        {},
    ),
}


def said(model):
    """All that a fit says of its rows."""
    found = [model.predict(X), getattr(model, "transduction_", None), getattr(model, "transduction_proba_", None)]
    if hasattr(model, "tree_"):
        found += [model.tree_.threshold, model.tree_.weights]
    return found


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("state", [None, "RandomState"])
@pytest.mark.parametrize(("model", "y", "more"), MODELS.values(), ids=MODELS.keys())
def test_a_fit_without_a_seed_tells_the_one_that_repeats_it(model, y, more, state):
    given = np.random.RandomState(3) if state else None
    first = clone(model).set_params(random_state=given).fit(X, y, **more)
    assert first.random_state is given and first.record_.repeatable
    again = clone(model).set_params(random_state=first.random_state_).fit(X, y, **more)
    assert again.random_state_ == first.random_state_ == again.record_.seed
    for a, b in zip(said(first), said(again), strict=True):
        assert np.array_equal(a, b)
    assert clone(model).fit(X, y, **more).random_state_ != clone(model).fit(X, y, **more).random_state_


def test_wrong_labels_and_accuracy_are_found_again():
    found = find_wrong_labels(X, TRUTH, n_estimators=5)
    again = find_wrong_labels(X, TRUTH, n_estimators=5, random_state=found.random_state)
    assert np.array_equal(found.suspicion, again.suspicion)
    model = TotalsClassifier(FOREST)
    assert estimated_accuracy(model, X, FEW, totals=TOTALS) == estimated_accuracy(model, X, FEW, totals=TOTALS)


def test_new_rows_are_divided_by_the_seed_of_the_fit():
    ties = np.repeat(X[:4], 30, axis=0)
    model = TotalsClassifier(LogisticRegression()).fit(X, FEW, totals=TOTALS)
    assert np.array_equal(model.transduce(ties, {1: 50}), model.transduce(ties, {1: 50}))


def test_a_file_keeps_the_seed(tmp_path):
    model = TAOClassifier(1, max_iter=1).fit(X, TRUTH)
    model.save(tmp_path / "m.json")
    read = load_model(tmp_path / "m.json")
    assert read.random_state_ == model.random_state_ and read.record_.repeatable
    document = record_to_dict(model.record_)
    for wrong in ({"seed": -1}, {"seed": 1.5}, {"seed": "7"}, {"by_clock": 1}):
        with pytest.raises(ModelFileError, match=next(iter(wrong))):
            record_from_dict(document | wrong, bounded=False)


def test_a_report_tells_the_seed():
    model = TAOClassifier(1, max_iter=1).fit(X, TRUTH)
    seed = model.random_state_
    text = " ".join(fit_report(model, TRUTH, model.predict(X)).split())
    assert f"seed: {seed}; random_state={seed} gives the same again Parameters" in text
    assert f"random_state=None (drawn: {seed})" in text
    cut = TAOClassifier(4, time_limit=1e-6).fit(X, TRUTH)
    assert cut.record_.by_clock and not cut.record_.repeatable
    assert "gives the same again but for what the time limit ended" in fit_report(cut, TRUTH, cut.predict(X))


def test_a_budget_notes_what_the_clock_left_out():
    short, long, free = Budget(1e-9), Budget(1e6), Budget()
    assert (short.over, long.over, free.over) == (True, False, False)
    assert (short.late, long.late, free.late) == (True, False, False)
    assert not long.share(1e-9).allows(1.0) and long.late
    stopped = Budget(1e6)
    stopped.stop()
    assert stopped.over and not stopped.late  # that is told by the status


# ---------------------------------------------------------------------- command line


@pytest.mark.usefixtures("shortest_searches")
def test_the_command_line_tells_a_seed_that_gives_the_same_files(tmp_path, capsys):
    register(tmp_path)
    fit = [part for part in command(tmp_path) if part not in ("--random-state", "0")]
    fit += ["--predictions", str(tmp_path / "p.csv"), "--report", str(tmp_path / "r.txt"), "--estimator", "forest"]
    assert main([*fit, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    seed, labels = document["seed"], (tmp_path / "p.csv").read_bytes()
    assert document["repeatable"] and f"seed: {seed}; --random-state {seed} gives the same" in (
        tmp_path / "r.txt"
    ).read_text().replace("\n   ", "")
    assert load_model(tmp_path / "m.zip").random_state_ == seed
    assert main([*fit, "--random-state", str(seed)]) == 0
    assert "seed" not in capsys.readouterr().out and (tmp_path / "p.csv").read_bytes() == labels
    assert main(fit) == 0
    assert f"seed: {load_model(tmp_path / 'm.zip').random_state_}; --random-state" in capsys.readouterr().out


def test_a_tree_of_the_command_line_has_a_seed_too(tmp_path, capsys):
    register(tmp_path)
    fit = ["fit", str(tmp_path / "register.csv"), "--target", "z", "--model", "tao", "--out", str(tmp_path / "m.json")]
    assert main(fit) == 0
    seed = load_model(tmp_path / "m.json").random_state_
    assert f"seed: {seed}; --random-state {seed} gives the same again" in capsys.readouterr().out
    assert main([*fit, "--set", "random_state=5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] == 5
    assert main([*fit, "--random-state", "7"]) == 0
    assert "seed" not in capsys.readouterr().out


@pytest.fixture
def slow(monkeypatch):
    """A machine a million times slower than this one."""
    monkeypatch.setattr(Budget, "elapsed", property(lambda self: 1e6 * (time.perf_counter() - self.started)))


def test_speed_decides_nothing_without_a_limit(tmp_path, capsys, request):
    register(tmp_path)
    fit = command(tmp_path, "--model", "totals", "--estimator", "logistic", "--predictions", str(tmp_path / "p.csv"))
    assert main([*fit, "--json"]) == 0
    accuracy = json.loads(capsys.readouterr().out)["accuracy"]
    labels = (tmp_path / "p.csv").read_bytes()
    request.getfixturevalue("slow")
    assert main([*fit, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["accuracy"] == accuracy and document["repeatable"]
    assert (tmp_path / "p.csv").read_bytes() == labels and accuracy["n_labels"] == accuracy["n_known"]


@pytest.mark.usefixtures("shortest_searches", "slow")
def test_a_limit_that_ends_something_is_told(tmp_path, capsys):
    register(tmp_path)
    files = ["--predictions", str(tmp_path / "p.csv"), "--report", str(tmp_path / "r.html")]
    assert main(command(tmp_path, "--model", "totals", "--estimator", "logistic", "--time-limit", "1", "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["accuracy"]["short"] and not document["repeatable"]
    assert main(command(tmp_path, "--estimator", "logistic", *files)) == 0
    captured = capsys.readouterr()
    assert "seed: 0; --random-state 0 gives the same again but for what the time limit ended" in captured.out
    assert "gives the same again but for what the time limit ended" in (tmp_path / "r.html").read_text()
    assert read_table(tmp_path / "p.csv").n_rows == 160
