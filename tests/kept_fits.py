"""Fixed fits of every estimator, whose objectives are kept in ``kept_objectives.json``; a change may only lower them.

Every fit ends by itself or by a proof, never by the clock: `LIMIT` is far beyond what any of them takes, and
``test_kept_objectives.py`` refuses the status "time_limit". Record anew, after a change that is meant to move them, by

    python -m tests.kept_fits --record

which notes the commit of the package that was measured; ``--compare`` prints old and new figures and writes nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine, make_moons
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import treewright as tw

LIMIT = 600.0
"""Seconds, so that a fit which never ends fails; the slowest one takes a few."""

RECORD = Path(__file__).with_name("kept_objectives.json")


@dataclass(frozen=True)
class Outcome:
    """What is kept of a fit. Smaller objectives are better."""

    objective: float
    bound: float | None
    status: str | None


FITS: dict[str, Callable[[], Outcome]] = {}


def kept(fit: Callable[[], Any]) -> Callable[[], Any]:
    """Add a fit to the list; it returns a fitted model, or an objective where the model has none."""

    def outcome() -> Outcome:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = fit()
        if isinstance(model, float):
            return Outcome(model, None, None)
        return Outcome(float(model.objective_), getattr(model, "bound_", None), model.status_)

    FITS[fit.__name__] = outcome
    return fit


# ---------------------------------------------------------------------- data


def survey(n: int, p: int, seed: int, labelled: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, classes and labels (-1 unknown) of rows of two classes, parted by a noisy hyperplane."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 30.0, p)
    level = (X / X.std(axis=0)) @ rng.normal(size=p) + 0.3 * rng.normal(size=n)
    truth = (level > 0).astype(int)
    y = np.full(n, -1)
    y[:labelled] = truth[:labelled]
    y[:2], truth[:2] = [0, 1], [0, 1]
    return X, truth, y


def some_labels(truth: np.ndarray, labelled: int, seed: int = 0) -> np.ndarray:
    """Labels of some rows drawn at random, all classes among them; -1 elsewhere."""
    rng = np.random.default_rng(seed)
    first = [int(rng.choice(np.flatnonzero(truth == k))) for k in np.unique(truth)]
    rest = rng.permutation(np.setdiff1d(np.arange(len(truth)), first))
    known = np.concatenate([first, rest])[:labelled].astype(int)
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    return y


def totals_of(truth: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None, slack: int = 0) -> dict[Any, Any]:
    """True counts of the unlabelled rows, `slack` to either side, by group where there are groups."""

    def of(hidden: np.ndarray) -> dict[int, Any]:
        counts = {int(k): int(np.sum(truth[hidden] == k)) for k in np.unique(truth)}
        return {k: (max(0, n - slack), n + slack) if slack else n for k, n in counts.items()}

    if groups is None:
        return of(y == -1)
    return {g: of((y == -1) & (groups == g)) for g in np.unique(groups).tolist()}


def two_groups(n: int) -> np.ndarray:
    return np.where(np.arange(n) % 3 == 0, "north", "south")


def marks(n: int, seed: int) -> np.ndarray:
    """Weights of 1, 2 or 3."""
    return np.random.default_rng(seed).integers(1, 4, n).astype(float)


class Stump(ClassifierMixin, BaseEstimator):
    """Classifier by one threshold, whatever it is fitted on: votes that no other library's version changes."""

    def __init__(self, feature: int = 0, threshold: float = 0.0) -> None:
        self.feature = feature
        self.threshold = threshold

    def fit(self, X: np.ndarray, y: np.ndarray) -> Stump:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[(np.asarray(X)[:, self.feature] > self.threshold).astype(int)]


def stumps(X: np.ndarray, seed: int, n: int) -> list[Stump]:
    rng = np.random.default_rng(seed)
    features = rng.integers(0, X.shape[1], n)
    return [Stump(int(j), float(np.quantile(X[:, j], rng.uniform(0.3, 0.9)))) for j in features]


# ---------------------------------------------------------------------- S2OCT


def s2oct(**parameters: Any) -> tw.S2OCTClassifier:
    """The paper's model, whose objectives are proven."""
    settings = {"max_depth": 2, "max_split_features": None, "time_limit": LIMIT, "random_state": 0}
    return tw.S2OCTClassifier(**(settings | parameters))


@kept
def s2oct_two_classes() -> Any:
    X, truth, y = survey(70, 3, seed=0, labelled=12)
    return s2oct().fit(X, y, totals=totals_of(truth, y))


@kept
def s2oct_groups_and_intervals() -> Any:
    X, truth, y = survey(70, 4, seed=1, labelled=12)
    groups = two_groups(70)
    return s2oct().fit(X, y, totals=totals_of(truth, y, groups, slack=2), groups=groups)


