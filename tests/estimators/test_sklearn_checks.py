"""The whole of scikit-learn's estimator checks, on both free solvers, with no expected failure."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from treewright import OCTHClassifier

ESTIMATORS = [OCTHClassifier(time_limit=2, solver=solver) for solver in ("highs", "scip")]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)
