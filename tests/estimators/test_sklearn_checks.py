"""The whole of scikit-learn's estimator checks, on both free solvers, with no expected failure."""

import warnings

import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from treewright import (
    C2RFClassifier,
    LapSVMClassifier,
    LapTAOClassifier,
    LapTAORegressor,
    OCTHClassifier,
    S2OCTClassifier,
    SelfTrainingRegressor,
    SSCTClassifier,
    SVM1ODTClassifier,
    TAOClassifier,
    TAORegressor,
    TotalsClassifier,
)

ESTIMATORS = [
    kind(depth, time_limit=2, solver=solver)
    for kind, depth in ((OCTHClassifier, 2), (S2OCTClassifier, None))
    for solver in ("highs", "scip")
] + [SVM1ODTClassifier(alpha_2=1.0, time_limit=1), SVM1ODTClassifier(time_limit=1, solver="scip")]


FEW_TREES = RandomForestClassifier(15, bootstrap=False, max_features=None, random_state=0)
"""In the place of the default forests of 200 trees, of which the checks would fit a few hundred; no rows are drawn, for
a weight of 2 is not a row drawn twice."""

FIT_TWICE = (
    "check_classifier_data_not_an_array",
    "check_fit_idempotent",
    "check_pipeline_consistency",
    "check_sample_weight_equivalence",
    "check_supervised_y_2d",
)
"""Checks that compare two fits, which need time to be the same; for the others any tree will do."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    if not check.func.__name__.startswith(FIT_TWICE):
        estimator = clone(estimator).set_params(time_limit=0.15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            check(estimator)
        except AssertionError:
            # Some checks compare two fits. Fits that end at their time limit may differ on a machine under load; with
            # more time they must not.
            check(clone(estimator).set_params(time_limit=10))


@parametrize_with_checks(
    [TotalsClassifier(LogisticRegression()), TotalsClassifier(FEW_TREES), C2RFClassifier(FEW_TREES)]
)
def test_scikit_learn_check_of_totals_for_any_classifier(estimator, check):
    check(estimator)


@parametrize_with_checks([TAOClassifier(3), TAORegressor(4), TAORegressor(3, leaves="linear")])
def test_scikit_learn_check_of_tree_alternating_optimization(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        SelfTrainingRegressor(),
        SelfTrainingRegressor(TAORegressor(3)),
        SSCTClassifier(),
        LapSVMClassifier(),
        LapSVMClassifier("linear"),
    ]
)
def test_scikit_learn_check_of_semi_supervised_baselines(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        LapTAOClassifier(max_depth=3, max_iter=3),
        LapTAORegressor(max_depth=3, max_iter=3),
        LapTAOClassifier(max_depth=3, max_iter=3, estimator="cart"),
        LapTAORegressor(max_depth=2, n_estimators=2, max_iter=2),
        LapTAOClassifier(estimator="graph"),
    ]
)
def test_scikit_learn_check_of_laptao(estimator, check):
    check(estimator)
