"""What holds for all tests."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from tests.cli_survey import fit_arguments, write_survey
from treewright.cli import main
from treewright.models.binoct import search as axis
from treewright.models.oct_h import search as oct_h
from treewright.models.octsvm import fit as octsvm
from treewright.models.s2oct import fit as s2oct
from treewright.models.s2oct.search import attempts, sparse, taught
from treewright.models.svm1odt import search as svm1odt
from treewright.optimize import course as optimize
from treewright.teachers import auto, ensemble, left_out, members

# A shell that starts the tests in the background has SIGINT ignored, and every process below inherits that: then no
# Ctrl-C could be tested. A handler of Python's own is inherited by nobody, so child processes get the default back.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples of a property where its test does not say how many: each run draws others.
settings.register_profile("suite", max_examples=25, deadline=None)
settings.load_profile("suite")


def pytest_configure(config):
    """Before workers start: compile once what each would compile within time limits; a folder for what they share."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        return
    folder = tempfile.TemporaryDirectory()  # workers inherit it; removed when the session ends
    config.add_cleanup(folder.cleanup)
    os.environ["TREEWRIGHT_TEST_OPTIMA"] = folder.name
    if subprocess.run([sys.executable, "-m", "treewright", "warm-up"]).returncode:
        pytest.exit("treewright warm-up failed", returncode=2)


@pytest.fixture
def processor_clock(monkeypatch):
    """Limits are of processor time, so that a fit gets as far as it does, whatever else runs on the machine.

    For tests of what is reached within a limit; tests that wait on purpose need the clock on the wall.
    """
    monkeypatch.setattr(time, "perf_counter", time.process_time)


@pytest.fixture
def own_clock(monkeypatch):
    """A clock that stands still but where a test makes seconds pass, or sleeps."""
    clock = SimpleNamespace(now=0.0)

    def sleep(seconds):
        clock.now += seconds

    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(time, "sleep", sleep)
    return clock


@pytest.fixture
def short_searches(monkeypatch):
    """Less of what fits of a few rows spend their time on, for tests of what holds however much there is.

    Small forests for C2RF and for the teacher of S2OCT; for all that are solved fewer attempts without improvement
    before a search ends. No clock is in it.
    """
    _shorten(monkeypatch)


@pytest.fixture
def shortest_searches(monkeypatch, short_searches):
    """Still less: forests of five trees, fewer folds and rounds of the teacher, sizes of trees and starts of each.

    For tests to which it does not matter how good trees are.
    """
    for module, name in ((auto, "_TREES"), (left_out, "_FOLD_TREES"), (auto, "_REFINED_TREES")):
        monkeypatch.setattr(module, name, 5)
    monkeypatch.setattr(left_out, "_FOLDS", 2)
    for name in ("_BOOSTED_ROUNDS", "_MORE_ROUNDS"):
        monkeypatch.setattr(members, name, 5)
    monkeypatch.setattr(auto, "_ROUNDS", 1)
    monkeypatch.setattr(sparse, "PATH", ((3, 1.0), (1, 1.0), (2, 1.0), (None, 0.2)))
    monkeypatch.setattr(taught, "_RANDOM_STARTS", 1)
    for module, name in ((sparse, "KICKS"), (s2oct, "KICKS"), (attempts, "_KICKS")):
        monkeypatch.setattr(module, name, 1)


@pytest.fixture
def no_branch_and_bound(monkeypatch):
    """No program is small enough for a solver, so that fits end where their search does, whatever the clock says."""
    monkeypatch.setattr(optimize, "_MOST_CELLS", 0)


@pytest.fixture
def searches_alone(monkeypatch, shortest_searches, no_branch_and_bound):
    """The same with the shortest searches, in which trees do not wander either."""
    for module, name in ((oct_h, "_LEAST_PATIENCE"), (oct_h, "_MOST_PATIENCE"), (svm1odt, "_PATIENCE")):
        monkeypatch.setattr(module, name, 0)


@pytest.fixture(scope="module")
def short_searches_of_module():
    """The same for fixtures that the tests of a module share."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        _shorten(monkeypatch)
        yield


def _shorten(monkeypatch):
    for module, name in ((auto, "_TREES"), (left_out, "_FOLD_TREES"), (auto, "_REFINED_TREES")):
        monkeypatch.setattr(module, name, 10)
    for name in ("_BOOSTED_ROUNDS", "_MORE_ROUNDS"):
        monkeypatch.setattr(members, name, 15)
    for name in ("_IDLE_ATTEMPTS", "_IDLE_TAUGHT", "_IDLE_UNPROVEN"):
        monkeypatch.setattr(attempts, name, 2)
    monkeypatch.setattr(ensemble, "_TREES", 20)
    monkeypatch.setattr(axis, "_RESTARTS", 4)
    monkeypatch.setattr(oct_h, "_LEAST_PATIENCE", 3)
    monkeypatch.setattr(oct_h, "_MOST_PATIENCE", 3)
    monkeypatch.setattr(svm1odt, "_PATIENCE", 6)
    monkeypatch.setattr(octsvm, "_PATIENCE", 3)


@pytest.fixture
def survey(tmp_path):
    """The table of a small survey."""
    return write_survey(tmp_path)


@pytest.fixture(scope="module")
def fitted_survey(tmp_path_factory):
    """A model file of the survey, for the fixture below alone."""
    folder = tmp_path_factory.mktemp("fitted")
    assert main([*fit_arguments(write_survey(folder), folder / "fitted.json"), "--quiet"]) == 0
    return folder / "fitted.json"


@pytest.fixture
def fitted(fitted_survey, tmp_path):
    """A copy of it, which a test may change."""
    return Path(shutil.copy(fitted_survey, tmp_path))
