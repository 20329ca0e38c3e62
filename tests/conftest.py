"""What holds for all tests."""

import signal

import pytest

from treewright.search.s2oct import attempts, guides
from treewright.training import s2oct as training

# A shell that starts the tests in the background has SIGINT ignored, and every process below inherits that: then no
# Ctrl-C could be tested. A handler of Python's own is inherited by nobody, so child processes get the default back.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def short_searches(monkeypatch):
    """S2OCT with less of what fits of a few rows spend their time on, for tests of what holds however much there is.

    A guide of 20 trees in the place of 200, 6 optimal trees to choose from in the place of 20, and where branch and
    bound is soon through, 2 attempts without improvement before it in the place of 10. No clock is in it.
    """
    monkeypatch.setattr(guides, "_TREES", 20)
    monkeypatch.setattr(attempts, "_IDLE_ATTEMPTS", 2)
    monkeypatch.setattr(training, "_SAMPLES", 6)
