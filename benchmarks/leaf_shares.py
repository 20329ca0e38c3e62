"""What the whole job says of leaves and rows, and what is true of them: shares of classes in rows without a label.

    python benchmarks/leaf_shares.py --seeds 20 --time-limit 6
    python benchmarks/leaf_shares.py --seeds 20 --time-limit 6 --estimator forest

Registers are made: four kinds in turn (a survey of mixed columns as in register.py, thresholds and clouds as in
partial_totals.py, rules on categories and numbers), three or four classes, one of them rare, six areas with exact
totals, 10 to 20 % of the rows labelled; rare classes answer more often in even seeds, less often in odd ones. Each is
labelled by `treewright fit`. Of the tree that explains the labels each leaf says how likely its class is, which is
compared with the share of the class among the leaf's rows without a label: "gap" is the mean distance, weighted by
rows, in points, "by chance" what it would be if each probability were true, "worst" the largest one of a leaf of 50
rows or more. "Bins" is the mean distance of `share_` columns and truth in tenths of what is said; log loss is that of
`share_` columns, and "constant" that of the shares of the classes by area, as the totals have them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from partial_totals import N_GROUPS, _clouds, _grouped, _thresholds
from register import register_batches
from treewright.cli import main as treewright
from treewright.cli.files import TableModel

_LEAST_ROWS = 50
Made = tuple[dict[str, pl.Series], np.ndarray, np.ndarray]


def _survey(n: int, seed: int, rng: np.random.Generator) -> Made:
    ((frame, truth),) = register_batches(n, seed, n)
    area = frame.get_column("area").str.slice(-2).cast(pl.Int64).to_numpy() % N_GROUPS
    return frame.drop("person", "area", "status").to_dict(), truth, area


def _numbers(kind: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Callable[..., Made]:
    def made(n: int, seed: int, rng: np.random.Generator) -> Made:
        X, truth, area = kind(n, seed, rng)
        return {f"x{j}": pl.Series(column) for j, column in enumerate(X.T)}, truth, area

    return made


def _rules(n: int, seed: int, rng: np.random.Generator) -> Made:
    """Classes by a category and two numbers, all but 2 % of the rows as the rules say, among much that says nothing."""
    codes, x = rng.integers(0, [5, 4, 3, 6], size=(n, 4)), rng.normal(size=(n, 25))
    first, second = codes[:, 0] >= 2, x[:, 0] > rng.uniform(-0.5, 0.5)
    truth = np.where(first, np.where(second, 0, 1), np.where(x[:, 1] > 0.8, 3, np.where(second, 2, 0)))
    truth = np.where(rng.random(n) < 0.02, rng.integers(4, size=n), truth)
    columns = {f"kind{j}": pl.Series([f"level {c}" for c in codes[:, j]]) for j in range(codes.shape[1])}
    columns |= {f"x{j}": pl.Series(column) for j, column in enumerate(x.T)}
    return columns, truth, _grouped(truth, rng.random((N_GROUPS, 4)) + 0.2, rng)


KINDS: dict[str, Callable[..., Made]] = {
    "survey": _survey,
    "thresholds": _numbers(_thresholds),
    "clouds": _numbers(_clouds),
    "rules": _rules,
}


def answered(truth: np.ndarray, seed: int, rng: np.random.Generator) -> np.ndarray:
    """Which rows have a label: a tenth to a fifth, by classes; four of each at least."""
    times = np.bincount(truth)
    chance = (times / len(truth))[truth] ** (-0.5 if seed % 2 == 0 else 0.5)
    known = rng.random(len(truth)) < chance * (rng.uniform(0.1, 0.2) * len(truth) / chance.sum())
    for k in np.flatnonzero(times):
        known[rng.choice(np.flatnonzero(truth == k), 4, replace=False)] = True
    return np.asarray(known)


def labelled_by_command(register: Made, known: np.ndarray, folder: Path, more: list[str]) -> tuple[Any, pl.DataFrame]:
    """Leaves of the tree that explains the labels, and what is written of each row."""
    columns, truth, area = register
    classes = [f"c{k}" for k in range(int(truth.max()) + 1)]
    label = pl.Series([classes[k] for k in truth]).set(pl.Series(~known), None)
    areas = pl.Series([f"area {g}" for g in range(N_GROUPS)])
    pl.DataFrame({**columns, "area": areas.gather(area), "z": label}).write_csv(folder / "r.csv")
    counts = class_counts(truth, area, known)
    pl.DataFrame({"area": areas} | dict(zip(classes, counts.T, strict=True))).write_csv(folder / "t.csv")
    how = ["--target", "z", "--totals", str(folder / "t.csv"), "--groups", "area", "--quiet", *more]
    files = ["--out", str(folder / "m.zip"), "--predictions", str(folder / "p.csv")]
    with contextlib.redirect_stderr(io.StringIO()):
        if treewright(["fit", str(folder / "r.csv"), *how, *files]):
            raise SystemExit("a fit failed")
    return TableModel.read(str(folder / "m.zip")).leaves, pl.read_csv(folder / "p.csv")


def class_counts(truth: np.ndarray, area: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Rows without a label of each area and class."""
    counts = np.zeros((N_GROUPS, int(truth.max()) + 1), dtype=int)
    np.add.at(counts, (area[~known], truth[~known]), 1)
    return counts


