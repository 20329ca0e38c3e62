"""Whether the estimated accuracy covers the truth, and probabilities that sum to totals are better than others.

    python benchmarks/intervals.py --samples 50 --rows 48842 --estimator logistic
    python benchmarks/intervals.py --data adult.csv --target income --groups race --samples 50 --rows 48842
    python benchmarks/intervals.py --samples 20 --rows 48842 --response 0.5 --without-totals

Of a table with a class in every row, 2 % are labelled, those of rarer classes more often (`--response`); the totals of
the others are known by group, or nothing is known of them. Without `--data` each sample is a made register (see
register.py). For each sample: the accuracy of the labels, the interval that labels left out give for it, the largest
distance of a sum of probabilities from its total, and the log-loss beside that of the same estimator, fitted to the
same labels, without totals.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.metrics import log_loss

from register import register_batches
from treewright import TotalsClassifier, estimated_accuracy
from treewright.app.planning import ESTIMATORS
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table, read_table
from treewright.teachers.classifier import TeacherClassifier

LABELLED, N_GROUPS = 0.02, 6


def made_table(n_rows: int, seed: int) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Features, classes and groups of a made register; the sample draws its effects too."""
    ((frame, truth),) = register_batches(n_rows, seed, n_rows)
    names = np.array(["employed", "inactive", "unemployed"], dtype=object)
    area = frame.get_column("area").str.slice(-2).cast(pl.Int64).to_numpy() % N_GROUPS
    return frame.drop("person", "area", "status"), names[truth], np.array([f"area {k}" for k in area], dtype=object)


def drawn_table(
    table: Table, target: str, groups: str, n_rows: int, seed: int
) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Some rows of a table of a file."""
    frame = table.frame.filter(pl.col(target).is_not_null() & pl.col(groups).is_not_null())
    frame = frame.sample(min(n_rows, frame.height), seed=seed, shuffle=True)
    columns = (Table(frame.select(name)).as_text(name) for name in (target, groups))
    return frame.drop(target, groups), *columns


def sampled(truth: np.ndarray, rng: np.random.Generator, power: float = -0.5) -> np.ndarray:
    """Which rows have a label: in proportion to the share of their class to some power; rare ones are sought out."""
    names, number, times = np.unique(truth, return_inverse=True, return_counts=True)
    chance = (times / len(truth)) ** power
    chance = chance[number] * LABELLED / np.mean(chance[number])
    known: np.ndarray = rng.random(len(truth)) < chance
    for k in range(len(names)):  # two labels of each class at the least
        known[rng.choice(np.flatnonzero(number == k), 2, replace=False)] = True
    return known


def measured(
    frame: pl.DataFrame,
    truth: np.ndarray,
    groups: np.ndarray,
    estimator: str,
    seed: int,
    power: float = -0.5,
    known_totals: bool = True,
) -> dict[str, Any]:
    """One sample."""
    table, rng = Table(frame), np.random.default_rng([seed, 1])
    X = TableEncoder.fit(table, table.columns, fill_gaps=True).transform(table)[0]
    known = sampled(truth, rng, power)
    y = np.where(known, truth, None)
    hidden = ~known
    totals = {
        g: {k: int(np.sum(hidden & (groups == g) & (truth == k))) for k in np.unique(truth)}
        for g in np.unique(groups[hidden])
    }
    model = TotalsClassifier(ESTIMATORS[estimator](), random_state=seed)
    start = time.process_time()
    given = {"totals": totals, "groups": groups} if known_totals else {}
    model.fit(X, y, **given)
    estimate = estimated_accuracy(model, X, y, **given, max_unlabeled=3000)
    shares = model.transduction_proba_[hidden]
    away = max(
        abs(shares[groups[hidden] == g, j].sum() - part[k])
        for g, part in totals.items()
        for j, k in enumerate(model.classes_)
    )
    alone = TeacherClassifier(random_state=seed) if estimator == "auto" else clone(model.estimator)
    alone.fit(X[known], truth[known].astype(str))
    return {
        "truth": float(np.mean(model.transduction_[hidden] == truth[hidden])),
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "away": float(away),
        "loss": log_loss(truth[hidden].astype(str), np.clip(shares, 1e-15, 1)),
        "uncut": log_loss(truth[hidden].astype(str), alone.predict_proba(X[hidden])),
        "cpu": time.process_time() - start,
    }


def main() -> None:
    """Measure all samples, and print a line each and what they say together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--rows", type=int, default=48_842, help="rows of a sample")
    parser.add_argument("--estimator", choices=sorted(ESTIMATORS), default="logistic")
    parser.add_argument(
        "--response",
        type=float,
        default=-0.5,
        metavar="POWER",
        help="a row is labelled in proportion to the share of its class to this power: below 0 rare classes more often",
    )
    parser.add_argument("--without-totals", action="store_true", help="nothing is known of the rows without a label")
    parser.add_argument("--data", help="table with a class in every row, such as Adult")
    parser.add_argument("--target", help="its column of classes")
    parser.add_argument("--groups", help="its column of groups")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no sample is begun after that")
    args = parser.parse_args()
    table = None if args.data is None else read_table(args.data, na=["?"])
    begun, rows = time.perf_counter(), []
    for seed in range(args.samples):
        if time.perf_counter() - begun > args.seconds:
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = (
                made_table(args.rows, seed)
                if table is None
                else drawn_table(table, args.target, args.groups, args.rows, seed)
            )
            rows.append(measured(*parts, args.estimator, seed, args.response, not args.without_totals))
        print(seed, {name: round(value, 9) for name, value in rows[-1].items()}, flush=True)
    found = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    covered = np.count_nonzero((found["low"] <= found["truth"]) & (found["truth"] <= found["high"]))
    print(f"covered: {covered} of {len(rows)}")
    print(f"accuracy {found['truth'].mean():.4f}, estimated {found['value'].mean():.4f}")
    print(f"estimated above the truth: {np.count_nonzero(found['value'] > found['truth'])} of {len(rows)}")
    print(f"mean width of the interval {(found['high'] - found['low']).mean():.4f}")
    print(f"largest distance of a sum of probabilities from its total: {found['away'].max():.1e}")
    print(f"log-loss {found['loss'].mean():.4f}, without totals {found['uncut'].mean():.4f}")
    print(f"lower with totals: {np.count_nonzero(found['loss'] < found['uncut'])} of {len(rows)}")


if __name__ == "__main__":
    main()
