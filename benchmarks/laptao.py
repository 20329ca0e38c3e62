"""LapTAO by share of labels against every semi-supervised baseline: MNIST, cpu_act, and how it scales.

laptao-choose: settings of LapTAO on MNIST, one changed at a time, by the errors on 1 % of the training rows, which no
fit sees. The test rows are not read.
laptao-mnist: one draw of labels a share, three at 1 and 10 %. The graph is built once, kept and given to all methods
that use one; its seconds are added to each of their fits. LapSVM and SSCT are for small tables: they get 6000 and 3000
rows, with the labels of the share as far as these are half of them at most. Self-training and LapCART have 5 rounds.
laptao-cpu_act: 60 % of the rows for training, square roots of the features less their minimum for all methods. Depths
are chosen for each method and share by the median error on a tenth of the training rows of five splits, which these
fits do not see; the square roots were, by LapTAO's errors on such rows.
laptao-scale: make_classification with 18 features, 0.5 % labelled; seconds are those of the whole fit, with graph and
compilation.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestRegressor
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import harness
import treewright as tw
from harness import THREADS, Data, Instance, Method, PivotTable, Row, Sample, Specification, Where
from treewright.data import unit_scaling
from treewright.graph import neighbor_graph

SHARES = (1.0, 3.0, 5.0, 8.0, 10.0, 20.0)
PUBLISHED = {
    "mnist": {
        "LapTAO, published": (9.61, 6.93, 6.27, 6.12, 5.97, 5.45),
        "EBBS, published": (10.57, 7.49, 7.05, 6.39, 6.15, 5.91),
    },
    "cpu_act": {
        "LapTAO, published": (255.13, 65.75, 12.03, 10.36, 9.19, 8.32),
        "EBBS, published": (261.05, 92.76, 16.52, 12.78, 12.41, 9.87),
        "LapCART, published": (263.50, 83.79, 18.14, 13.93, 13.04, 11.69),
        "axis-self, published": (293.45, 228.63, 21.89, 21.04, 20.45, 14.92),
    },
}


def by_share(title: str, cell: harness.Column, published: str = "", **options: Any) -> PivotTable:
    known = {name: dict(zip(SHARES, values, strict=True)) for name, values in PUBLISHED.get(published, {}).items()}
    return PivotTable(("method", "method"), ("share", "{:g} %"), cell, title=title, known=known, **options)


def whole_seconds(row: Row) -> float:
    """Seconds with those of the graph, where a method has it."""
    return row["seconds"] + (row["graph_seconds"] if row["method"] in GRAPH else 0.0)


SECONDS = (harness.most("seconds", "seconds", ".0f"),)
MEAN_ERROR, RANGE = harness.mean("", "error"), harness.median_range("", "error")

# ---------------------------------------------------------------------- MNIST


def with_graph(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, n_jobs: int) -> Data:
    """Rows with their graph; pixels between 0 and 1."""
    X, X_test = X / 255.0, X_test / 255.0
    began = time.perf_counter()
    graph = neighbor_graph(unit_scaling(X).apply(X).astype(np.float32), n_jobs=n_jobs)
    facts = {"graph_seconds": time.perf_counter() - began}
    return Data(X, y.astype(np.int64), X_test, y_test.astype(np.int64), {"graph": graph}, facts)


def mnist(train: Path, test: Path, sha256: list[str], n_jobs: int, most_rows: int | None = None) -> Data:
    X, y = (part[:most_rows] for part in harness.read_table_of_numbers(train, sha256[0]))
    X_test, y_test = (part[:most_rows] for part in harness.read_table_of_numbers(test, sha256[1]))
    return with_graph(X, y, X_test, y_test, n_jobs)


def mnist_held_out(train: Path, sha256: list[str], n_jobs: int, most_rows: int | None = None) -> Data:
    """A hundredth of the training rows instead of the test rows."""
    X, y = (part[:most_rows] for part in harness.read_table_of_numbers(train, sha256[0]))
    out, kept = np.split(np.random.default_rng(2026).permutation(len(y)), [len(y) // 100])
    return with_graph(X[kept], y[kept], X[out], y[out], n_jobs)


def some_labels(data: Data, draw: int, share: float, shuffled: bool = True) -> Instance:
    """A share of the rows labelled: drawn, or the first ones."""
    n = len(data.y)
    order = np.random.default_rng(draw).permutation(n) if shuffled else np.arange(n)
    known = np.zeros(n, dtype=bool)
    known[order[: round(share / 100 * n)]] = True
    facts = {**data.facts, "share": share}
    return Instance(data.X, data.y, known, *data.test, draw, data.given, facts)


def some_rows(instance: Instance, most: int) -> Instance:
    """So many rows at most, no more than half of them labelled."""
    rng = np.random.default_rng(0)
    labelled, others = (rng.permutation(np.flatnonzero(instance.known == value)) for value in (True, False))
    used = np.concatenate([labelled[: most // 2], others])[:most]
    return replace(instance, X=instance.X[used], truth=instance.truth[used], known=instance.known[used])


def oblique_self(**parameters: Any) -> SelfTrainingClassifier:
    return SelfTrainingClassifier(tw.TAOClassifier(**parameters), threshold=0.9, max_iter=5)


def axis_self() -> SelfTrainingClassifier:
    tree = DecisionTreeClassifier(max_depth=12, random_state=0)
    return SelfTrainingClassifier(tree, threshold=0.9, max_iter=5)


def lap(name: str, draws: int | None = None, **parameters: Any) -> Method:
    return Method(name, tw.LapTAOClassifier, {**TREE, **parameters}, given=("graph",), where=Where(draws=draws))


JOBS, ONCE = {"n_jobs": THREADS}, Where(draws=1)
SEED: dict[str, Any] = {**JOBS, "random_state": 0}
TREE: dict[str, Any] = {**SEED, "max_depth": 8}
# What is not named is the default.
CHOICES = (
    lap("defaults"),
    lap("alpha 1.5 (half)", alpha=1.5),
    lap("alpha 6 (twice)", alpha=6.0),
    lap("trust 0", trust=0.0),
    lap("stretch 0", stretch=0.0),
    lap("init cart", init="cart"),
    lap("penalty of the paper", mu=0.001, mu_factor=1.5),
)
WITH_GRAPH = (
    lap("LapTAO"),
    lap("LapTAO (chosen)", init="cart"),  # fewest errors on the held-out rows, at 1 and at 10 % of the labels
    lap("LapTAO (trust 0)", 1, trust=0.0),
    lap("LapTAO (stretch 0)", stretch=0.0),
    lap("LapTAO forest", 1, n_estimators=12),
    lap("EBBS", trust=0.0, stretch=0.0, max_iter=0),
    lap("LapCART", 1, estimator="cart", max_iter=5),
    lap("label propagation + kNN", estimator="graph"),
)
GRAPH = tuple(method.name for method in WITH_GRAPH)
MNIST_METHODS = (
    *WITH_GRAPH,
    Method("oblique-self", oblique_self, TREE, where=ONCE),
    Method("axis-self", axis_self, where=ONCE),
    Method("oblique-lbl", tw.TAOClassifier, TREE, on=harness.labelled_rows),
    Method("oblique-all", tw.TAOClassifier, TREE, on=harness.all_labels, where=Where(samples=("1 %",), draws=1)),
    Method("SSCT", tw.SSCTClassifier, {**TREE, "max_features": "sqrt"}, on=partial(some_rows, most=3000), where=ONCE),
    Method("LapSVM", tw.LapSVMClassifier, SEED, on=partial(some_rows, most=6000), where=ONCE),
)
TRAIN, TEST = "laptao/mnist_train.tsv.gz", "laptao/mnist_test.tsv.gz"
HELD_OUT = harness.FileSet("mnist held-out rows", (TRAIN,), mnist_held_out, JOBS, keep=True)
CHOOSE = Specification(
    name="laptao-choose",
    data=(HELD_OUT,),
    samples=tuple(Sample(f"{s:g} %", some_labels, {"share": s, "shuffled": False}) for s in (1.0, 10.0)),
    methods=CHOICES,
    metrics=(harness.error_percent,),
    summary=(by_share("MNIST, held-out rows: mean error, per cent", MEAN_ERROR, columns=SECONDS),),
    threads=2,
).with_quick(
    data=(replace(HELD_OUT, files=(TEST,), parameters={**JOBS, "most_rows": 600}),),
    samples=(Sample("10 %", some_labels, {"share": 10.0, "shuffled": False}),),
    methods=CHOICES[:2],
)
MNIST = Specification(
    name="laptao-mnist",
    data=(harness.FileSet("mnist", (TRAIN, TEST), mnist, JOBS, keep=True),),
    samples=tuple(Sample(f"{s:g} %", some_labels, {"share": s}, draws=3 if s in (1.0, 10.0) else 1) for s in SHARES),
    methods=MNIST_METHODS,
    metrics=(harness.error_percent,),
    summary=(
        by_share(
            "MNIST: mean error, per cent",
            MEAN_ERROR,
            columns=(harness.most("seconds", whole_seconds, ".0f"),),
            everywhere=("oblique-all",),
            published="mnist",
        ),
    ),
    threads=2,
).with_quick(
    data=(harness.FileSet("mnist", (TEST, TEST), mnist, {**JOBS, "most_rows": 600}, keep=True),),
    samples=(Sample("1 %", some_labels, {"share": 10.0}),),
    methods=tuple(method for method in MNIST_METHODS if method.name in ("LapTAO", "oblique-lbl", "SSCT")),
)

# ---------------------------------------------------------------------- cpu_act

FEATURES = {"cpu_act": "square roots", "cpu_act as it is": "as they are", "cpu_act logarithms": "logarithms"}
DEPTHS, DEPTH = (4, 6, 8), 8
NO_DEPTH = ("label propagation + kNN", "LapTAO forest", "Lap random forest")
LAPTAO: dict[str, dict[str, Any]] = {
    "LapTAO": {},
    "LapTAO (stretch 0)": {"stretch": 0.0},
    "EBBS": {"stretch": 0.0, "max_iter": 0},
    "LapCART": {"estimator": "cart"},
    "Lap random forest": {"estimator": "forest", "max_iter": 3},
    "LapTAO forest": {"n_estimators": 12, "max_features": 0.7},
    "label propagation + kNN": {"estimator": "graph"},
}


def cpu_act(path: Path, sha256: list[str], features: str) -> Data:
    data = harness.read_values(path, sha256)
    above = data.X - data.X.min(axis=0)
    X = {"square roots": np.sqrt(above), "as they are": data.X, "logarithms": np.log1p(above)}[features]
    return replace(data, X=X)


def a_split(data: Data, draw: int, share: float, held_out: bool) -> Instance:
    """60 % for training and the others for testing; or nine tenths of these 60 %, and a tenth."""
    train, test = np.split(np.random.default_rng(draw).permutation(len(data.y)), [round(0.6 * len(data.y))])
    if held_out:
        train, test = np.split(train, [round(0.9 * len(train))])
    known, X, y = np.arange(len(train)) < round(share / 100 * len(train)), data.X, data.y
    facts = {"share": share, "held_out": held_out}
    return Instance(X[train], y[train], known, X[test], y[test], draw, facts=facts)


def lap_regressor(estimator: str = "tao", **parameters: Any) -> tw.LapTAORegressor:
    model = RandomForestRegressor(100, random_state=0) if estimator == "forest" else estimator
    return tw.LapTAORegressor(estimator=model, **parameters)


def oblique_self_regressor(**parameters: Any) -> tw.SelfTrainingRegressor:
    return tw.SelfTrainingRegressor(tw.TAORegressor(**parameters))


def axis_self_regressor(**parameters: Any) -> tw.SelfTrainingRegressor:
    return tw.SelfTrainingRegressor(DecisionTreeRegressor(**parameters))


TESTS = tuple(f"{share:g} %" for share in SHARES)
TUNING = tuple(f"held out {name}" for name in TESTS)


def cpu_act_methods(depth: int) -> list[Method]:
    sets, once = Where(("cpu_act",)), Where(("cpu_act",), (TESTS[0], TUNING[0]))
    own: dict[str, Any] = {"parameters": {"max_depth": depth, "random_state": 0}, "setting": f"depth {depth}"}
    methods = [
        Method("axis-self", axis_self_regressor, where=sets, **own),
        Method("oblique-self", oblique_self_regressor, where=sets, **own),
        Method("oblique-lbl", tw.TAORegressor, on=harness.labelled_rows, where=sets, **own),
        Method("oblique-all", tw.TAORegressor, on=harness.all_labels, where=once, **own),
    ]
    for name, options in LAPTAO.items():
        where = Where(("cpu_act",), TESTS) if name in NO_DEPTH else sets
        if depth == DEPTH or name not in NO_DEPTH:
            parameters = {**own["parameters"], **options}
            methods.append(Method(name, lap_regressor, parameters, own["setting"], where=where))
    return methods


# LapTAO on the features as they are and on their logarithms, on held-out rows alone
OTHER_FEATURES = Method(
    "LapTAO", lap_regressor, {"max_depth": DEPTH, "random_state": 0}, where=Where(tuple(FEATURES)[1:], TUNING)
)


def held_out_rows(rows: list[Row]) -> list[Row]:
    """Errors on held-out rows, with depth and features in the name."""
    own = harness.only(harness.finished(rows), held_out=True)
    return [row | {"method": ", ".join(filter(None, (row["method"], row["setting"], row["data"])))} for row in own]


def at_chosen_depth(rows: list[Row]) -> list[Row]:
    """Rows of the test at the depth that has the least median error on held-out rows."""
    used = [row for row in harness.finished(rows) if row["data"] == "cpu_act"]
    groups = harness.grouped(harness.only(used, held_out=True), ("method", "share", "setting"))
    held_out = {key: statistics.median(row["error"] for row in group) for key, group in groups.items()}
    chosen = []
    for (name, share), own in harness.grouped(harness.only(used, held_out=False), ("method", "share")).items():
        depths = dict.fromkeys(row["setting"] for row in own)
        chosen += harness.only(own, setting=min(depths, key=lambda depth: held_out.get((name, share, depth), 0.0)))
    return chosen


CPU_ACT = Specification(
    name="laptao-cpu_act",
    data=tuple(
        harness.FileSet(name, ("laptao/cpu_act.tsv.gz",), cpu_act, {"features": features})
        for name, features in FEATURES.items()
    ),
    samples=(
        *(Sample(name, a_split, {"share": s, "held_out": True}, 5) for name, s in zip(TUNING, SHARES, strict=True)),
        *(Sample(name, a_split, {"share": s, "held_out": False}, 10) for name, s in zip(TESTS, SHARES, strict=True)),
    ),
    methods=(*(method for depth in DEPTHS for method in cpu_act_methods(depth)), OTHER_FEATURES),
    metrics=(harness.squared_error,),
    summary=(
        by_share("cpu_act, held-out rows: median squared error (range)", RANGE, columns=SECONDS, rows=held_out_rows),
        by_share(
            "cpu_act: median squared error (range)",
            RANGE,
            columns=SECONDS,
            rows=at_chosen_depth,
            everywhere=("oblique-all",),
            published="cpu_act",
        ),
    ),
    threads=2,
)
CPU_ACT = CPU_ACT.with_quick(
    data=CPU_ACT.data[:1],
    samples=(
        Sample("held out 20 %", a_split, {"share": 20.0, "held_out": True}),
        Sample("20 %", a_split, {"share": 20.0, "held_out": False}),
    ),
    methods=tuple(method for depth in (4, 6) for method in cpu_act_methods(depth) if method.name == "oblique-lbl"),
)

# ---------------------------------------------------------------------- scale


def made(rows: int) -> Data:
    options = {"n_informative": 12, "n_redundant": 2, "n_clusters_per_class": 4, "class_sep": 1.5, "random_state": 0}
    X, y = make_classification(rows + 10_000, 18, **options)
    return Data(X[:rows], y[:rows], X[rows:], y[rows:])


def exponent(rows: list[Row]) -> str:
    own = harness.only(harness.finished(rows), method="LapTAO")
    if len(own) < 2:
        return ""
    slope = np.polyfit(np.log([row["n"] for row in own]), np.log([row["seconds"] for row in own]), 1)[0]
    return f"Exponent of the seconds: {slope:.2f}."


LAPTAO_COLUMNS = {"seconds": "{seconds:.0f}", "GiB": "{memory_gib:.1f}", "error, per cent": "{error:.1f}"}
SCALE = Specification(
    name="laptao-scale",
    data=tuple(harness.DataSet(f"{n} rows", made, {"rows": n}) for n in (125_000, 250_000, 500_000, 1_000_000)),
    samples=(Sample("0.5 %", some_labels, {"share": 0.5, "shuffled": False}),),
    methods=(
        Method("LapTAO", tw.LapTAOClassifier, TREE),
        Method("labels alone", tw.TAOClassifier, {"max_depth": 8, "random_state": 0}, on=harness.labelled_rows),
    ),
    metrics=(harness.error_percent,),
    summary=(
        harness.GroupTable(
            {"data": "rows"},
            (
                *(harness.each(*column).of(method="LapTAO") for column in LAPTAO_COLUMNS.items()),
                harness.each("labels alone", "{error:.1f}").of(method="labels alone"),
                harness.each("rounds", "{n_iter}").of(method="LapTAO"),
            ),
        ),
        exponent,
    ),
    threads=2,
).with_quick(data=(harness.DataSet("1,000", made, {"rows": 1_000}),))

SPECIFICATIONS = (CHOOSE, MNIST, CPU_ACT, SCALE)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