@kept
def s2oct_three_classes() -> Any:
    X, truth = load_iris(return_X_y=True)
    X, truth = X[::2], truth[::2]
    y = some_labels(truth, 12)
    return s2oct().fit(X, y, totals=totals_of(truth, y))


@kept
def s2oct_three_classes_in_groups() -> Any:
    X, truth = load_wine(return_X_y=True)
    X, truth = X[::3], truth[::3]
    y, groups = some_labels(truth, 9), two_groups(len(truth))
    return s2oct().fit(X, y, totals=totals_of(truth, y, groups, slack=1), groups=groups)


@kept
def s2oct_weights_of_contradicting_labels() -> Any:
    X = np.repeat(np.arange(6.0), 3)[:, None]
    y = np.array([0, 1, -1] * 3 + [1, 0, -1] * 3)
    weight = np.where(np.arange(18) % 3 == 0, 2.0, 0.5)
    return s2oct(max_depth=1).fit(X, y, sample_weight=weight, totals={1: 3})


@kept
def s2oct_by_branch_and_bound() -> Any:
    rng = np.random.default_rng(5)
    X = rng.integers(-4, 5, (10, 2)).astype(float)
    y = np.concatenate([rng.permutation(np.arange(6) % 2), np.full(4, -1)])
    return s2oct(max_depth=1, max_coefficient=0.4, penalty=0.5).fit(X, y, totals={1: 3})


@kept
def s2oct_margins_of_one_where_reached() -> Any:
    X, truth, y = survey(50, 3, seed=2, labelled=10)
    return s2oct(margin_rule="reached").fit(X, y, totals=totals_of(truth, y))


@kept
def s2oct_margins_of_one_everywhere() -> Any:
    X, truth, y = survey(50, 3, seed=3, labelled=10)
    return s2oct(margin_rule="paper").fit(X, y, totals=totals_of(truth, y))


@kept
def s2oct_printed_program() -> Any:
    rng = np.random.default_rng(2)
    X = rng.integers(-4, 5, (10, 2)).astype(float)
    y = np.array([0, 1, 1, 0, 1, -1, -1, -1, -1, -1])
    return s2oct(max_depth=1, margin_rule="paper", formulation="paper", max_coefficient=0.5).fit(X, y, totals={1: 4})


@kept
def s2oct_committee() -> Any:
    X, truth, y = survey(70, 3, seed=4, labelled=12)
    return s2oct(n_estimators=7).fit(X, y, totals=totals_of(truth, y))


# ---------------------------------------------------------------------- OCT


@kept
def oct_exact_wine() -> Any:
    return tw.OCTClassifier(2, time_limit=LIMIT).fit(*load_wine(return_X_y=True))


@kept
def oct_exact_iris() -> Any:
    return tw.OCTClassifier(3, time_limit=LIMIT).fit(*load_iris(return_X_y=True))


# ---------------------------------------------------------------------- OCT-H


def oct_h(**parameters: Any) -> tw.OCTHClassifier:
    return tw.OCTHClassifier(**({"max_depth": 2, "time_limit": LIMIT, "random_state": 0} | parameters))


@kept
def oct_h_without_error() -> Any:
    return oct_h().fit(*load_wine(return_X_y=True))


@kept
def oct_h_by_branch_and_bound() -> Any:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (12, 2)) / 5.0
    return oct_h(max_depth=1, margin=0.05).fit(X, rng.integers(0, 3, 12), sample_weight=marks(12, 0))


@kept
def oct_h_with_a_price_of_features() -> Any:
    X, y = load_iris(return_X_y=True)
    return oct_h(complexity=0.03, min_samples_leaf=0.1, margin=0.01).fit(X[::5], y[::5])


@kept
def oct_h_of_contradicting_rows() -> Any:
    X, y = load_iris(return_X_y=True)
    X = np.round(X[::3, 2:])
    return oct_h(margin=0.01).fit(X, y[::3])


# ---------------------------------------------------------------------- BinOCT and Fair


@kept
def binoct_without_error() -> Any:
    X, y = load_wine(return_X_y=True)
    return tw.BinOCTClassifier(max_depth=3, time_limit=LIMIT, random_state=0).fit(X[::3], y[::3])


@kept
def binoct_by_branch_and_bound() -> Any:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (12, 2)), rng.integers(0, 3, 12)
    return tw.BinOCTClassifier(max_depth=2, time_limit=LIMIT, random_state=0).fit(X, y, sample_weight=marks(12, 0))


@kept
def fair_oct_with_prices() -> Any:
    X, y = load_iris(return_X_y=True)
    model = tw.FairOCTClassifier(2, complexity=0.02, fairness_weight=0.1, time_limit=LIMIT, random_state=0)
    return model.fit(X[::6], y[::6], protected=np.arange(25) % 2)


