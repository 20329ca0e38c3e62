"""What a fit does, called without scikit-learn's face: estimators add parameters, validation and attributes alone."""

import inspect
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from tests.estimators_list import QUICK, REGRESSORS, SOLVED, quick
from tests.seen_trees import seen
from tests.short_searches import SHORTEST

import treewright as tw
from treewright.core.budget import Budget
from treewright.data import Sample, make_problem
from treewright.graph import GraphSettings
from treewright.models.baselines.lap_svm_fit import train_lap_svm
from treewright.models.baselines.ssct_fit import train_ssct
from treewright.models.c2rf.fit import train_c2rf
from treewright.models.laptao.fit import train_laptao
from treewright.models.oct.fit import train_oct
from treewright.models.oct_h.fit import train_oct_h
from treewright.models.s2oct import fit as s2oct
from treewright.models.s2oct.fit import train_s2oct
from treewright.models.svm1odt.fit import SVM1ODTSettings
from treewright.models.tao.fit import train_tao
from treewright.models.totals.fit import Fitting, train_totals
from treewright.optimize.conduct import Conduct
from treewright.solvers import get_solver

rng = np.random.default_rng(0)
X = rng.random((60, 3))
TRUTH = (X[:, 0] + X[:, 1] > 1).astype(int)
FEW = np.where(np.arange(60) < 20, TRUTH, -1)
TOTAL = int(TRUTH[20:].sum())
TARGET = X[:, 0] - X[:, 2]


def drawn(seed=0):
    """What an estimator with this random_state draws for everything random in its fit."""
    return int(np.random.RandomState(seed).randint(2**31 - 1))


def proving():
    return Conduct(solver=get_solver("highs"), seed=drawn())


def problem(y=FEW, **more):
    return make_problem(X, y, supervised=np.all(y >= 0), **more)


def test_oct():
    found = train_oct(problem(TRUTH), tw.OCTClassifier(max_depth=1), proving(), Budget(20))
    model = tw.OCTClassifier(max_depth=1, random_state=0, time_limit=20).fit(X, TRUTH)
    assert found.tree == seen(model) and found.record.objective == model.objective_


def test_oct_h():
    found = train_oct_h(problem(TRUTH), tw.OCTHClassifier(max_depth=1), proving(), Budget(20))
    model = tw.OCTHClassifier(max_depth=1, random_state=0, time_limit=20).fit(X, TRUTH)
    assert found.tree == seen(model) and found.record.objective == model.objective_
    assert found.record.status == "optimal" and found.record.trace.dtype.names == ("seconds", "objective", "bound")


@pytest.mark.usefixtures("shortest_searches")
@pytest.mark.parametrize("size", [None, "auto"])
def test_s2oct_and_its_committee(size):
    settings = tw.S2OCTClassifier(max_depth=2, max_split_features=size, n_estimators=3)
    found = train_s2oct(problem(totals={1: TOTAL}), settings, replace(proving(), search=SHORTEST), Budget())
    model = tw.S2OCTClassifier(2, max_split_features=size, random_state=0, time_limit=None, n_estimators=3)
    model.fit(X, FEW, totals={1: TOTAL})
    assert [found.tree, *found.others] == model.trees_ and np.array_equal(found.numbers, model.transduction_)
    assert found.record.objective == model.objective_ and str(found.teacher) == str(model.teacher_)
    if size is None:
        assert found.record.objective == 0.0
    assert np.sum(found.numbers[20:] == 1) == TOTAL


@pytest.mark.parametrize("size", [None, "auto"])
def test_s2oct_leaves_as_much_time_for_what_follows_as_it_took_to_prepare(size, monkeypatch, own_clock):
    """Both are passes over all rows: with very many of them a search that used the limit up would end beyond it."""
    module, left = "treewright.models.s2oct.fit", []
    reduced, search = s2oct.reduced_sample, s2oct._optimal if size is None else s2oct._sparse

    def slowly(*rows):
        own_clock.now += 3.0
        return reduced(*rows)

    def noted(model, starts, settings, conduct, budget, teacher, **more):
        left.append(budget.remaining)
        return search(model, starts, settings, conduct, Budget(0.1), teacher, **more)

    monkeypatch.setattr(f"{module}.reduced_sample", slowly)
    monkeypatch.setattr(f"{module}.{search.__name__}", noted)
    for limit in (10.0, 4.0, None):
        settings = tw.S2OCTClassifier(max_depth=2, max_split_features=size)
        train_s2oct(problem(totals={1: TOTAL}), settings, proving(), Budget(limit))
    assert left == pytest.approx([4.0, 0.5, np.inf])


def test_c2rf():
    found = train_c2rf(problem(totals={1: TOTAL}), None, False, tw.C2RFClassifier(), proving(), Budget(20))
    model = tw.C2RFClassifier(random_state=0, time_limit=20).fit(X, FEW, totals={1: TOTAL})
    assert np.array_equal(found.weights, model.weights_) and np.array_equal(found.numbers, model.transduction_)
    assert np.sum(found.numbers[20:] == 1) == TOTAL and found.record.bound == 0.0


