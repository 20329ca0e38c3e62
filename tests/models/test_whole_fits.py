"""A fit is set as a whole and warns afterwards: whatever breaks it off leaves one fit, the old or the new one."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDRegressor

import treewright as tw

NO_TIME = 1e-3
rng = np.random.default_rng(0)
X = rng.random((60, 3))
NOISE = rng.integers(0, 2, 60)

CASES = {
    "oct-h": (tw.OCTHClassifier(time_limit=NO_TIME), {}),
    "binoct": (tw.BinOCTClassifier(time_limit=NO_TIME), {}),
    "fair-oct": (tw.FairOCTClassifier(time_limit=NO_TIME, fairness_weight=0.1), {"protected": NOISE}),
    "s2oct": (tw.S2OCTClassifier(time_limit=NO_TIME), {"totals": 20}),
    "committee": (tw.S2OCTClassifier(n_estimators=3, time_limit=NO_TIME), {}),
    "c2rf": (tw.C2RFClassifier(tw.paper_forest(0), class_prices=False, time_limit=NO_TIME), {"totals": 17}),
    "tao": (tw.TAOClassifier(time_limit=NO_TIME), {}),
    "tao regressor": (tw.TAORegressor(time_limit=NO_TIME), {}),
    "laptao": (tw.LapTAOClassifier(time_limit=NO_TIME), {}),
    "laptao forest": (tw.LapTAOClassifier(n_estimators=2, time_limit=NO_TIME), {}),
    "laptao regressor": (tw.LapTAORegressor(time_limit=NO_TIME), {}),
    "ssct": (tw.SSCTClassifier(time_limit=NO_TIME), {}),
    "lap svm": (tw.LapSVMClassifier(), {}),
    "totals": (tw.TotalsClassifier(LogisticRegression(max_iter=1)), {"totals": 20}),
    "self-training": (tw.SelfTrainingRegressor(SGDRegressor(max_iter=1)), {}),
}
"""Estimators whose fits end with a warning, or whose wrapped estimators warn."""


TREES = (tw.BinOCTClassifier, tw.FairOCTClassifier, tw.OCTHClassifier, tw.TAOClassifier, tw.TAORegressor)


def targets(model, names, numbers=NOISE):
    supervised = isinstance(model, TREES)
    known = np.arange(60) < (60 if supervised else 30)
    if not is_classifier(model):
        return np.where(known, X[:, 0] + numbers + len(names[0]), np.nan)
    return np.where(known, np.array(names, dtype=object)[numbers], -1)


@pytest.fixture(autouse=True)
def lap_svm_that_does_not_converge(monkeypatch):
    from treewright.models.baselines import lap_svm_fit as lap_svm

    solve = lap_svm.solve_lap_svm
    monkeypatch.setattr(lap_svm, "solve_lap_svm", lambda *a: solve(*a)._replace(converged=False))


def fitted(model):
    """All that a fit has set."""
    return {k: v for k, v in vars(model).items() if k not in model.get_params(deep=False)}


def own(attributes):
    """Those that every fit makes anew, so that identity tells one fit from another."""
    plain = (int, float, str, bool, np.generic, type(None))
    return {k: v for k, v in attributes.items() if not isinstance(v, plain)}


def quiet_fit(model, y, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, **given)


def assert_of_one_fit(model, before):
    """All attributes are those of before, or none is."""
    old, new = own(before), own(fitted(model))
    same = {name for name in old if new.get(name) is old[name]}
    assert set(fitted(model)) == set(before)
    assert same in (set(), set(old))
    if hasattr(model, "classes_"):
        assert set(model.predict(X)) <= set(model.classes_)
        if hasattr(model, "transduction_"):
            assert set(model.transduction_) <= set(model.classes_)


@pytest.mark.parametrize(("model", "given"), CASES.values(), ids=CASES.keys())
def test_a_warning_made_an_error_leaves_one_whole_fit(model, given):
    first, second = targets(model, ["a", "b"]), targets(model, ["no", "yes"])
    reference = set(fitted(quiet_fit(clone(model), first, given)))
    again = clone(model)
    with warnings.catch_warnings(), pytest.raises(Warning):
        warnings.simplefilter("error")
        again.fit(X, first, **given)
    assert set(fitted(again)) in (set(), reference)
    before = fitted(quiet_fit(again, first, given))
    with warnings.catch_warnings(), pytest.raises(Warning):
        warnings.simplefilter("error")
        again.fit(X, second, **given)
    assert_of_one_fit(again, before)


FEW = np.arange(20, 40)
CLEAR = (X[:, 0] > 0.5).astype(int)
TOTAL = {"totals": int(CLEAR[30:40].sum())}
CALM = {
    "oct-h": (tw.OCTHClassifier(max_depth=1, time_limit=None), {}),
    "s2oct": (tw.S2OCTClassifier(max_depth=1, time_limit=None, random_state=0), TOTAL),
    "c2rf": (tw.C2RFClassifier(RandomForestClassifier(5), random_state=0), TOTAL),
    "tao": (tw.TAOClassifier(max_depth=2, max_iter=2, random_state=0), {}),
    "tao regressor": (tw.TAORegressor(max_depth=2, max_iter=2, random_state=0), {}),
    "laptao": (tw.LapTAOClassifier(max_depth=2, max_iter=2, random_state=0), {}),
    "laptao regressor": (tw.LapTAORegressor(max_depth=2, max_iter=2, random_state=0), {}),
    "ssct": (tw.SSCTClassifier(), {}),
    "lap svm": (tw.LapSVMClassifier(), {}),
    "totals": (tw.TotalsClassifier(LogisticRegression(), random_state=0), TOTAL),
    "self-training": (tw.SelfTrainingRegressor(random_state=0), {}),
}
"""Estimators that end soon, without a clock."""


def calls_of_the_package(fit, fail_at=None):
    """Run a fit, failing at a call of a function of treewright; how many such calls there were."""
    count = 0

    def hook(frame, event, argument):
        nonlocal count
        if event == "call" and frame.f_globals.get("__name__", "").startswith("treewright"):
            count += 1
            if count == fail_at:
                raise MemoryError("no memory left")

    sys.setprofile(hook)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "given"), CALM.values(), ids=CALM.keys())
def test_a_fit_that_fails_in_its_last_steps_leaves_one_whole_fit(model, given):
    first, second = (targets(model, names, CLEAR)[FEW] for names in (["a", "b"], ["no", "yes"]))
    whole = clone(model).fit(X[FEW], first, **given)
    steps = calls_of_the_package(lambda: clone(model).fit(X[FEW], second, **given))
    for k in range(0, 15, 7 if isinstance(model, tw.S2OCTClassifier) else 1):  # its fits take longest
        again, before = clone(model), fitted(whole)
        vars(again).update(before)
        try:
            calls_of_the_package(lambda: again.fit(X[FEW], second, **given), fail_at=steps - k)  # noqa: B023
        except MemoryError:
            assert_of_one_fit(again, before)
