"""Ctrl-C and SIGTERM on the command line: what is left behind is said, and the process ends."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading

import pytest
from tests.cli_register import command, register
from tests.cli_survey import fit_arguments, hard_arguments

import treewright
from treewright.cli import main
from treewright.core import files
from treewright.core.budget import Budget
from treewright.data.tables.files import read_table
from treewright.models.registry import SHORT_NAMES
from treewright.solvers import course as conduct

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
OUTPUTS = {"model": "m.json", "predictions": "p.csv", "report": "r.txt", "html_report": "r.html"}


@pytest.fixture
def signals_at(monkeypatch):
    """Send signals when the clock is looked at for these times, in whatever fit and thread."""

    def prepare(*looks, number=signal.SIGINT):
        counted = itertools.count(1)

        def counting(real):
            def look(self):
                if next(counted) in looks:
                    signal.raise_signal(number)
                return real(self)

            return property(look)

        for name in ("remaining", "interrupted"):
            monkeypatch.setattr(Budget, name, counting(getattr(Budget, name).fget))

    return prepare


def check_what_is_said(code, captured, folder, outputs, expected=130):
    """The last line has the files that are there, each of them whole, unless no signal was sent in time."""
    there = {what: folder / name for what, name in outputs.items() if (folder / name).exists()}
    last = captured.err.strip().splitlines()[-1] if captured.err else ""
    if code == 0:
        assert "interrupted" not in captured.err and len(there) == len(outputs)
        return False
    said = ", ".join(f"{what.replace('_', ' ')} {path}" for what, path in there.items())
    assert (code, last.removeprefix("treewright: ").removeprefix("error: ")) == (
        expected,
        f"interrupted; written: {said}" if said else "interrupted; nothing written",
    )
    if "model" in there:
        treewright.load_model(there["model"])
    if "predictions" in there:
        assert read_table(there["predictions"]).n_rows
    assert not [name for name in os.listdir(folder) if name.startswith(".")]
    return bool(there)


def all_outputs(folder, outputs):
    options = {"model": "--out", "predictions": "--predictions", "report": "--report", "html_report": "--report"}
    return [word for what, name in outputs.items() for word in (options[what], str(folder / name))]


LOOKS = {"binoct": 8, "fair-oct": 300, "laptao": 2000, "oct": 1, "oct-h": 3, "octsvm": 4000, "resvm": 150}
LOOKS |= {"s2oct": 400, "ssct": 2, "svm1odt": 2500, "tao": 300}
"""About half of the looks at the clock in the fit of each model to the small survey."""


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("model", sorted(SHORT_NAMES))
def test_every_model_says_what_it_leaves(model, survey, tmp_path, capsys, signals_at):
    """A moment of the fit, drawn by the name of the model."""
    signals_at(random.Random(model).randint(1, LOOKS[model]))
    more = ["--protected", "region"] if model == "fair-oct" else []
    fit = ["fit", str(survey), "--target", "employed", "--drop", "id", "--model", model, *more, "--random-state", "0"]
    code = main([*fit, *all_outputs(tmp_path, OUTPUTS)])
    check_what_is_said(code, capsys.readouterr(), tmp_path, OUTPUTS)


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("looks", [(1,), (25,), (25, 26, 27), (120,), (120, 121)])
def test_the_whole_job_says_what_it_leaves(looks, tmp_path, capsys, signals_at):
    register(tmp_path)
    outputs = OUTPUTS | {"model": "m.zip"}
    signals_at(*looks)
    fit = [*command(tmp_path, "--estimator", "logistic", "--time-limit", "3"), *all_outputs(tmp_path, outputs)[2:]]
    check_what_is_said(main(fit), capsys.readouterr(), tmp_path, outputs)


def test_the_second_one_breaks_off(tmp_path, capsys, signals_at):
    signals_at(3, 4)
    assert main([*hard_arguments(tmp_path, 60), "--model", "oct-h", "--json"]) == 130
    captured = capsys.readouterr()
    assert "a second Ctrl-C breaks off" in captured.err
    assert json.loads(captured.out)["error"]["message"] == "interrupted; nothing written"
    assert not (tmp_path / "m.json").exists()


def test_being_told_to_end_is_a_ctrl_c_with_a_code_of_its_own(tmp_path, capsys, signals_at):
    signals_at(3, number=signal.SIGTERM)
    before = signal.getsignal(signal.SIGTERM)
    code = main([*hard_arguments(tmp_path, 60), "--model", "oct-h"])
    assert check_what_is_said(code, capsys.readouterr(), tmp_path, {"model": "m.json"}, expected=143)
    assert treewright.load_model(tmp_path / "m.json").status_ == "interrupted"
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_file_is_named_if_and_only_if_it_is_there(when, fitted, survey, tmp_path, capsys, monkeypatch):
    """The signal comes at the step that puts it there: the last moment without the file, the first with it."""

    def replaced(*paths):
        if when == "after":
            real(*paths)
        signal.raise_signal(signal.SIGINT)
        if when == "before":
            raise OSError("no such luck")

    real = os.replace
    monkeypatch.setattr(files.os, "replace", replaced)
    code = main(["predict", str(fitted), str(survey), "--out", str(tmp_path / "p.csv")])
    if when == "before":
        assert code == 1 and not (tmp_path / "p.csv").exists()
    else:
        assert check_what_is_said(code, capsys.readouterr(), tmp_path, {"predictions": "p.csv"})


def test_a_search_that_is_over_is_written_after_one_ctrl_c(survey, tmp_path, capsys, monkeypatch):
    def facts(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    from treewright.cli import commands

    real = commands.fit_facts
    monkeypatch.setattr(commands, "fit_facts", facts)
    code = main(fit_arguments(survey, tmp_path / "m.json"))
    assert check_what_is_said(code, capsys.readouterr(), tmp_path, {"model": "m.json"})


# ---------------------------------------------------------------------- the end of the process

PROCESS = """
import atexit, signal, sys, threading, time, types
from treewright.cli import interrupts, main
interrupts._PATIENCE = 0.1