# ---------------------------------------------------------------------- C2RF


def c2rf(estimator: Any, **parameters: Any) -> tw.C2RFClassifier:
    return tw.C2RFClassifier(estimator, **({"time_limit": LIMIT, "random_state": 0} | parameters))


@kept
def c2rf_with_a_threshold() -> Any:
    X, truth = load_breast_cancer(return_X_y=True)
    y = some_labels(truth, 60)
    return c2rf(ExtraTreesClassifier(60)).fit(X, y, totals=totals_of(truth, y))


@kept
def c2rf_of_the_paper() -> Any:
    X, truth, y = survey(90, 4, seed=6, labelled=10)
    return c2rf(stumps(X, 6, 9), class_prices=False).fit(X, y, totals={1: 11})


@kept
def c2rf_of_the_paper_in_groups() -> Any:
    X, truth, y = survey(80, 4, seed=7, labelled=10)
    groups = two_groups(80)
    totals = {"north": {1: 3}, "south": {1: (30, 34)}}
    return c2rf(stumps(X, 7, 7), class_prices=False).fit(X, y, totals=totals, groups=groups)


@kept
def c2rf_printed_program() -> Any:
    X, truth, y = survey(40, 3, seed=8, labelled=10)
    parts = {"class_prices": False, "formulation": "paper", "order_cuts": False}
    return c2rf(stumps(X, 8, 5), **parts).fit(X, y, totals={1: 4})


@kept
def c2rf_three_classes() -> Any:
    X, truth = load_wine(return_X_y=True)
    y = some_labels(truth, 30)
    return c2rf(ExtraTreesClassifier(40)).fit(X, y, totals=totals_of(truth, y))


# ---------------------------------------------------------------------- SVM1-ODT


@kept
def svm1odt_of_three_classes() -> Any:
    X, y = load_iris(return_X_y=True)
    model = tw.SVM1ODTClassifier(1, epsilon=0.1, alpha_1=10.0, alpha_2=0.5, time_limit=LIMIT, random_state=0)
    return model.fit(X[::6], y[::6], sample_weight=marks(25, 1))


@kept
def svm1odt_with_a_category_and_gaps() -> Any:
    X, y = load_wine(return_X_y=True)
    X, y = X[::8, :3].copy(), y[::8]
    X[:, 0] = np.arange(len(X)) % 4
    X[::5, 1] = np.nan
    model = tw.SVM1ODTClassifier(1, epsilon=0.1, alpha_1=10.0, alpha_2=0.5, time_limit=LIMIT, random_state=0)
    return model.set_params(categorical_features=[0]).fit(X, y)


# ---------------------------------------------------------------------- OCTSVM


@kept
def octsvm_of_a_band() -> Any:
    X = np.arange(11.0)[:, None]
    y = (np.abs(X[:, 0] - 5) < 2.5).astype(int)
    y[1] = 1
    prices = {"max_norm": 6.0, "relabel_cost": 1.0, "split_cost": 0.04}
    return tw.OCTSVMClassifier(1, **prices, relabel="tree", time_limit=LIMIT, random_state=0).fit(X, y)


@kept
def resvm_of_two_classes() -> Any:
    X, y = load_iris(return_X_y=True)
    X, y = X[50::5, :2], y[50::5]
    return tw.RESVMClassifier(c1=20.0, c2=15.0, time_limit=LIMIT, random_state=0).fit(X, y)


# ---------------------------------------------------------------------- TAO


@kept
def tao_classifier() -> Any:
    X, y = load_digits(return_X_y=True)
    return tw.TAOClassifier(max_depth=5, stretch=0.0, time_limit=LIMIT, random_state=0).fit(X[:600], y[:600])


@kept
def tao_classifier_stretched_on_weighted_rows() -> Any:
    X, y = load_breast_cancer(return_X_y=True)
    model = tw.TAOClassifier(max_depth=3, alpha=0.5, time_limit=LIMIT, random_state=0)
    return model.fit(X, y, sample_weight=marks(len(y), 1))


@kept
def tao_classifier_along_axes() -> Any:
    X, y = load_wine(return_X_y=True)
    return tw.TAOClassifier(max_depth=3, alpha=0.5, max_split_features=1, stretch=0.0, random_state=0).fit(X, y)


@kept
def tao_classifier_of_sparse_rows() -> Any:
    X, y = load_digits(return_X_y=True)
    model = tw.TAOClassifier(max_depth=4, stretch=0.0, time_limit=LIMIT, random_state=0)
    return model.fit(sparse.csr_array(X[:400]), y[:400])


