"""What the search found survives whatever happens to the solver after it."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from treewright import C2RFClassifier, OCTHClassifier, S2OCTClassifier, paper_forest
from treewright.exceptions import SolverError
from treewright.models.c2rf.objective import C2RF
from treewright.models.oct_h.objective import OCTH
from treewright.models.s2oct.objective import S2OCT
from treewright.solvers.highs import HighsSolver
from treewright.tree import predict_labels

rng = np.random.default_rng(0)
X = rng.random((60, 3))
y = rng.integers(0, 2, 60)  # noise: no search proves anything
PARTLY = np.where(np.arange(60) < 40, y, -1)
FAILURES = {
    "memory": (MemoryError(), "memory ran out"),
    "solver": (SolverError("HiGHS ended with 'Memory limit reached' and no solution"), "Memory limit reached"),
}
MODELS = {
    "oct-h": (OCTHClassifier(1, random_state=0, time_limit=6), OCTH, (y,), {}),
    "s2oct": (
        S2OCTClassifier(1, max_split_features=None, random_state=0, time_limit=6),
        S2OCT,
        (PARTLY,),
        {"totals": 7},
    ),
    "c2rf": (
        C2RFClassifier(paper_forest(0), class_prices=False, formulation="paper", random_state=0, time_limit=6),
        C2RF,
        (PARTLY,),
        {"totals": 20},
    ),
}


def failing(error):
    def fail(*arguments, **options):
        raise error

    return fail


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("error", "words"), FAILURES.values(), ids=FAILURES.keys())
@pytest.mark.parametrize("place", ["build", "solve"])
@pytest.mark.parametrize(("model", "formulation", "labels", "given"), MODELS.values(), ids=MODELS.keys())
def test_the_best_solution_is_kept(monkeypatch, model, formulation, labels, given, place, error, words):
    target = formulation if place == "build" else HighsSolver
    called = []
    monkeypatch.setattr(target, place, lambda *a, **k: called.append(1) or failing(error)())
    with pytest.warns(ConvergenceWarning, match=f"'unproven'.*{words}"):
        model.fit(X, *labels, **given)
    assert called, "the search has proven its solution, so this tests nothing"
    assert 0 <= model.bound_ <= model.objective_ < np.inf
    if hasattr(model, "tree_"):
        assert np.array_equal(model.classes_[predict_labels(model.tree_, X)], model.predict(X))
    if isinstance(model, OCTHClassifier):  # with no price of splits, the objective is the share of errors
        baseline = max(np.mean(y == 0), np.mean(y == 1))
        wrong = np.mean(model.predict(X) != y)
        assert wrong < 1 - baseline and np.isclose(model.objective_, wrong / (1 - baseline))


@pytest.mark.usefixtures("shortest_searches")
def test_other_errors_are_not_swallowed(monkeypatch):
    monkeypatch.setattr(HighsSolver, "solve", failing(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        OCTHClassifier(1, random_state=0, time_limit=6).fit(X, y)