def interrupt():
    signal.raise_signal(signal.SIGINT)

def command(args, console):
    {command}
    return 0

# The imports of the real ones take a second.
sys.modules["treewright.cli.commands"] = types.SimpleNamespace(COMMANDS=dict(show=command))
sys.argv = ["treewright", "show", "m.json"]
sys.exit(main())
"""
NOTHING = "treewright: error: interrupted; nothing written"


def ended(*lines):
    """Exit code and errors of a process whose command is these lines."""
    code = PROCESS.format(command="\n    ".join(lines))
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    return process.returncode, process.stderr.strip().splitlines()


def test_one_that_comes_when_all_is_done_changes_nothing():
    assert ended("atexit.register(interrupt)") == (0, [])


@pytest.mark.parametrize("times", [1, 2])
def test_one_that_comes_while_the_program_is_loaded_waits_for_the_command(times):
    """A second one does not wait."""
    code = f"""
import signal, sys
class Finder:
    def find_spec(name, path, target=None):
        if name == "treewright.cli.entry":
            [signal.raise_signal(signal.SIGINT) for _ in range({times})]
sys.meta_path.insert(0, Finder)
from treewright.cli import main
sys.argv = ["treewright", "show", "m.json", "--json"]
sys.exit(main())
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert process.returncode == 130
    if times == 1:
        assert process.stderr == NOTHING + "\n"
        assert json.loads(process.stdout)["error"]["message"] == "interrupted; nothing written"
    else:
        assert process.stderr == NOTHING + ", ended at once\n"


@pytest.mark.parametrize("then", ["interrupt()", "time.sleep(50)"])
def test_a_process_that_is_stuck_is_ended(then):
    """By another Ctrl-C, and by itself."""
    assert ended("try: interrupt()", f"finally: {then}") == (130, [f"{NOTHING}, ended at once"])


def test_what_a_library_makes_of_it_is_a_ctrl_c_all_the_same():
    assert ended("try: interrupt()", "except KeyboardInterrupt: raise ValueError('of a library')") == (130, [NOTHING])


def test_a_solver_that_goes_on_does_not_keep_the_process_or_abort_it():
    """Native code that comes back to an interpreter that has ended aborts the process."""
    lines = (
        "from treewright.solvers import course as conduct",
        "conduct.EXIT_SECONDS = 50.0, 100.0",
        "try: conduct.run_in_thread(lambda: time.sleep(50), overdue=lambda: True)",
        "except conduct.AbandonedError: pass",
    )
    assert ended(*lines) == (0, [])
    assert ended(*lines, "interrupt()") == (130, [NOTHING])


def test_work_that_two_interrupts_end_is_waited_for_at_the_end_of_a_script():
    def disturbed():
        raise KeyboardInterrupt

    before, release = list(conduct._ABANDONED), threading.Event()
    try:
        with pytest.raises(KeyboardInterrupt):
            conduct.run_in_thread(release.wait, watch=disturbed, cancel=disturbed)
        assert [thread.is_alive() for thread in conduct._ABANDONED if thread not in before] == [True]
    finally:
        release.set()
