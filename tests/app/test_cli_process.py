"""The command line as a process: interrupts, pipes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.cli_survey import error_line, fit_arguments, hard_arguments

import treewright
from treewright.cli import main


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("seconds", [0.3, 1.5])
def test_interrupt_keeps_the_best_model(tmp_path, seconds):
    command = [sys.executable, "-m", "treewright", *hard_arguments(tmp_path, 60), "--json", "--verbose"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "objective" not in process.stderr.readline():  # until there is a first tree
        assert process.poll() is None
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"
    estimator = treewright.load_model(tmp_path / "m.json")
    assert estimator.status_ == "interrupted" and estimator.solve_time_ < 60


def test_interrupt_without_a_model(survey, tmp_path, monkeypatch, capsys):
    def fit(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(treewright.OCTHClassifier, "fit", fit)
    assert main(fit_arguments(survey, tmp_path / "m.json")) == 130
    assert "interrupted; nothing written" in error_line(capsys.readouterr())


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupt_while_modules_are_loaded(fitted, monkeypatch, capsys):
    class Finder:
        @staticmethod
        def find_spec(name, path, target=None):
            if name == "treewright.cli.commands":
                os.kill(os.getpid(), signal.SIGINT)

    from treewright import cli
    from treewright.cli import commands

    monkeypatch.setattr(cli, "commands", commands)  # what is imported below takes its place, for this test alone
    monkeypatch.delitem(sys.modules, "treewright.cli.commands")
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert main(["show", str(fitted)]) == 130
    captured = capsys.readouterr()
    assert "interrupted; nothing written" in error_line(captured) and captured.out == ""
    assert main(["show", str(fitted)]) == 0


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_a_reader_that_goes_away_is_no_error(fitted):
    process = subprocess.Popen(
        [sys.executable, "-m", "treewright.cli", "show", str(fitted)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=120) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("seconds", [0.8])
def test_interrupt_while_the_process_starts(fitted, seconds):
    """No traceback and the documented code, unless the work was done before the signal came."""
    command = [sys.executable, "-m", "treewright", "show", str(fitted)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    assert process.returncode in (0, 130)
