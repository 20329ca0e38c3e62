"""LapTAO by share of labels against every semi-supervised baseline: MNIST, cpu_act, and how it scales.

Usage: python benchmarks/laptao.py choose --data FOLDER --out FILE.jsonl [--shares 1,10]
       python benchmarks/laptao.py mnist --data FOLDER --out FILE.jsonl [--shares 1,3,5,8,10,20] [--only NAME,...]
       python benchmarks/laptao.py cpu_act --data FOLDER --out FILE.jsonl [--splits 10]
       python benchmarks/laptao.py scale --out FILE.jsonl [--rows 125000,250000,500000,1000000]
       python benchmarks/laptao.py --summary FILE.jsonl ...

FOLDER holds ``mnist_train.tsv.gz``, ``mnist_test.tsv.gz`` and ``cpu_act.tsv.gz`` with the column ``target``. One row of
output is one fit; fits that FILE has already are not made again.

choose: settings of LapTAO on MNIST, one changed at a time, by the errors on 1 % of the training rows, which no fit
sees. The test rows are not read.
MNIST: one draw of labels a share, three at 1 and 10 %. The graph is built once in a process and given to all methods
that use one; its seconds are added to each of their fits. LapSVM and SSCT are for small tables: they get 6000 and 3000
rows, with the labels of the share as far as these are half of them at most. Self-training and LapCART have 5 rounds.
cpu_act: 60 % of the rows for training, square roots of the features less their minimum for all methods. Depths are
chosen for each method and share by the median error on a tenth of the training rows of five splits, which these fits do
not see; the square roots were, by LapTAO's errors on such rows.
scale: make_classification with 18 features, 0.5 % labelled, each size in a process of its own; seconds are those of the
whole fit, with graph and compilation.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestRegressor
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from treewright import (
    LapSVMClassifier,
    LapTAOClassifier,
    LapTAORegressor,
    SelfTrainingRegressor,
    SSCTClassifier,
    TAOClassifier,
    TAORegressor,
)
from treewright.data import unit_scaling
from treewright.graph import neighbor_graph

PUBLISHED = {
    "mnist": {"LapTAO": (9.61, 6.93, 6.27, 6.12, 5.97, 5.45), "EBBS": (10.57, 7.49, 7.05, 6.39, 6.15, 5.91)},
    "cpu_act": {
        "LapTAO": (255.13, 65.75, 12.03, 10.36, 9.19, 8.32),
        "EBBS": (261.05, 92.76, 16.52, 12.78, 12.41, 9.87),
        "LapCART": (263.50, 83.79, 18.14, 13.93, 13.04, 11.69),
        "axis-self": (293.45, 228.63, 21.89, 21.04, 20.45, 14.92),
    },
}
SHARES = (1.0, 3.0, 5.0, 8.0, 10.0, 20.0)

# What is not named is the default.
MNIST = {"max_depth": 8, "random_state": 0}
CHOICES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "alpha 1.5 (half)": {"alpha": 1.5},
    "alpha 6 (twice)": {"alpha": 6.0},
    "trust 0": {"trust": 0.0},
    "stretch 0": {"stretch": 0.0},
    "init cart": {"init": "cart"},
    "penalty of the paper": {"mu": 0.001, "mu_factor": 1.5},
}
CHOSEN = CHOICES["init cart"]
"""Fewest errors on the held-out rows, at 1 and at 10 % of the labels."""


def mnist_methods(jobs: int) -> dict[str, Callable[[], Any]]:
    lap = {**MNIST, "n_jobs": jobs}
    tao = TAOClassifier(8, random_state=0, n_jobs=jobs)
    return {
        "LapTAO": lambda: LapTAOClassifier(**lap),
        "LapTAO (chosen)": lambda: LapTAOClassifier(**lap, **CHOSEN),
        "LapTAO (trust 0)": lambda: LapTAOClassifier(**lap, trust=0.0),
        "LapTAO (stretch 0)": lambda: LapTAOClassifier(**lap, stretch=0.0),
        "EBBS": lambda: LapTAOClassifier(**lap, trust=0.0, stretch=0.0, max_iter=0),
        "LapCART": lambda: LapTAOClassifier(**lap, tree="cart", max_iter=5),
        "label propagation + kNN": lambda: LapTAOClassifier(**lap, tree=None),
        "LapTAO forest": lambda: LapTAOClassifier(**lap, n_estimators=12),
        "axis-self": lambda: SelfTrainingClassifier(
            DecisionTreeClassifier(max_depth=12, random_state=0), threshold=0.9, max_iter=5
        ),
        "oblique-self": lambda: SelfTrainingClassifier(tao, threshold=0.9, max_iter=5),
        "oblique-lbl": lambda: tao,
        "LapSVM": lambda: LapSVMClassifier(random_state=0, n_jobs=jobs),
        "SSCT": lambda: SSCTClassifier(8, max_features="sqrt", random_state=0, n_jobs=jobs),
        "oblique-all": lambda: tao,
    }


ONE_DRAW = ("LapTAO forest", "LapTAO (trust 0)", "LapCART", "oblique-self", "axis-self", "SSCT", "LapSVM")
LABELS_ALONE = ("oblique-lbl", "oblique-all")
SUBSET = {"LapSVM": 6000, "SSCT": 3000}
"""Rows of MNIST that methods for small tables get, with as many labels as the share gives on all rows, if they fit."""


def cpu_act_methods(depth: int) -> dict[str, Callable[[], Any]]:
    lap, tao = {"max_depth": depth, "random_state": 0}, TAORegressor(depth, random_state=0)
    return {
        "LapTAO": lambda: LapTAORegressor(**lap),
        "LapTAO (stretch 0)": lambda: LapTAORegressor(**lap, stretch=0.0),
        "EBBS": lambda: LapTAORegressor(**lap, stretch=0.0, max_iter=0),
        "LapCART": lambda: LapTAORegressor(**lap, tree="cart"),
        "Lap random forest": lambda: LapTAORegressor(
            **lap, tree=RandomForestRegressor(100, random_state=0), max_iter=3
        ),
        "LapTAO forest": lambda: LapTAORegressor(**lap, n_estimators=12, max_features=0.7),
        "label propagation + kNN": lambda: LapTAORegressor(**lap, tree=None),
        "axis-self": lambda: SelfTrainingRegressor(DecisionTreeRegressor(max_depth=depth, random_state=0)),
        "oblique-self": lambda: SelfTrainingRegressor(tao),
        "oblique-lbl": lambda: tao,
        "oblique-all": lambda: tao,
    }


DEPTHS, DEPTH = (4, 6, 8), 8
NO_DEPTH = ("label propagation + kNN", "LapTAO forest", "Lap random forest")
CHOOSING_SPLITS = 5
FEATURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "square roots": lambda X: np.sqrt(X - X.min(axis=0)),
    "features as they are": lambda X: X,
    "logarithms": lambda X: np.log1p(X - X.min(axis=0)),
}


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(path, sep="\t")
    return table.drop(columns="target").to_numpy(np.float64), table["target"].to_numpy()


def run_choose(folder: Path, out: Path, shares: list[float], jobs: int) -> None:
    X, y = read(folder / "mnist_train.tsv.gz")
    held_out, train = np.split(np.random.default_rng(2026).permutation(len(y)), [len(y) // 100])
    X, y, X_out, y_out = X[train], y[train], X[held_out], y[held_out]
    graph = neighbor_graph(unit_scaling(X).apply(X).astype(np.float32), n_jobs=jobs)
    for share in shares:
        rows = np.arange(round(share / 100 * len(y)))
        few = np.full(len(y), -1)
        few[rows] = y[rows]
        for name, settings in CHOICES.items():
            key = {"data": "mnist, held-out rows", "method": name, "share": share, "draw": 0}
            if known(out, key):
                continue
            began = time.perf_counter()
            model = LapTAOClassifier(**MNIST, **settings, n_jobs=jobs).fit(X, few, graph=graph)
            seconds = time.perf_counter() - began
            error = 100.0 * float(np.mean(model.predict(X_out) != y_out))
            write(out, {**key, "error": error, "seconds": seconds, "graph": 0.0})


def run_mnist(folder: Path, out: Path, shares: list[float], only: list[str], jobs: int) -> None:
    X, y = read(folder / "mnist_train.tsv.gz")
    X_test, y_test = read(folder / "mnist_test.tsv.gz")
    X, X_test = X / 255.0, X_test / 255.0
    began = time.perf_counter()
    graph = neighbor_graph(unit_scaling(X).apply(X).astype(np.float32), n_jobs=jobs)
    graph_seconds = time.perf_counter() - began
    print(f"graph {graph_seconds:.0f} s", flush=True)
    for share in shares:
        for draw in range(3 if share in (1.0, 10.0) else 1):
            rows = np.random.default_rng(draw).permutation(len(y))[: round(share / 100 * len(y))]
            for name, make in mnist_methods(jobs).items():
                key = {"data": "mnist", "method": name, "share": share, "draw": draw}
                if name == "oblique-all":
                    key |= {"share": 100.0, "draw": 0}
                if (only and name not in only) or (name in ONE_DRAW and draw > 0) or known(out, key):
                    continue
                used, labels, given = training(name, y, rows, graph)
                began = time.perf_counter()
                model = make().fit(X[used], labels, **given)
                seconds = time.perf_counter() - began + (graph_seconds if given else 0.0)
                error = 100.0 * float(np.mean(model.predict(X_test) != y_test))
                write(out, {**key, "error": error, "seconds": seconds, "graph": graph_seconds if given else 0.0})


def training(name: str, y: np.ndarray, rows: np.ndarray, graph: Any) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Rows, labels and graph that a method gets."""
    if name == "oblique-all":
        return np.arange(len(y)), y, {}
    if name in LABELS_ALONE:
        return rows, y[rows], {}
    few = np.full(len(y), -1)
    few[rows] = y[rows]
    if name in SUBSET:
        others = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(len(y)), rows))
        used = np.concatenate([rows[: SUBSET[name] // 2], others])[: SUBSET[name]]
        return used, few[used], {}
    return np.arange(len(y)), few, {"graph": graph} if name.startswith(("Lap", "EBBS", "label")) else {}


def run_cpu_act(folder: Path, out: Path, shares: list[float], only: list[str], splits: int) -> None:
    raw, y = read(folder / "cpu_act.tsv.gz")
    y = y.astype(np.float64)
    tables = {name: change(raw) for name, change in FEATURES.items()}
    names = [name for name in cpu_act_methods(DEPTH) if not only or name in only]
    for share in shares:
        for name in names:
            depths = (DEPTH,) if name in NO_DEPTH else DEPTHS
            for depth in depths if len(depths) > 1 else ():
                for split in range(CHOOSING_SPLITS):
                    one_cpu_act(tables["square roots"], y, out, name, share, split, depth, held_out=True)
            depth = min(depths, key=lambda depth: held_out_error(out, name, share, depth))
            for split in range(splits):
                one_cpu_act(tables["square roots"], y, out, name, share, split, depth)
        for features in list(FEATURES)[1:] if "LapTAO" in names else ():
            for split in range(CHOOSING_SPLITS):
                one_cpu_act(tables[features], y, out, "LapTAO", share, split, DEPTH, held_out=True, features=features)


def one_cpu_act(
    X: np.ndarray,
    y: np.ndarray,
    out: Path,
    name: str,
    share: float,
    split: int,
    depth: int,
    held_out: bool = False,
    features: str = "",
) -> None:
    """Fit on a split and test on its other rows, or on a tenth of its training rows that the fit does not see."""
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[: round(0.6 * len(y))], order[round(0.6 * len(y)) :]
    if held_out:
        train, test = train[: round(0.9 * len(train))], train[round(0.9 * len(train)) :]
    everything = name == "oblique-all"
    key = {"data": "cpu_act", "method": name, "share": 100.0 if everything else share, "draw": split}
    if held_out:
        key |= {"data": "cpu_act, held-out rows", "method": f"{name}, depth {depth}" + (features and f", {features}")}
    if known(out, key):
        return
    count = round(share / 100 * len(train))
    targets = np.where(np.arange(len(train)) < count, y[train], np.nan)
    part = slice(count) if name == "oblique-lbl" else slice(None)
    began = time.perf_counter()
    model = cpu_act_methods(depth)[name]().fit(X[train[part]], y[train] if everything else targets[part])
    seconds = time.perf_counter() - began
    error = float(np.mean((model.predict(X[test]) - y[test]) ** 2))
    write(out, {**key, "error": error, "seconds": seconds, "graph": 0.0, "depth": depth})


def held_out_error(out: Path, name: str, share: float, depth: int) -> float:
    """Median of the errors on held-out rows; 0 where there is nothing to choose."""
    key = {"data": "cpu_act, held-out rows", "method": f"{name}, depth {depth}"}
    key["share"] = 100.0 if name == "oblique-all" else share
    errors = [row["error"] for row in rows_of([out]) if all(row.get(k) == value for k, value in key.items())]
    return statistics.median(errors) if errors else 0.0


def run_scale(out: Path, sizes: list[int], jobs: int) -> None:
    """Each size in a process of its own, so that compilation and memory are its own."""
    for size in sizes:
        if not known(out, {"data": "synthetic", "share": 0.5, "rows": size}):
            subprocess.run(
                [sys.executable, __file__, "one", "--out", str(out), "--rows", str(size), "--jobs", str(jobs)],
                check=True,
            )


def run_one(out: Path, size: int, jobs: int) -> None:
    X, y = make_classification(
        size + 10_000, 18, n_informative=12, n_redundant=2, n_clusters_per_class=4, class_sep=1.5, random_state=0
    )
    few = np.full(size, -1)
    few[: round(0.005 * size)] = y[: round(0.005 * size)]
    began = time.perf_counter()
    model = LapTAOClassifier(8, random_state=0, n_jobs=jobs).fit(X[:size], few)
    seconds = time.perf_counter() - began
    alone = TAOClassifier(8, random_state=0).fit(X[:size][few >= 0], few[few >= 0])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row = {"data": "synthetic", "method": "LapTAO", "share": 0.5, "draw": 0, "rows": size, "seconds": seconds}
    row |= {"error": 100.0 * float(np.mean(model.predict(X[size:]) != y[size:])), "GiB": memory}
    row |= {"rounds": model.n_iter_, "labels_alone": 100.0 * float(np.mean(alone.predict(X[size:]) != y[size:]))}
    write(out, row)


def known(out: Path, key: dict[str, Any]) -> bool:
    return any(all(row.get(name) == value for name, value in key.items()) for row in rows_of([out]))


def write(out: Path, row: dict[str, Any]) -> None:
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)


def rows_of(paths: list[Path]) -> list[dict[str, Any]]:
    lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.strip()]


def summarize(paths: list[Path]) -> None:
    rows = rows_of(paths)
    for data in ("mnist, held-out rows", "mnist", "cpu_act, held-out rows", "cpu_act"):
        some = [row for row in rows if row["data"] == data]
        if not some:
            continue
        shares = sorted({row["share"] for row in some} - {100.0})
        print(
            f"\n{data}: median of squared errors (range)"
            if data.startswith("cpu_act")
            else f"\n{data}: mean error, per cent"
        )
        print("| method | " + " | ".join(f"{share:g} %" for share in shares) + " | seconds |")
        print("|---" * (len(shares) + 2) + "|")
        for name in dict.fromkeys(row["method"] for row in some):
            mine = [row for row in some if row["method"] == name]
            cells = [cell(data, [r["error"] for r in mine if r["share"] in (share, 100.0)]) for share in shares]
            print(f"| {name} | " + " | ".join(cells) + f" | {max(r['seconds'] for r in mine):.0f} |")
        for name, values in PUBLISHED.get(data, {}).items():
            print(f"| {name}, published | " + " | ".join(f"{v:g}" for v in values) + " | |")
    some = sorted((row for row in rows if row["data"] == "synthetic"), key=lambda row: row["rows"])
    if some:
        print("\n| rows | seconds | GiB | error, per cent | labels alone | rounds |\n|---|---|---|---|---|---|")
        for row in some:
            print(
                f"| {row['rows']:,} | {row['seconds']:.0f} | {row['GiB']:.1f} | {row['error']:.1f} | "
                f"{row['labels_alone']:.1f} | {row['rounds']} |"
            )
        slope = np.polyfit(np.log([r["rows"] for r in some]), np.log([r["seconds"] for r in some]), 1)[0]
        print(f"exponent of the seconds: {slope:.2f}")


def cell(data: str, errors: list[float]) -> str:
    if not errors:
        return ""
    if not data.startswith("cpu_act"):
        return f"{statistics.mean(errors):.2f}"
    return f"{statistics.median(errors):.1f} ({min(errors):.0f}-{max(errors):.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["choose", "mnist", "cpu_act", "scale", "one"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--shares", default=",".join(f"{share:g}" for share in SHARES))
    parser.add_argument("--only", default="", help="methods, by name")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rows", default="125000,250000,500000,1000000")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--summary", type=Path, nargs="+")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    shares, only = [float(v) for v in args.shares.split(",")], [v for v in args.only.split(",") if v]
    if args.summary:
        summarize(args.summary)
    elif args.part == "choose":
        run_choose(args.data, args.out, shares, args.jobs)
    elif args.part == "mnist":
        run_mnist(args.data, args.out, shares, only, args.jobs)
    elif args.part == "cpu_act":
        run_cpu_act(args.data, args.out, shares, only, args.splits)
    elif args.part == "scale":
        run_scale(args.out, [int(v) for v in args.rows.split(",")], args.jobs)
    elif args.part == "one":
        run_one(args.out, int(args.rows), args.jobs)
    else:
        parser.print_help()


if __name__ == "__main__":
    main()