@kept
def tao_regressor() -> Any:
    X, y = load_diabetes(return_X_y=True)
    return tw.TAORegressor(max_depth=4, stretch=0.0, time_limit=LIMIT, random_state=0).fit(X, y)


@kept
def tao_regressor_with_linear_leaves() -> Any:
    X, y = load_diabetes(return_X_y=True)
    model = tw.TAORegressor(max_depth=2, leaves="linear", time_limit=LIMIT, random_state=0)
    return model.fit(X, y, sample_weight=marks(len(y), 2))


# ---------------------------------------------------------------------- semi-supervised without totals


@kept
def laptao_classifier() -> Any:
    X, truth = make_moons(300, noise=0.1, random_state=0)
    return tw.LapTAOClassifier(max_depth=4, stretch=0.0, random_state=0).fit(X, some_labels(truth, 12))


@kept
def laptao_classifier_of_digits() -> Any:
    X, truth = load_digits(return_X_y=True)
    model = tw.LapTAOClassifier(max_depth=5, max_iter=4, random_state=0)
    return model.fit(X[:400], some_labels(truth[:400], 50))


@kept
def laptao_regressor() -> Any:
    X, target = load_diabetes(return_X_y=True)
    y = np.where(np.arange(len(target)) % 4 == 0, target, np.nan)
    model = tw.LapTAORegressor(max_depth=3, stretch=0.0, max_iter=10, random_state=0)
    return model.fit(X, y, sample_weight=marks(len(y), 3))


@kept
def ssct() -> Any:
    X, truth = load_wine(return_X_y=True)
    return tw.SSCTClassifier(max_depth=4).fit(X, some_labels(truth, 40), sample_weight=marks(len(truth), 4))


@kept
def lap_svm() -> Any:
    X, truth = load_iris(return_X_y=True)
    return tw.LapSVMClassifier().fit(X, some_labels(truth, 12))


# ---------------------------------------------------------------------- models without an objective of their own


@kept
def totals_classifier() -> float:
    """Minus the sum of the scores of the labels, which is least among all labels within the totals."""
    X, truth = load_iris(return_X_y=True)
    y, groups = some_labels(truth, 30), two_groups(len(truth))
    totals = {g: {0: 20 if g == "north" else 15, 1: (5, 40)} for g in ("north", "south")}
    model = tw.TotalsClassifier(GaussianNB(var_smoothing=0.1), random_state=0).fit(X, y, totals=totals, groups=groups)
    assert all(row["deviation"] == 0 for row in model.totals_)
    hidden = y == -1
    scores = np.log(model.estimator_.predict_proba(X[hidden]))
    return -float(scores[np.arange(hidden.sum()), model.transduction_[hidden]].sum())


@kept
def self_training_regressor() -> float:
    """Mean squared error at the known targets."""
    X, target = load_diabetes(return_X_y=True)
    known = np.arange(len(target)) % 4 == 0
    model = tw.SelfTrainingRegressor(DecisionTreeRegressor(max_depth=3), random_state=0)
    model.fit(X, np.where(known, target, np.nan))
    return float(np.mean((model.predict(X[known]) - target[known]) ** 2))


# ---------------------------------------------------------------------- record


def _commit() -> str:
    """Commit of the package that is measured, which need not be that of these tests."""
    folder = Path(tw.__file__).parent
    found = subprocess.run(
        ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty"], capture_output=True, text=True
    )
    return found.stdout.strip() or "unknown"


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("highspy", "numpy", "scikit-learn", "scipy")}


def main(arguments: list[str] | None = None) -> None:
    """Fit all and print seconds of the processor and objectives; write them with ``--record``."""
    parser = argparse.ArgumentParser(prog="python -m tests.kept_fits", description="Fits whose objectives are kept.")
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    choice.add_argument("--compare", action="store_true", help="print what is kept and what comes out now")
    options = parser.parse_args(arguments)
    old = json.loads(RECORD.read_text())["fits"] if RECORD.exists() else {}
    fits = {}
    for name, fit in FITS.items():
        began = time.process_time()
        now = fit()
        fits[name] = {"objective": now.objective, "bound": now.bound, "status": now.status}
        before = old.get(name, {}).get("objective")
        print(f"{name:48s} {time.process_time() - began:6.1f} s  {before!s:22s} -> {now.objective!r} {now.status}")
    if options.record:
        header = {
            "what": "objectives of the fits of kept_fits.py; python -m tests.kept_fits --record writes this file",
            "commit": _commit(),
            "date": datetime.date.today().isoformat(),
            "python": ".".join(map(str, sys.version_info[:3])),
            "versions": _versions(),
        }
        RECORD.write_text(json.dumps({"recorded": header, "fits": fits}, indent=2) + "\n")


if __name__ == "__main__":
    main()
