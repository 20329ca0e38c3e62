"""What holds for all tests."""

import os
import shutil
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from tests.cli_survey import fit_arguments, write_survey
from tests.short_searches import ALONE, SHORT, SHORTEST
from treewright.cli import main
from treewright.estimators.model import Model

# A shell that starts the tests in the background has SIGINT ignored, and every process below inherits that: then no
# Ctrl-C could be tested. A handler of Python's own is inherited by nobody, so child processes get the default back.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples of a property where its test does not say how many: each run draws others.
settings.register_profile("suite", max_examples=25, deadline=None)
settings.load_profile("suite")


def pytest_configure(config):
    """Before workers start: a folder for what they share."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        return
    folder = tempfile.TemporaryDirectory()  # workers inherit it; removed when the session ends
    config.add_cleanup(folder.cleanup)
    os.environ["TREEWRIGHT_TEST_OPTIMA"] = folder.name


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

    No clock is in it.
    """
    monkeypatch.setattr(Model, "_search_settings", replace(SHORT, program_cells=Model._search_settings.program_cells))


@pytest.fixture
def shortest_searches(monkeypatch):
    """Still less, for tests to which it does not matter how good trees are."""
    cells = Model._search_settings.program_cells  # beside no_branch_and_bound, in any order
    monkeypatch.setattr(Model, "_search_settings", replace(SHORTEST, program_cells=cells))


@pytest.fixture
def no_branch_and_bound(monkeypatch):
    """No program is small enough for a solver, so that fits end where their search does, whatever the clock says."""
    monkeypatch.setattr(Model, "_search_settings", replace(Model._search_settings, program_cells=0))


@pytest.fixture
def searches_alone(monkeypatch):
    """No branch and bound and the shortest searches, in which trees do not wander either."""
    monkeypatch.setattr(Model, "_search_settings", ALONE)


@pytest.fixture(scope="module")
def short_searches_of_module():
    """Short searches for fixtures that the tests of a module share."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Model, "_search_settings", SHORT)
        yield


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
