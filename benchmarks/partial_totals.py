"""Totals that leave freedom: one class known by group, two, intervals; and the default beside single classifiers.

    python benchmarks/partial_totals.py --seeds 20
    python benchmarks/partial_totals.py --seeds 20 --part classifiers
    python benchmarks/partial_totals.py --seeds 20 --part estimates

Registers are made: four kinds in turn (a survey of mixed columns as in register.py, linear, thresholds, clouds), three
or four classes, six groups, 80 to 1000 labels, rare classes sought out more often than frequent ones. Printed are means
over the registers of the accuracy, per cent, of labels of the other rows: without totals; with each class known alone
by group, each pair, intervals of 10 % and 30 % either way, and all exact. "Worst" is the least difference of a register
from what is asked for: accuracy without totals for partial totals, the lower of that and of exact totals for intervals.
Of intervals also the share of counts at an end although labels without totals lie within. `--part classifiers` compares
the default with single classifiers within exact totals, and tells how many labels a second margin of a constant
changes; `--part estimates` how often the estimated accuracy covers the truth.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from register import register_batches
from treewright import TotalsClassifier, estimated_accuracy
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table

N_GROUPS, N_LABELS = 6, (80, 150, 300, 600, 1000)
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "forest": lambda: RandomForestClassifier(200),
    "extra trees": lambda: ExtraTreesClassifier(200),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": lambda: HistGradientBoostingClassifier(),
}


def made_register(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, classes, groups, and which rows have a label."""
    rng, kind = np.random.default_rng([seed, 77]), KINDS[seed % len(KINDS)]
    X, truth, group = kind(n, seed, rng)
    times = np.bincount(truth)
    chance = (times / n)[truth] ** -0.5
    known = rng.random(n) < chance * (N_LABELS[seed // len(KINDS) % len(N_LABELS)] / chance.sum())
    for k in range(len(times)):
        known[rng.choice(np.flatnonzero(truth == k), 4, replace=False)] = True
    return X, truth, group, known


def _survey(n: int, seed: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ((frame, truth),) = register_batches(n, seed, n)
    table = Table(frame.drop("person", "area", "status"))
    X = TableEncoder.fit(table, table.columns, fill_gaps=True).transform(table)[0]
    return np.asarray(X), truth, frame.get_column("area").str.slice(-2).cast(pl.Int64).to_numpy() % N_GROUPS


def _linear(n: int, seed: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    z, group = rng.normal(size=(n, 12)), rng.integers(N_GROUPS, size=n)
    slope = rng.normal(size=(12, 4)) * (np.arange(12) < 8)[:, None]
    level = rng.normal(size=(N_GROUPS, 4))[group] / 2 + [1.5, 0.5, -0.5, -1.0]
    truth = (z @ slope + level + 1.5 * rng.gumbel(size=(n, 4))).argmax(axis=1)
    return z @ (np.eye(12) + 0.2 * rng.normal(size=(12, 12))), truth, group


def _thresholds(n: int, seed: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, leaf, shares = rng.uniform(size=(n, 8)), np.zeros(n, dtype=int), [0.5, 0.25, 0.15, 0.1]
    for level in range(4):
        feature, cut = rng.integers(8, size=2**level), rng.uniform(0.3, 0.7, size=2**level)
        leaf = 2 * leaf + (X[np.arange(n), feature[leaf]] > cut[leaf])
    of_leaf = rng.choice(4, 16, p=shares)
    of_leaf[:4] = np.arange(4)
    truth = np.where(rng.random(n) < 0.12, rng.choice(4, n, p=shares), of_leaf[leaf])
    return X, truth, _grouped(truth, rng.random((N_GROUPS, 4)), rng)


def _clouds(n: int, seed: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    truth, centre = rng.choice(3, n, p=[0.7, 0.2, 0.1]), rng.normal(size=(3, 3, 9))
    X = centre[truth, rng.integers(3, size=n)] + rng.normal(size=(n, 9))
    return X, truth, _grouped(truth, rng.random((N_GROUPS, 3)) + 0.3, rng)


KINDS = (_survey, _linear, _thresholds, _clouds)


def _grouped(truth: np.ndarray, mass: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A group of each row, those of a class in proportion to its column."""
    ends = np.cumsum(mass / mass.sum(axis=0), axis=0)[:, truth]
    return np.minimum((rng.random(len(truth)) > ends).sum(axis=0), N_GROUPS - 1)


class Register:
    """A register, and the accuracy of labels of its rows."""

    def __init__(self, seed: int, n: int) -> None:
        self.seed = seed
        self.X, self.truth, self.group, self.known = made_register(seed, n)
        self.y, self.classes = np.where(self.known, self.truth, -1), range(int(self.truth.max()) + 1)
        self.hidden = ~self.known

    def totals(self, classes: Any, width: float = 0.0) -> dict[int, dict[int, Any]]:
        """Totals of some classes by group."""
        found: dict[int, dict[int, Any]] = {}
        for g in np.unique(self.group[self.hidden]).tolist():
            counts = {k: int(np.sum(self.hidden & (self.group == g) & (self.truth == k))) for k in classes}
            ends = {k: (int(c * (1 - width)), int(np.ceil(c * (1 + width)))) for k, c in counts.items()}
            found[g] = ends if width else counts
        return found

    def fitted(self, estimator: Any, totals: Any = None, groups: Any = None) -> TotalsClassifier:
        """A model."""
        groups = None if totals is None else self.group if groups is None else groups
        return TotalsClassifier(estimator, random_state=self.seed).fit(self.X, self.y, totals=totals, groups=groups)

    def right(self, model: TotalsClassifier) -> float:
        """Per cent of the rows without a label that are labelled as they are."""
        return 100 * float(np.mean(model.transduction_[self.hidden] == self.truth[self.hidden]))

    def at_ends(self, model: TotalsClassifier, free: np.ndarray) -> tuple[int, int]:
        """Counts at an end of their interval that labels without totals do not ask for, and all counts."""
        unasked = 0
        for row in model.totals_:
            asked = int(np.sum(self.hidden & (self.group == row["group"]) & (free == row["class"])))
            low, high, reached = row["low"], row["high"], row["reached"]
            if high - low >= 2:  # where there is something between the ends
                unasked += (reached == low < asked) or (reached == high > asked)
        return unasked, len(model.totals_)


def partial(register: Register, name: str, rows: list[dict[str, float]]) -> None:
    """Without totals, with some of them, within intervals, with all."""
    made = CLASSIFIERS[name]
    none = register.fitted(made())
    found = {
        "none": register.right(none),
        "exact": register.right(register.fitted(made(), register.totals(register.classes))),
    }
    for n_known in (1, 2):
        several = [
            register.fitted(made(), register.totals(some)) for some in itertools.combinations(register.classes, n_known)
        ]
        if any(row["deviation"] for model in several for row in model.totals_):
            raise SystemExit("a known total is missed")
        right = [register.right(model) for model in several]
        found |= {f"{n_known} known": float(np.mean(right)), f"{n_known} known, worst": min(right) - found["none"]}
    for width in (0.1, 0.3):
        model = register.fitted(made(), register.totals(register.classes, width))
        right_, ends = register.right(model), register.at_ends(model, none.transduction_)
        found[f"{width:.0%} either way"] = right_
        found[f"{width:.0%} either way, worst"] = right_ - min(found["none"], found["exact"])
        found[f"{width:.0%} either way, at ends unasked"] = 100 * ends[0] / ends[1]
    rows.append(found)


def classifiers(register: Register, name: str, rows: list[dict[str, float]]) -> None:
    """The default beside single classifiers within exact totals; what a second margin that says nothing changes."""
    found: dict[str, float] = {}
    exact = register.totals(register.classes)
    constant = {0: {k: int(np.sum(register.hidden & (register.truth == k))) for k in register.classes}}
    for kind, made in CLASSIFIERS.items():
        model = register.fitted(made(), exact)
        both = register.fitted(made(), [exact, constant], [register.group, np.zeros(len(register.y), dtype=int)])
        found[kind] = register.right(model)
        found[f"{kind}, with a constant margin"] = register.right(both)
        found[f"{kind}, labels that it changes"] = float(np.sum(model.transduction_ != both.transduction_))
    rows.append(found)


def estimates(register: Register, name: str, rows: list[dict[str, float]]) -> None:
    """Estimated accuracy and the truth, with totals of one class after the other, with intervals and with all."""
    found: dict[str, float] = {}
    cases: dict[str, Any] = {
        "none": None,
        "exact": register.totals(register.classes),
        "10% either way": register.totals(register.classes, 0.1),
    }
    cases |= {f"class {k} known": register.totals([k]) for k in register.classes}
    for case, totals in cases.items():
        model = register.fitted(CLASSIFIERS[name](), totals)
        groups = None if totals is None else register.group
        told = estimated_accuracy(model, register.X, register.y, totals=totals, groups=groups, n_splits=5)
        right = register.right(model) / 100
        found[f"{case}: estimate less truth"] = 100 * (told.value - right)
        found[f"{case}: covered"] = 100.0 * (told.low <= right <= told.high)
    rows.append(found)


def main() -> None:
    """Measure all registers, and print what they say together."""
    parts = {"totals": partial, "classifiers": classifiers, "estimates": estimates}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--part", choices=list(parts), default="totals")
    parser.add_argument("--estimator", choices=list(CLASSIFIERS), default="auto")
    args = parser.parse_args()
    rows: list[dict[str, float]] = []
    start = time.process_time()
    for seed in range(args.seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts[args.part](Register(seed, args.rows), args.estimator, rows)
        print(seed, {name: round(value, 1) for name, value in rows[-1].items()}, flush=True)
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        values = [row[name] for row in rows if name in row]
        value = min(values) if name.endswith("worst") else sum(values) if "changes" in name else float(np.mean(values))
        print(f"{name}: {value:.2f}")
    print(f"{(time.process_time() - start) / args.seeds:.1f} s of processor time a register")


if __name__ == "__main__":
    main()
