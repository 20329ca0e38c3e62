"""What passes over stretched rows do to the errors of TAO on rows that the fit has not seen.

Usage: python benchmarks/stretch.py --data FOLDER [--values 0,0.1,0.25,0.5] [--depth 6] [--splits oblique] [--jobs 2]

FOLDER holds tables ``NAME.tsv.gz`` with the column ``target``, classes. Errors are those of three folds together; of a
table with more rows, 6000 are drawn.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from laptao import read
from sklearn.model_selection import StratifiedKFold

from treewright import TAOClassifier

MOST_ROWS, FOLDS = 6000, 3


def read_some(path: Path, most_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and classes of a table, at most so many rows."""
    X, y = read(path)
    some = np.random.default_rng(0).permutation(len(y))[:most_rows] if len(y) > most_rows else slice(None)
    return X[some], y[some]


def errors(path: Path, values: list[float], depth: int, splits: str) -> tuple[str, list[float]] | None:
    """Error for each value of stretch, in per cent; None where a class is too small for the folds."""
    warnings.simplefilter("ignore")
    X, y = read_some(path, MOST_ROWS)
    if np.unique(y, return_counts=True)[1].min() < FOLDS:
        return None
    found = []
    for stretch in values:
        wrong = 0
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
            model = TAOClassifier(depth, splits=splits, stretch=stretch, random_state=0).fit(X[train], y[train])
            wrong += int(np.sum(model.predict(X[test]) != y[test]))
        found.append(100.0 * wrong / len(y))
    return path.name.removesuffix(".tsv.gz"), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--values", default="0,0.1,0.25,0.5")
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--splits", choices=["oblique", "axis"], default="oblique")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    values = [float(value) for value in args.values.split(",")]
    work = (delayed(errors)(path, values, args.depth, args.splits) for path in sorted(args.data.glob("*.tsv.gz")))
    rows = [row for row in Parallel(n_jobs=args.jobs)(work) if row is not None]
    print("| data | " + " | ".join(f"stretch {value:g}" for value in values) + " |\n|---" + "|---" * len(values) + "|")
    for name, found in rows:
        print(f"| {name} | " + " | ".join(f"{error:.2f}" for error in found) + " |")
    table = np.array([found for _, found in rows])
    print(f"| mean of {len(rows)} | " + " | ".join(f"{error:.2f}" for error in table.mean(axis=0)) + " |")
    for k, value in enumerate(values[1:], start=1):
        lower, higher = int(np.sum(table[:, k] < table[:, 0])), int(np.sum(table[:, k] > table[:, 0]))
        print(f"stretch {value:g} against {values[0]:g}: lower error on {lower}, higher on {higher}")


if __name__ == "__main__":
    main()
