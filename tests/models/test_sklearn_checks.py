"""The whole of scikit-learn's estimator checks, with no expected failure.

What checks ask of parameters, tags and bad input is the same for all settings of an estimator: a second one, another
solver say, gets the checks of what is fitted and predicted.
"""

import warnings

import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.estimators_list import QUICK

import treewright as tw

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
"""Checks that compare two fits, which are the same only if no clock ends them; for the others any tree will do."""


OF_FITS = (
    "check_all_zero_sample_weights_error",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_train",
    "check_decision_proba_consistency",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimator_sparse",
    "check_estimators_dtypes",
    "check_estimators_pickle",
    "check_fit2d_1",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_methods_",
    "check_non_transformer_estimators_n_iter",
    "check_readonly_memmap_input",
    "check_regressor",
    "check_sample_weight_equivalence",
)
"""Checks of what is fitted and predicted."""

ONCE = {
    "check_classifiers_train": {"readonly_memmap": True, "X_dtype": "float32"},
    "check_regressors_train": {"readonly_memmap": True, "X_dtype": "float32"},
    "check_estimator_sparse_matrix": None,
}
"""Checks that come in several variants: other settings of an estimator get the hardest one, memory that is read only
with single precision, and sparse arrays but not the matrices that differ from them in name."""


def asked_again(check):
    """Whether a check of fits is for other settings of an estimator, too."""
    name, given = check.func.__name__, check.keywords
    return name.startswith(OF_FITS) and (name not in ONCE or given == ONCE[name])


CHECKED = set()
"""Names of the estimators that get all checks."""


def with_checks(*first, again=()):
    """Parametrize by all checks of the first estimators, and for those `again`, in other settings, by those of fits."""
    CHECKED.update(type(estimator).__name__ for estimator in first)
    all_of, of_fits = parametrize_with_checks(first), parametrize_with_checks(again)
    some = [pair for pair in of_fits.args[1] if asked_again(pair[1])]
    return pytest.mark.parametrize(all_of.args[0], [*all_of.args[1], *some], **all_of.kwargs)


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@with_checks(
    tw.OCTHClassifier(2, time_limit=1),
    tw.BinOCTClassifier(2, time_limit=1),
    tw.FairOCTClassifier(2, time_limit=1),
    tw.S2OCTClassifier(time_limit=1),
    tw.SVM1ODTClassifier(time_limit=1),
    tw.OCTSVMClassifier(1, max_norm=4.0, time_limit=1, gap=0.9, relabel="tree"),
    tw.RESVMClassifier(time_limit=1, gap=0.9),
    tw.OCTClassifier(),
    again=[
        tw.OCTSVMClassifier(0, n_estimators=5, time_limit=0.3, gap=0.9),
        tw.OCTHClassifier(2, time_limit=1, solver="scip"),
        tw.S2OCTClassifier(max_split_features=None, time_limit=1),
        tw.S2OCTClassifier(max_split_features=2, time_limit=1, solver="scip"),
        tw.SVM1ODTClassifier(time_limit=1, solver="scip"),
    ],
)
def test_scikit_learn_check(estimator, check, request):
    # The check of accuracy: a tree a class takes as many times as long, and so does a choice of prices.
    slow = hasattr(estimator, "relabel") or isinstance(estimator, tw.SVM1ODTClassifier)
    good = (*FIT_TWICE, "check_classifiers_train") if slow else FIT_TWICE
    if not check.func.__name__.startswith(good):
        estimator = clone(estimator).set_params(time_limit=0.04)
    else:
        request.getfixturevalue("searches_alone")
        estimator = clone(estimator).set_params(time_limit=10)
        if isinstance(estimator, tw.SVM1ODTClassifier):  # the choice of prices takes what time there is
            estimator.set_params(alpha_2=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            check(estimator)
        except AssertionError:
            # Some checks compare two fits. Fits that end at their time limit may differ on a machine under load; with
            # more time they must not.
            check(clone(estimator).set_params(time_limit=10))


@with_checks(
    tw.TotalsClassifier(LogisticRegression()), tw.C2RFClassifier(FEW_TREES), again=[tw.TotalsClassifier(FEW_TREES)]
)
def test_scikit_learn_check_of_totals_for_any_classifier(estimator, check):
    check(estimator)


@with_checks(tw.TAOClassifier(3), tw.TAORegressor(4), again=[tw.TAORegressor(3, leaves="linear")])
def test_scikit_learn_check_of_tree_alternating_optimization(estimator, check):
    check(estimator)


@with_checks(
    tw.SelfTrainingRegressor(),
    tw.SSCTClassifier(),
    tw.LapSVMClassifier(),
    again=[tw.SelfTrainingRegressor(tw.TAORegressor(3)), tw.LapSVMClassifier("linear")],
)
def test_scikit_learn_check_of_semi_supervised_baselines(estimator, check):
    check(estimator)


@with_checks(
    tw.LapTAOClassifier(max_depth=2, max_iter=2),
    tw.LapTAORegressor(max_depth=2, max_iter=2),
    again=[
        tw.LapTAOClassifier(max_depth=2, max_iter=2, estimator="cart"),
        tw.LapTAORegressor(max_depth=2, n_estimators=2, max_iter=1),
        tw.LapTAOClassifier(estimator="graph"),
    ],
)
def test_scikit_learn_check_of_laptao(estimator, check):
    check(estimator)


def test_every_estimator_is_checked():
    assert set(QUICK) == CHECKED