def judged(seed: int, n: int, more: list[str]) -> dict[str, float]:
    """Make a register, let the command line label it, and compare."""
    rng = np.random.default_rng([seed, 99])
    columns, truth, area = register = list(KINDS.values())[seed % len(KINDS)](n, seed, rng)
    known = answered(truth, seed // len(KINDS), rng)
    with tempfile.TemporaryDirectory() as folder:
        leaves, written = labelled_by_command(register, known, Path(folder), ["--random-state", str(seed), *more])
    counts, leaf = class_counts(truth, area, known), written.get_column("leaf").to_numpy()
    shares = written.select(f"share_c{k}" for k in range(counts.shape[1])).to_numpy()
    found, worst = [], (0.0, 0.0, 0.0)
    for number, facts in leaves.items():
        inside, k = leaf == number, int(facts.label[1:])
        rows = int(np.count_nonzero(inside & ~known))
        if not rows:
            continue
        said = (facts.likely[k] - np.count_nonzero(inside & known & (truth == k))) / rows
        true, p = float(np.mean(truth[inside & ~known] == k)), shares[inside & ~known, k]
        found.append((abs(said - true), np.sqrt(2 / np.pi * np.sum(p * (1 - p))) / rows, rows))
        if rows >= _LEAST_ROWS:
            worst = max(worst, (abs(said - true), float(said), true))
    gaps, chance, sizes = np.array(found).T
    p, y = shares[~known], truth[~known]
    constant = (counts / counts.sum(axis=1, keepdims=True))[area[~known], y]
    tenth = np.minimum((p * 10).astype(int), 9) + 10 * np.arange(p.shape[1])
    away = np.bincount(tenth.ravel(), (p - np.eye(p.shape[1])[y]).ravel())
    return {
        "labels": float(known.sum()),
        "right": 100 * float(np.mean(p.argmax(axis=1) == y)),
        "sure": 100 * float(p.max(axis=1).mean()),
        "gap": 100 * float(np.average(gaps, weights=sizes)),
        "by chance": 100 * float(np.average(chance, weights=sizes)),
        "worst": 100 * worst[0],
        "worst, said": 100 * worst[1],
        "worst, true": 100 * worst[2],
        "bins": 100 * float(np.abs(away).sum()) / p.size,
        "log loss": _loss(p[np.arange(len(y)), y]),
        "constant": _loss(constant),
    }


def _loss(own: np.ndarray) -> float:
    return float(-np.log(np.maximum(own, 1e-15)).mean())


def main() -> None:
    """Measure all registers; options that are not ours go to the command line of treewright."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2000)
    args, more = parser.parse_known_args()
    found = []
    for seed in range(args.seeds):
        found.append(judged(seed, args.rows, more))
        told = {name: round(value, 2) for name, value in found[-1].items()}
        print(seed, list(KINDS)[seed % len(KINDS)], told, flush=True)
    for name in found[0]:
        values = [row[name] for row in found]
        print(f"{name}: {np.mean(values):.3f}")
    last = max(found, key=lambda row: row["worst"])
    print(f"worst of all: {last['worst, said']:.1f} said, {last['worst, true']:.1f} true")


if __name__ == "__main__":
    main()
