"""A committee that runs out of time says so."""

import numpy as np
import pytest

from treewright import find_wrong_labels
from treewright.core.budget import Budget
from treewright.data import make_problem
from treewright.models.octsvm import committee as wrong_labels
from treewright.models.octsvm.fit import OCTSVMSettings, train_octsvm
from treewright.optimize.conduct import Conduct
from treewright.solvers import get_solver


def two_clusters():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    return rng.normal(size=(40, 2)) * 0.1 + y[:, None], y


@pytest.fixture
def short(monkeypatch):
    """Rounds after the sixth find no time."""
    heard = wrong_labels._Task.opinions
    monkeypatch.setattr(
        wrong_labels._Task, "opinions", lambda self, seed, number: heard(self, seed, number) if number < 6 else None
    )


def test_rounds_without_time_are_told(short):
    X, y = two_clusters()
    with pytest.warns(UserWarning, match=r"had time for 6 of 9 rounds \(n_estimators\); a longer time_limit"):
        find_wrong_labels(X, y, n_estimators=9, random_state=0)
    settings = OCTSVMSettings(max_depth=0, n_estimators=9)
    found = train_octsvm(make_problem(X, y), settings, Conduct(solver=get_solver("highs")), Budget(5))
    assert "had time for 6 of 9 rounds" in found.record.note
