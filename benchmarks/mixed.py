"""Categories and missing values as they are, against columns of zeros and ones and imputed means.

Six made tables, 1500 to 4000 rows for training and as many for testing, depth 2: loans (two categories, gaps at
random), clinic (a gap tells something), shops (three classes, a category of 200 levels), taxes (150 towns and 60
occupations, of which some matter, and an income that is left blank for a reason), claims (120 garages of very different
size, 40 makes, an invoice that is missing), parcels (three classes, 45 carriers, 90 depots, a value that gifts do not
have). Both ways have the same prices, so that their objectives are comparable; "stretch" of TAO is left out, as it does
not lower the objective.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

import harness
from harness import TIME_LIMIT, Data, DataSet, Instance, Method, Row
from treewright import SVM1ODTClassifier, TAOClassifier

Columns = dict[str, np.ndarray]


def loans(rng: np.random.Generator, n: int) -> tuple[Columns, np.ndarray, float]:
    table: Columns = {
        "job": rng.integers(0, 8, n).astype(float),
        "region": rng.integers(0, 12, n).astype(float),
        "income": rng.gamma(3.0, 1000.0, n),
        "debt": rng.gamma(2.0, 500.0, n),
        "age": rng.integers(18, 80, n).astype(float),
    }
    rich = table["income"] - 1.5 * table["debt"] > 1200
    good = np.where(np.isin(table["region"], [0, 2, 5, 7, 9]), rich, table["job"] < 4)
    for name, share in (("income", 0.15), ("debt", 0.1), ("age", 0.2)):
        table[name][rng.random(n) < share] = np.nan
    return table, good.astype(np.int64), 0.05


def clinic(rng: np.random.Generator, n: int) -> tuple[Columns, np.ndarray, float]:
    table: Columns = {
        "ward": rng.integers(0, 30, n).astype(float),
        "sex": rng.integers(0, 2, n).astype(float),
        "lab": rng.normal(5.0, 2.0, n),
        "pressure": rng.normal(120.0, 20.0, n),
        "weight": rng.normal(70.0, 12.0, n),
    }
    ill = rng.random(n) < np.where(table["lab"] > 6, 0.8, 0.2)
    target = np.where(table["ward"] % 4 == 0, ill, table["pressure"] > 130)
    table["lab"][rng.random(n) < np.where(ill, 0.1, 0.5)] = np.nan  # ordered where someone looks ill
    table["pressure"][rng.random(n) < 0.1] = np.nan
    return table, target.astype(np.int64), 0.02


def shops(rng: np.random.Generator, n: int) -> tuple[Columns, np.ndarray, float]:
    table: Columns = {
        "city": rng.integers(0, 200, n).astype(float),
        "kind": rng.integers(0, 5, n).astype(float),
        "size": rng.lognormal(3.0, 1.0, n),
        "rent": rng.lognormal(2.0, 0.7, n),
    }
    roomy = np.log(table["size"]) - np.log(table["rent"]) > 1
    target = np.where(table["city"] % 3 == 0, np.where(np.isin(table["kind"], [0, 3]), 0, 2), np.where(roomy, 0, 1))
    for name in ("size", "kind"):
        table[name][rng.random(n) < 0.1] = np.nan
    return table, target.astype(np.int64), 0.05


def some_of(levels: int, chosen: int) -> np.ndarray:
    """Levels that matter, the same in every draw."""
    return np.random.default_rng(levels).permutation(levels)[:chosen]


def taxes(rng: np.random.Generator, n: int) -> tuple[Columns, np.ndarray, float]:
    table: Columns = {
        "town": rng.integers(0, 150, n).astype(float),
        "occupation": rng.integers(0, 60, n).astype(float),
        "income": rng.normal(40.0, 12.0, n),
        "age": rng.integers(18, 80, n).astype(float),
        "children": rng.integers(0, 5, n).astype(float),
    }
    blank = rng.random(n) < 0.35
    audited = np.where(np.isin(table["town"], some_of(150, 60)), np.isin(table["occupation"], some_of(60, 25)), blank)
    table["income"][blank] = np.nan
    table["age"][rng.random(n) < 0.1] = np.nan
    return table, audited.astype(np.int64), 0.05


def claims(rng: np.random.Generator, n: int) -> tuple[Columns, np.ndarray, float]:
    share = 1.0 / (3.0 + np.arange(120.0))  # a few garages have most of the claims
    table: Columns = {
        "garage": rng.choice(120, n, p=share / share.sum()).astype(float),
        "make": rng.integers(0, 40, n).astype(float),
        "invoice": rng.normal(1500.0, 400.0, n),
        "damage": rng.normal(1400.0, 350.0, n),
        "years": rng.integers(0, 20, n).astype(float),
    }
    known = np.isin(table["garage"], some_of(120, 50))
    lost = rng.random(n) < 0.3
    dear = table["invoice"] - table["damage"] > 150.0
    checked = np.where(known, lost | np.isin(table["make"], some_of(40, 15)), dear & ~lost)
    table["invoice"][lost] = np.nan
    return table, checked.astype(np.int64), 0.05


def parcels(rng: np.random.Generator, n: int) -> tuple[Columns, np.ndarray, float]:
    table: Columns = {
        "carrier": rng.integers(0, 45, n).astype(float),
        "depot": rng.integers(0, 90, n).astype(float),
        "value": rng.gamma(2.0, 40.0, n),
        "weight": rng.gamma(2.0, 3.0, n),
        "distance": rng.normal(400.0, 120.0, n),
    }
    gift = rng.random(n) < 0.3  # of which no value is declared
    by_road = np.isin(table["carrier"], some_of(45, 18))
    target = np.where(by_road, np.isin(table["depot"], some_of(90, 35)), np.where(gift, 2, 0))
    table["value"][gift] = np.nan
    table["weight"][rng.random(n) < 0.1] = np.nan
    return table, target.astype(np.int64), 0.05


TABLES = {
    "loans": (loans, 1500),
    "clinic": (clinic, 1500),
    "shops": (shops, 4000),
    "taxes": (taxes, 3000),
    "claims": (claims, 3000),
    "parcels": (parcels, 3000),
}


def made(name: str, rows: int | None = None) -> Data:
    """The rule of a table and its size; samples draw from it."""
    return Data(np.zeros((1, 1)), np.zeros(1, dtype=np.int64), facts={"table": name, "rows": rows or TABLES[name][1]})


def drawn(data: Data, draw: int) -> Instance:
    """Rows for training and as many for testing, some labels at random; categories are the first two columns."""
    rng, n = np.random.default_rng(draw), data.facts["rows"]
    table, y, noise = TABLES[data.facts["table"]][0](rng, 2 * n)
    y = np.where(rng.random(2 * n) < noise, rng.permutation(y), y)
    X = np.column_stack(list(table.values()))
    return Instance(X[:n], y[:n], np.ones(n, dtype=bool), X[n:], y[n:], draw, facts=data.facts)


def zeros_and_ones(instance: Instance) -> Instance:
    """A column for each level, means for missing numbers."""
    others = list(range(2, instance.X.shape[1]))
    to_columns = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((to_columns, [0, 1]), (SimpleImputer(), others)).fit(instance.X)
    return replace(instance, X=encoder.transform(instance.X), X_test=encoder.transform(instance.X_test))


NATIVE = {"categorical_features": [0, 1]}
TAO = {"max_depth": 2, "stretch": 0.0, "random_state": 0}
SVM1 = {"max_depth": 2, "epsilon": 0.05, "alpha_2": 1.0, "time_limit": TIME_LIMIT, "random_state": 0}


def compared(rows: list[Row]) -> str:
    """On how many draws native is lower in objective and no worse in accuracy."""
    lines = []
    for name in ("TAO", "SVM1-ODT"):
        ways = [
            {(r["data"], r["draw"]): r for r in harness.only(harness.finished(rows), method=f"{name}, {way}")}
            for way in ("native", "columns")
        ]
        both = [(row, ways[1][place]) for place, row in ways[0].items() if place in ways[1]]
        lower = sum(mine["objective"] < theirs["objective"] for mine, theirs in both)
        as_good = sum(mine["accuracy"] >= theirs["accuracy"] for mine, theirs in both)
        lines.append(f"{name}: objective lower on {lower}, accuracy no worse on {as_good} of {len(both)} draws")
    return "; ".join(lines)


MIXED = harness.Specification(
    name="mixed",
    data=tuple(DataSet(name, made, {"name": name}) for name in TABLES),
    samples=(harness.Sample("drawn", drawn, draws=5),),
    methods=(
        Method("TAO, native", TAOClassifier, {**TAO, **NATIVE}),
        Method("TAO, columns", TAOClassifier, TAO, on=zeros_and_ones),
        Method("SVM1-ODT, native", SVM1ODTClassifier, {**SVM1, **NATIVE}),
        Method("SVM1-ODT, columns", SVM1ODTClassifier, SVM1, on=zeros_and_ones),
    ),
    metrics=(harness.accuracy,),
    summary=(
        harness.GroupTable(
            {"data": "table", "method": "method"},
            (
                harness.mean("objective", "objective", ".1f"),
                harness.mean("test accuracy", "accuracy", ".1%"),
                harness.median("median seconds", "seconds", ".1f"),
            ),
        ),
        compared,
    ),
    time_limit=10.0,
)
SPECIFICATIONS = (
    MIXED.with_quick(
        data=(DataSet("loans", made, {"name": "loans", "rows": 120}),),
        samples=(harness.Sample("drawn", drawn),),
        time_limit=0.5,
    ),
)

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