def test_totals():
    rng = np.random.default_rng(drawn())
    found = train_totals(problem(totals={1: TOTAL}), LogisticRegression(), Fitting(False, False), rng, Budget())
    model = tw.TotalsClassifier(LogisticRegression(), random_state=0).fit(X, FEW, totals={1: TOTAL})
    assert np.array_equal(found.numbers, model.transduction_) and np.sum(found.numbers[20:] == 1) == TOTAL
    assert found.record.objective is None and "within the totals" in found.record.reason


@pytest.mark.parametrize("leaves", ["constant", "linear"])
def test_tao(leaves):
    settings, conduct = tw.TAORegressor(max_depth=3, leaves=leaves), Conduct(seed=drawn())
    found = train_tao(Sample.of(X, TARGET[:, None]), None, settings, conduct, Budget())
    model = tw.TAORegressor(max_depth=3, leaves=leaves, random_state=0).fit(X, TARGET)
    assert found.tree == model.tree_ and found.record.objective == model.objective_ and found.alpha == model.alpha_
    assert found.record.trace.dtype.names == ("seconds", "objective", "loss") and found.record.bound is None
    if leaves == "constant":
        found = train_tao(Sample.of(X, TRUTH), 2, settings, conduct, Budget())
        assert found.tree == seen(tw.TAOClassifier(max_depth=3, random_state=0).fit(X, TRUTH))


def test_tao_tells_of_its_passes():
    told = []
    conduct = Conduct(seed=0, told=lambda *event: told.append(event))
    found = train_tao(Sample.of(X, TRUTH), 2, tw.TAOClassifier(max_depth=2), conduct, Budget())
    assert len(told) == found.n_iter + 2 and "stretched" in told[-1][3]
    assert [event[1] for event in told[:-1]] == found.record.trace["objective"].tolist()


def test_laptao():
    rows = Sample.of(X, np.where(np.arange(60) < 20, TARGET, 0.0)[:, None])
    conduct = Conduct(seed=drawn())
    settings = tw.LapTAORegressor(max_depth=3, gamma=0.01, max_iter=3)
    found = train_laptao(rows, FEW >= 0, False, None, settings, GraphSettings(), conduct, Budget())
    y = np.where(FEW >= 0, TARGET, np.nan)
    model = tw.LapTAORegressor(max_depth=3, max_iter=3, random_state=0).fit(X, y)
    assert found.model.tree == model.tree_ and np.array_equal(found.model.scores(X)[:, 0], model.predict(X))
    assert np.array_equal(found.smooth[20:, 0], model.transduction_[20:])
    assert found.record.reason in ("all rounds are done", "the model did not change any more")


def test_lap_svm():
    found = train_lap_svm(problem(), None, tw.LapSVMClassifier(), GraphSettings(), Conduct(seed=drawn()), Budget())
    model = tw.LapSVMClassifier(random_state=0).fit(X, FEW)
    assert np.array_equal(found.machines.coefficients, model.dual_coef_)
    assert np.array_equal(found.numbers, model.transduction_) and found.record.objective == model.objective_


def test_ssct():
    found = train_ssct(problem(), tw.SSCTClassifier(max_depth=3), Conduct(seed=drawn()), Budget())
    model = tw.SSCTClassifier(max_depth=3, random_state=0).fit(X, FEW)
    assert found.tree == seen(model) and np.array_equal(found.numbers, model.transduction_)


SETTINGS = {GraphSettings: tw.LapSVMClassifier, SVM1ODTSettings: tw.SVM1ODTClassifier}


@pytest.mark.parametrize(("kind", "estimator"), SETTINGS.items(), ids=lambda kind: kind.__name__)
def test_settings_are_parameters_with_the_same_defaults(kind, estimator):
    parameters = inspect.signature(estimator).parameters
    for field in fields(kind):
        assert field.name in parameters
        assert field.default == parameters[field.name].default


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.usefixtures("shortest_searches")
def test_attributes_are_those_of_the_record(name):
    iris = load_iris().data[:60]
    y = iris[:, 0] if name in REGRESSORS else (iris[:, 2] > 2).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = quick(name, random_state=0).fit(iris, y)
    record = model.record_
    assert (model.status_, model.reason_, model.solve_time_) == (record.status, record.reason, record.seconds)
    assert model.trace_ is record.trace and record.reason and record.seconds > 0
    assert model.trace_.dtype.names[0] == "seconds"
    for part in ("objective", "bound", "gap"):
        assert getattr(model, f"{part}_", None) == getattr(record, part)
    solved = name in SOLVED
    assert solved == (record.bound is not None) == (record.gap_asked is not None)
    if "objective" in model.trace_.dtype.names and solved:
        if name in ("SVM1ODTClassifier", "RESVMClassifier"):  # whose trees are trimmed at the end
            assert record.objective <= model.trace_["objective"][-1] * (1 + 1e-6)
        else:
            assert model.trace_["objective"][-1] == record.objective
