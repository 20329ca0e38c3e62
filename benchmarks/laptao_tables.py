"""Whether unlabelled rows help on small tables of all kinds: semi-supervised methods against labels alone.

Usage: python benchmarks/laptao_tables.py --data FOLDER [--share 5] [--draws 2] [--depth 6] [--jobs 2]

FOLDER holds tables ``NAME.tsv.gz`` with the column ``target``, classes. Tables of less than 200 rows are left out; of
more than 3000, so many are drawn. A third of the rows is for testing; of the others the share is labelled, at least 20.
"Labels of a forest" is TAO on all rows, those without a label having what a random forest on the labels says of them.
"The better one" is LapTAO or oblique-lbl, by errors of label propagation and oblique-lbl in five folds of the labels.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier
from stretch import read_some

from treewright import LapSVMClassifier, LapTAOClassifier, SSCTClassifier, TAOClassifier

LEAST_ROWS, MOST_ROWS, LEAST_LABELS = 200, 3000, 20
LABELS_ALONE = ("random forest", "oblique-lbl", "axis-lbl")


Fit = Callable[[np.ndarray, np.ndarray], Any]
"""Rows and labels, -1 for unknown, to a fitted model."""


def labels_of_a_forest(tree: TAOClassifier) -> Fit:
    """An oblique tree on all rows, for which a random forest fills in the missing labels."""

    def fit(X: np.ndarray, y: np.ndarray) -> TAOClassifier:
        known = y >= 0
        forest = RandomForestClassifier(200, random_state=0).fit(X[known], y[known])
        return clone(tree).fit(X, np.where(known, y, forest.predict(X)))

    return fit


def the_better_one(lap: LapTAOClassifier, tao: TAOClassifier) -> Fit:
    """LapTAO on all rows or TAO on the labels alone, by errors of graph and TAO at labels left out in turn."""

    def fit(X: np.ndarray, y: np.ndarray) -> LapTAOClassifier | TAOClassifier:
        known = np.flatnonzero(y >= 0)
        more = 0
        for train, test in KFold(5, shuffle=True, random_state=0).split(known):
            rest, out = known[train], known[test]
            if len(np.unique(y[rest])) < 2:
                continue
            fewer = y.copy()
            fewer[out] = -1
            more += int(np.sum(clone(lap).set_params(tree=None).fit(X, fewer).transduction_[out] != y[out]))
            more -= int(np.sum(clone(tao).fit(X[rest], y[rest]).predict(X[out]) != y[out]))
        return clone(lap).fit(X, y) if more <= 0 else clone(tao).fit(X[known], y[known])

    return fit


def methods(depth: int) -> dict[str, Fit]:
    lap = {"max_depth": depth, "random_state": 0}
    cart, tao = DecisionTreeClassifier(max_depth=depth, random_state=0), TAOClassifier(depth, random_state=0)
    return {
        "random forest": RandomForestClassifier(200, random_state=0).fit,
        "oblique-lbl": tao.fit,
        "axis-lbl": cart.fit,
        "LapTAO": LapTAOClassifier(**lap).fit,
        "LapTAO (stretch 0)": LapTAOClassifier(**lap, stretch=0.0).fit,
        "LapTAO forest": LapTAOClassifier(**lap, n_estimators=12).fit,
        "label propagation + kNN": LapTAOClassifier(**lap, tree=None).fit,
        "the better one": the_better_one(LapTAOClassifier(**lap), tao),
        "oblique, labels of a forest": labels_of_a_forest(tao),
        "LapCART": LapTAOClassifier(**lap, tree="cart").fit,
        "oblique-self": SelfTrainingClassifier(tao, threshold=0.9).fit,
        "axis-self": SelfTrainingClassifier(cart, threshold=0.9).fit,
        "SSCT": SSCTClassifier(depth, random_state=0).fit,
        "LapSVM": LapSVMClassifier(random_state=0).fit,
    }


def errors(path: Path, share: float, draws: int, depth: int) -> tuple[str, list[float]] | None:
    """Error of each method, in per cent; None for tables that are too small or whose labels are all of one class."""
    warnings.simplefilter("ignore")
    X, y = read_some(path, MOST_ROWS)
    if len(y) < LEAST_ROWS:
        return None
    y = np.unique(y, return_inverse=True)[1]
    found = []
    for draw in range(draws):
        test, train = np.split(np.random.default_rng(100 + draw).permutation(len(y)), [len(y) // 3])
        count = max(LEAST_LABELS, round(share / 100 * len(train)))
        few = np.where(np.arange(len(train)) < count, y[train], -1)
        if len(np.unique(few[:count])) < 2:
            continue
        wrong = []
        for name, fit in methods(depth).items():
            part = slice(count) if name in LABELS_ALONE else slice(None)
            model = fit(X[train[part]], few[part])
            wrong.append(100.0 * float(np.mean(model.predict(X[test]) != y[test])))
        found.append(wrong)
    return (path.name.removesuffix(".tsv.gz"), list(np.mean(found, axis=0))) if found else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--share", type=float, default=5.0)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    paths = sorted(args.data.glob("*.tsv.gz"))
    work = (delayed(errors)(path, args.share, args.draws, args.depth) for path in paths)
    rows = [row for row in Parallel(n_jobs=args.jobs)(work) if row is not None]
    names = list(methods(args.depth))
    for name, found in rows:
        print(name, " ".join(f"{error:.1f}" for error in found))
    table = np.array([found for _, found in rows])
    alone = table[:, names.index("oblique-lbl")]
    print(f"\n| method | mean error of {len(rows)} | lower than oblique-lbl on | higher on |\n|---|---|---|---|")
    for name, column in zip(names, table.T, strict=True):
        print(f"| {name} | {column.mean():.1f} | {np.sum(column < alone)} | {np.sum(column > alone)} |")


if __name__ == "__main__":
    main()
