"""Numbers at the ends of floating point, weights over many orders and empty corners: a fit, or a message of ours."""

import re

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from tests.estimators_list import QUICK, REGRESSORS, SUPERVISED, WITH_TOTALS, quick

import treewright as tw
from treewright.exceptions import InvalidInputError, TreewrightError

pytestmark = [
    pytest.mark.usefixtures("searches_alone"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore:(overflow|divide|invalid|underflow):RuntimeWarning"),
]

N = 12
COLUMNS = {
    "usual": lambda z, rng: z,
    "whole numbers": lambda z, rng: rng.integers(0, 3, N).astype(float),
    "constant": lambda z, rng: np.full(N, 7.5),
    "constant and large": lambda z, rng: np.full(N, 1e300),
    "constant and small": lambda z, rng: np.full(N, 1e-300),
    "large": lambda z, rng: z * 1e300,
    "ends of floating point": lambda z, rng: np.where(rng.random(N) < 0.3, -1.7e308, 1.7e308),
    "some large": lambda z, rng: np.where(np.arange(N) % 5 == 0, 1e300, z),
    "squares overflow": lambda z, rng: z * 1e160,
    "squares vanish": lambda z, rng: z * 1e-160,
    "small": lambda z, rng: z * 1e-300,
    "denormal": lambda z, rng: np.where(rng.random(N) < 0.5, 5e-324, 0.0),
    "far from zero": lambda z, rng: 1e15 + z,
}
WEIGHTS = {
    "none": lambda rng: None,
    "some": lambda rng: rng.random(N),
    "many orders": lambda rng: 10.0 ** rng.uniform(-12, 12, N),
    "all orders": lambda rng: 10.0 ** rng.uniform(-300, 300, N),
    "one of 1e300": lambda rng: np.where(np.arange(N) == 3, 1e300, 1.0),
    "some of 0": lambda rng: np.where(np.arange(N) % 3 == 2, 0.0, 1.0),
}


class Draw:
    """Rows of extremes, of which some are labelled, and what is known of the others."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        names = rng.choice(list(COLUMNS), rng.integers(1, 4))
        self.X = np.column_stack([COLUMNS[name](rng.normal(size=N), rng) for name in names])
        self.n_classes = int(rng.integers(2, 4))
        self.truth = rng.permutation(np.arange(N) % self.n_classes)
        self.truth[: self.n_classes] = np.arange(self.n_classes)
        self.y = np.where(np.arange(N) < rng.choice([5, 8, N]), self.truth, -1)
        self.weight = WEIGHTS[rng.choice(list(WEIGHTS))](rng)
        self.group = rng.integers(0, 3, N)
        if rng.random() < 0.3:  # groups without an unlabelled row
            self.group[self.y < 0] = 0
        self.target = np.where(self.y < 0, np.nan, self.truth) * rng.choice([1.0, 1e300, 1e-300])
        kind = rng.choice(["none", "true", "nobody", "by group"])
        hidden = self.y < 0
        counts = {
            int(g): {k: int(np.sum(hidden & (self.group == g) & (self.truth == k))) for k in range(self.n_classes)}
            for g in np.unique(self.group)
        }
        self.groups, self.totals = (self.group, counts) if kind == "by group" else (None, None)
        if kind in ("true", "nobody"):
            self.totals = {1: 0 if kind == "nobody" else int(np.sum(hidden & (self.truth == 1)))}


SEED = {"random_state": 0}
LIMIT = {**SEED, "time_limit": 5}
SETTINGS = {"max_depth": 2, "epsilon": 0.05, "alpha_2": 1.0, **LIMIT}
FOREST = RandomForestClassifier(5, **SEED)


def fit_of(name, **settings):
    """Fit of a draw by an estimator of the list."""

    def fit(draw):
        y = draw.truth if name in SUPERVISED and "teacher" not in settings else draw.y
        if name in REGRESSORS:
            y = np.nan_to_num(draw.target) if name in SUPERVISED else draw.target
        given = {"totals": draw.totals, "groups": draw.groups} if name in WITH_TOTALS else {}
        return quick(name, **(SETTINGS | settings)).fit(draw.X, y, sample_weight=draw.weight, **given)

    return fit


FITS = {name: fit_of(name) for name in QUICK} | {
    "s2oct, any": fit_of("S2OCTClassifier", max_split_features=None),
    "s2oct, one": fit_of("S2OCTClassifier", max_split_features=1),
    "s2oct, paper": fit_of("S2OCTClassifier", margin_rule="paper"),
    "totals, auto": fit_of("TotalsClassifier", estimator="auto"),
    "totals, forest": fit_of("TotalsClassifier", estimator=FOREST),
    "c2rf, forest": fit_of("C2RFClassifier", estimator=FOREST),
    "c2rf, paper": fit_of("C2RFClassifier", estimator=FOREST, class_prices=False),
    "tao, one": fit_of("TAOClassifier", max_split_features=1),
    "tao, taught": fit_of("TAOClassifier", teacher="auto"),
    "tao, lines": fit_of("TAORegressor", leaves="linear"),
    "svm1odt, stump": fit_of("SVM1ODTClassifier", max_depth=1),
    "octsvm, stump": fit_of("OCTSVMClassifier", max_depth=1),
    "laptao, taught": fit_of("LapTAOClassifier", teacher="auto"),
    "wrong labels": lambda draw: tw.find_wrong_labels(draw.X, draw.truth, **SEED),
    "select": lambda draw: tw.select(
        draw.X, draw.truth, tw.TAOClassifier(max_depth=1, **SEED).fit(draw.X, draw.truth).tree_
    ),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_extremes_ends_with_a_model_or_a_message(name, seed):
    draw = Draw(seed)
    try:
        model = FITS[name](draw)
    except TreewrightError:
        return
    for attribute in ("objective_", "bound_", "solve_time_"):
        assert np.isfinite(getattr(model, attribute, 0.0)), attribute
    if hasattr(model, "tree_"):
        assert np.isfinite(model.tree_.values).all()
    if hasattr(model, "transduction_") and hasattr(model, "classes_"):
        assert np.array_equal(np.asarray(model.transduction_)[draw.y >= 0], draw.truth[draw.y >= 0])
    if name in ("TAORegressor", "tao, lines", "LapTAORegressor"):
        assert np.isfinite(model.predict(draw.X)).all()


def test_a_column_that_hardly_varies_is_named():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)) * [1.0, 1e-300], np.where(np.arange(20) < 6, np.arange(20) % 2, -1)
    for most in ("auto", None, 1):
        with pytest.raises(InvalidInputError, match=r"column 1 varies by \d\.\d+e-300 only; multiply it"):
            tw.S2OCTClassifier(max_split_features=most, **LIMIT).fit(X, y)


@pytest.mark.parametrize("heavy", [1e300, 1e-300])
@pytest.mark.parametrize(
    "model",
    [tw.S2OCTClassifier(**LIMIT), tw.SSCTClassifier(), tw.TAORegressor(), tw.LapTAOClassifier(), tw.TAOClassifier()],
)
def test_weights_beyond_squares_are_refused_with_their_row(model, heavy):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(
        InvalidInputError, match=rf"has {re.escape(repr(heavy))} in row 7, too (large|small) to compute with"
    ):
        model.fit(X, y, sample_weight=np.where(np.arange(20) == 7, heavy, 0.0 if heavy < 1 else 1.0))


def test_weights_that_no_sum_would_show_do_no_harm():
    """Beside the heavy rows there was nothing left on one side of a split, by which the other was divided."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    weight = np.where(np.arange(40) < 20, 1.0, 1e-30)
    model = tw.SSCTClassifier(max_depth=3, random_state=0).fit(X, y, sample_weight=weight)
    assert 0.0 <= model.objective_ <= 1.0
    assert model.score(X, y, sample_weight=weight) >= 0.7


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*WITH_TOTALS, "s2oct, any", "s2oct, one", "s2oct, paper", "c2rf, paper"])
def test_groups_without_an_unlabelled_row(name, n_classes):
    draw = Draw(0)
    draw.X, draw.weight = np.random.default_rng(0).normal(size=(N, 2)), None
    draw.truth = draw.y = np.arange(N) % n_classes
    draw.groups = np.arange(N) // 4
    draw.totals = {g: dict.fromkeys(range(n_classes), 0) for g in range(3)}
    assert np.array_equal(FITS[name](draw).transduction_, draw.y)


