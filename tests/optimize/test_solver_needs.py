"""A model that a solver cannot take is refused before the search."""

import numpy as np
import pytest
from tests.contracts.cases import CASES
from tests.examples import looped

from treewright.core.budget import Budget
from treewright.data.point_totals import PointTotals
from treewright.exceptions import UnsupportedProgramError
from treewright.models.c2rf.objective import C2RF
from treewright.models.oct_h.objective import OCTH
from treewright.optimize.conduct import Conduct
from treewright.optimize.course import optimize
from treewright.solvers import Capability, get_solver
from treewright.solvers.vocabulary import capabilities_needed


class LinearOnly:
    """A solver that knows no integers, and is never asked to solve."""

    name = "linear"
    capabilities = Capability.LP | Capability.START | Capability.CONE

    def solve(self, *_args, **_options):
        raise AssertionError("the solver was started")


class NoCones(LinearOnly):
    """A solver that knows integers but no cones, and is never asked to solve."""

    capabilities = Capability.LP | Capability.MIP | Capability.START


class Coned(OCTH):
    """A model whose program would have cones."""

    needs = OCTH.needs | Capability.CONE


def tiny(kind):
    return kind(np.array([[0.0], [0.5], [1.0]]), np.array([0, 1, 0]), np.ones(3), n_classes=2)


def train(model, solver):
    def search(_best, _time):
        raise AssertionError("the search was started")

    return optimize(model, search, Conduct(solver=solver), Budget(5.0))


@pytest.mark.parametrize("model", [CASES[0].tiny(0), CASES[-1].tiny(0)], ids=["oct-h", "s2oct"])
def test_a_solver_without_integers_is_refused_before_the_search(model):
    with pytest.raises(UnsupportedProgramError, match="'linear' lacks mip.*highs, scip, gurobi"):
        train(model, LinearOnly())


def test_weights_are_a_model_too():
    model = C2RF(np.array([[1, -1, 1]]), PointTotals([[2]], low=[[0, 2]], high=[[0, 2]]))
    with pytest.raises(UnsupportedProgramError, match="lacks mip"):
        train(model, LinearOnly())


def test_a_solver_without_cones_is_refused_before_the_search():
    with pytest.raises(UnsupportedProgramError, match="'linear' lacks cone, which this program needs.*: highs, scip"):
        train(tiny(Coned), NoCones())


def test_a_solver_that_can_gets_as_far_as_the_search():
    with pytest.raises(AssertionError, match="the search was started"):
        train(tiny(OCTH), get_solver("highs"))


@looped("case", CASES)
def test_models_say_what_their_programs_need(case):
    model = case.tiny(0)
    assert model.needs == capabilities_needed(model.build())
    assert 0.2 <= model.program_cells / model.build().matrix.nnz <= 5.0
