"""How far work is: told whatever it does, to the right listener, in lines that are never far apart."""

import io
import sys
import threading
import warnings
from itertools import pairwise

import numpy as np
import pytest
from tests.cli_register import command, register
from tests.cli_survey import fit_arguments

import treewright
from treewright.cli import console, main
from treewright.core import progress
from treewright.core.budget import Budget
from treewright.core.progress import Event, fit_reported, note, printer, reported, stage, timed
from treewright.models.registry import SHORT_NAMES

VERBOSE = sorted(
    name
    for name in treewright.__all__
    if hasattr(kind := getattr(treewright, name), "fit") and "verbose" in kind().get_params(deep=False)
)


def rows_for(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    if "Regressor" in name:
        return X, X[:, 0] + X[:, 1]
    return X, np.where(np.arange(60) % 3 == 0, -1, y) if name.startswith(("S2", "SSCT", "Lap", "C2RF")) else y


@pytest.mark.usefixtures("searches_alone")
@pytest.mark.parametrize("name", VERBOSE)
def test_every_model_tells_what_it_does(name, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_LINE", 0.0)  # every event
    model = getattr(treewright, name)(verbose=1, random_state=0)
    if name == "SVM1ODTClassifier":  # choosing them takes long
        model.set_params(epsilon=0.05, alpha_2=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*rows_for(name))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2 and all(line.split(" s  ", 1)[1].strip() for line in lines)
    assert f"ended: {model.status_}" in lines[-1]
    if hasattr(model, "objective_"):
        assert f"objective {model.objective_:.6g}" in lines[-1]
    assert threading.active_count() == 1 or all(t.name != "progress" for t in threading.enumerate())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(verbose=0).fit(*rows_for(name))
    assert not capsys.readouterr().err


def test_work_that_tells_nothing_is_told_all_the_same():
    """The listener ends the work, which waits for nothing else."""
    told, enough = [], threading.Event()

    def listen(event):
        told.append(event)
        if len(told) > 4:
            enough.set()

    with reported(listen), stage("long"):
        assert enough.wait(60)
    assert {event.stage for event in told} == {"long"}
    assert all(a.seconds <= b.seconds for a, b in pairwise(told))


def test_printed_lines_are_never_far_apart(monkeypatch, capsys):
    """A minute of events as they come where nothing happens, and where very much does."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    for every in (progress._BEAT, 0.01):
        now, times = 0.0, list[float]()
        listen = printer()
        while now < 60:
            listen(Event("search", now))
            times += [now] if capsys.readouterr().err else []
            now += every
        gaps = np.diff([0.0, *times, 60.0])
        assert gaps.max() < 2.0 and len(times) <= 60


def test_steps_and_the_first_objective_are_printed_at_once(capsys):
    listen = printer()
    listen(Event("passes", detail="nothing yet"))
    assert not capsys.readouterr().err
    listen(Event("passes", objective=2.0))
    listen(Event("passes", objective=1.5))
    listen(Event("passes", objective=1.0, step=True))
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["2", "1"]


def test_a_fit_within_a_fit_tells_nothing():
    told = []
    with reported(told.append), fit_reported(None, Budget(10.0)):
        note(objective=1.0)
        with fit_reported(print, Budget()), stage("inner"):
            note(objective=7.0)
        note(bound=0.5)
    said = [(event.objective, event.bound) for event in told if event.objective is not None]
    assert said[0] == (1.0, None) and said[-1] == (1.0, 0.5) and (7.0, None) not in said
    assert all("inner" not in event.stage and event.left <= 10.0 for event in told)


def test_time_left_is_that_of_all_fits_together():
    told = []
    with reported(told.append), timed(Budget(5.0)), fit_reported(None, Budget(100.0)):
        note(objective=1.0)
    assert told[-1].left <= 5.0


def test_a_reader_that_has_gone_away_ends_no_work(monkeypatch):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    X, y = rows_for("TAOClassifier")
    assert treewright.TAOClassifier(max_depth=1, verbose=1).fit(X, y).status_ == "local"


# ---------------------------------------------------------------------- the command line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def made_terminal(monkeypatch):
    """Standard error as a terminal that is told everything."""
    monkeypatch.setattr(console, "_CHANGE", 0.0)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)  # in the test itself, as pytest has its own way with streams
    return stream


@pytest.mark.usefixtures("shortest_searches")
def test_a_terminal_shows_the_whole_job_in_one_line(tmp_path, capsys, monkeypatch):
    terminal = made_terminal(monkeypatch)
    register(tmp_path)
    files = ["--predictions", str(tmp_path / "p.csv")]
    assert main(command(tmp_path, *files, "--estimator", "logistic", "--time-limit", "3")) == 0
    said = terminal.getvalue()
    stages = ["table is read", "labels: scores", "labels left out 1 of", "s  tree: ", "files are written"]
    places = [said.index(words) for words in stages]
    assert places == sorted(places) and "\n" not in said
    assert not said.rsplit("\r", 2)[1].strip() and said.endswith("\r")  # nothing is left of it
    assert "predictions written to" in capsys.readouterr().out


@pytest.mark.usefixtures("searches_alone")
@pytest.mark.parametrize("model", sorted(SHORT_NAMES))
def test_a_terminal_shows_every_model(model, survey, tmp_path, capsys, monkeypatch):
    terminal = made_terminal(monkeypatch)
    more = {"fair-oct": ["--protected", "region"], "svm1odt": ["--set", "epsilon=0.05", "--set", "alpha_2=1.0"]}
    fit = ["fit", str(survey), "--target", "employed", "--drop", "id", "--model", model, *more.get(model, [])]
    assert main([*fit, "--random-state", "0", "--out", str(tmp_path / "m.json")]) == 0
    assert "the table is read" in terminal.getvalue() and "objective" in terminal.getvalue()


def test_warnings_and_errors_have_lines_of_their_own(survey, tmp_path, capsys, monkeypatch):
    terminal = made_terminal(monkeypatch)
    model = tmp_path / "m.json"
    assert main([*fit_arguments(survey, model), "--features", "id,age"]) == 2  # 60 levels, 60 rows
    *_, last = terminal.getvalue().split("\r")
    assert last.startswith("treewright: error: ") and last.endswith("\n")


@pytest.mark.parametrize("words", [["--quiet"], ["--verbose"]])
def test_predict_is_quiet_or_verbose(words, fitted, survey, tmp_path, capsys, monkeypatch):
    terminal = made_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_LINE", 0.0)
    assert main(["predict", str(fitted), str(survey), "--out", str(tmp_path / "p.csv"), *words]) == 0
    captured, said = capsys.readouterr(), terminal.getvalue()
    if words == ["--quiet"]:
        assert captured.out == said == ""
    else:
        assert "rows are labelled  60 rows\n" in said and "\r" not in said and "written to" in captured.out


def test_nothing_is_shown_where_nobody_looks(survey, tmp_path, capsys):
    assert main(fit_arguments(survey, tmp_path / "m.json")) == 0
    assert capsys.readouterr().err == ""