def test_errors_of_a_given_estimator_name_it_and_the_column():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.where(np.arange(20) < 10, np.arange(20) % 2, -1)
    X[3, 2] = 1e300
    expected = "RandomForestClassifier cannot take these rows: .*; column 2 has numbers as large as 1e\\+300"
    for model in (tw.TotalsClassifier(RandomForestClassifier(5)), tw.C2RFClassifier(RandomForestClassifier(5))):
        with pytest.raises(InvalidInputError, match=expected):
            model.fit(X, y, totals={1: 5})


def test_the_automatic_teacher_takes_numbers_far_out():
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(60, 2)), np.arange(60) % 2
    X[:, 0] += 3.0 * truth
    y = np.where(np.arange(60) < 20, truth, -1)
    plain, far = (
        tw.TotalsClassifier(random_state=0).fit(X * factor, y, totals={1: 20}) for factor in ([1, 1], [2.0**900, 1])
    )
    assert np.array_equal(plain.transduction_, far.transduction_)


def test_large_targets_of_heavy_rows_have_a_mean():
    X, weight = np.random.default_rng(0).normal(size=(30, 2)), np.where(np.arange(30) % 2, 1e9, 1.0)
    target = 1e300 * (X[:, 0] > 0)
    for model in (tw.LapTAORegressor(max_depth=2, **LIMIT), tw.TAORegressor(max_depth=2, **LIMIT)):
        found = model.fit(X, target, sample_weight=weight).predict(X)
        assert np.isfinite(found).all() and np.corrcoef(found / 1e300, target / 1e300)[0, 1] > 0.9


def test_wrong_labels_where_a_tree_has_seen_every_row():
    """Of ten rows a tree drawn with replacement leaves none out now and then, as with this seed."""
    X, y = np.arange(10.0)[:, None], np.arange(10) % 2
    assert tw.find_wrong_labels(X, y, n_estimators=30, random_state=16).wrong.shape == (10,)


def test_a_split_along_values_whose_squares_vanish():
    """Two of a machine's points differed, but the length of their difference was 0."""
    X = np.append(1.0, np.random.default_rng(0).random(15) * 1e-300)[:, None]
    assert np.isfinite(tw.RESVMClassifier(**LIMIT).fit(X, np.arange(16) % 2).objective_)
