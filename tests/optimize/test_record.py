"""The record of a fit: gaps, ends, named columns."""

import numpy as np
import pytest

from treewright.core.budget import Budget
from treewright.optimize.record import FitRecord, FitStatus, cut_short, named_trace


def record(objective=2.0, bound=1.5, status=FitStatus.OPTIMAL):
    trace = named_trace([(0.0, 3.0, 0.0), (1.0, 2.0, 1.5)], "seconds", "objective", "bound")
    return FitRecord(status, "why", 1.0, objective, bound, trace, 0.3)


def test_the_gap_is_that_of_objective_and_bound():
    assert record().gap == pytest.approx(0.25)
    assert record(bound=2.0).gap == 0.0
    assert record(bound=None).gap is None and record(objective=None).gap is None


def test_a_status_is_plain_text():
    for status in FitStatus:
        kept = record(status=status).status
        assert type(kept) is str and kept == status.value
        assert record(status=status).as_planned == (status in ("optimal", "local"))


def test_other_solutions_and_lost_proofs():
    worse = record().with_objective(4.0)
    assert (worse.objective, worse.bound) == (4.0, 1.5)
    assert record().with_objective(1.0).bound == 1.0  # a bound is never above what was found
    lost = record().unproven("rounding")
    assert (lost.status, lost.reason, lost.objective) == ("unproven", "rounding", 2.0)


def test_a_proof_to_within_rounding_is_none_in_units_of_which_that_is_much():
    assert record(objective=3e-10, bound=0.0).gap == 0.0  # as in units of the heaviest row
    lost = record(objective=3e-10, bound=0.0).times(1e12)
    assert lost.status == "unproven" and lost.gap == 1.0 and "billionth" in lost.reason
    for kept in (record(bound=2.0).times(1e12), record(objective=0.0, bound=0.0).times(1e12), record().times(1e-3)):
        assert kept.status == "optimal"
    assert record(objective=3e-10, bound=None).times(1e12).status == "optimal"
    judged = record(objective=3e-10, bound=0.0).judged(1e12)
    assert judged.status == "unproven" and judged.objective == 3e-10


def test_the_clock_is_read_when_the_record_is_closed():
    budget = Budget()
    first, second = record().closed(budget), record().closed(budget)
    assert 0 <= first.seconds <= second.seconds < 60


def test_columns_have_names():
    trace = record().trace
    assert trace.dtype.names == ("seconds", "objective", "bound")
    assert trace["bound"].tolist() == [0.0, 1.5] and trace[-1]["seconds"] == 1.0
    empty = named_trace([], "seconds", "change")
    assert empty.shape == (0,) and empty["change"].shape == (0,)
    assert np.array_equal(named_trace(np.arange(4.0).reshape(2, 2), "a", "b")["b"], [1.0, 3.0])


def test_what_a_budget_ends():
    budget = Budget(1e-9)
    assert cut_short(budget) == ("time_limit", "the time was over")
    budget.stop()
    assert cut_short(budget, "3 passes") == ("interrupted", "it was interrupted after 3 passes")
