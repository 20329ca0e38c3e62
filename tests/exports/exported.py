"""Fitted models of every kind that tests of exports share, and random rows of which these are to say the same."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import polars as pl
from tests.estimators_list import MIXED, QUICK, REGRESSORS, quick, targets

import treewright
from treewright.estimators.tree_model import TreeModel

NUMBERS = ['Größe "cm"', "it's; DROP TABLE rows--", "a\\b\n%s :c ?", "select"]
TEXT, CODE, FLAG = 'colour, "the" first', "o'clock", "member"
LEVELS = ["red", "o'brien", 'a"b', "back\\slash", "", "Größe", "Red"]
LABELS = np.array(["no", 'it\'s "yes"', "Ünsure\\"])
TREES = [name for name in QUICK if issubclass(getattr(treewright, name), TreeModel)]
N_ROWS = 10_000


def rows(n: int, seed: int, mixed: bool, gaps: bool, new: bool = False) -> pl.DataFrame:
    """A table of numbers, with categories, gaps and new levels where these are asked for."""
    rng = np.random.default_rng(seed)
    table = {name: np.round(rng.normal(size=n) * 10.0**j, 1 - j) for j, name in enumerate(NUMBERS)}
    columns = {name: [None if gaps and rng.random() < 0.1 else v for v in x.tolist()] for name, x in table.items()}
    if gaps:
        columns[NUMBERS[0]] = [float("nan") if v is None else v for v in columns[NUMBERS[0]]]
    if mixed:
        levels = [*LEVELS, "unseen"] if new else LEVELS
        codes = [1.0, 2.0, 3.5, 9.0] if new else [1.0, 2.0, 3.5]
        columns[TEXT] = [None if gaps and rng.random() < 0.1 else levels[rng.integers(len(levels))] for _ in range(n)]
        columns[CODE] = [None if gaps and rng.random() < 0.1 else codes[rng.integers(len(codes))] for _ in range(n)]
        columns[FLAG] = [None if gaps and rng.random() < 0.1 else bool(rng.integers(2)) for _ in range(n)]
    types = {name: pl.Float64 for name in [*NUMBERS, CODE]} | {TEXT: pl.String, FLAG: pl.Boolean}
    return pl.DataFrame(columns, schema={name: types[name] for name in columns})


def truth(table: pl.DataFrame) -> np.ndarray:
    """Class numbers that depend on sums, categories and gaps."""
    X = table.select(pl.col(NUMBERS).fill_null(1.0).fill_nan(1.0)).to_numpy() / [1.0, 10.0, 100.0, 1000.0]
    score = X[:, 0] + 0.7 * X[:, 1] - 0.4 * X[:, 2]
    if TEXT in table.columns:
        score = score + 2.0 * np.isin(table[TEXT].to_list(), ["red", "o'brien", ""])
        score = score - 1.5 * np.array([v in (None, 2.0) for v in table[CODE].to_list()])
        score = score + np.array([v is True for v in table[FLAG].to_list()])
    return np.digitize(score, [-0.5, 0.8])


LARGER = {
    "OCTClassifier": {"max_depth": 3},
    "BinOCTClassifier": {"max_depth": 2},
    "SVM1ODTClassifier": {"max_depth": 2, "time_limit": 3.0},
    "OCTSVMClassifier": {"max_depth": 2, "relabel": "tree", "max_norm": 8.0, "relabel_cost": 2.0, "time_limit": 3.0},
    "RESVMClassifier": {"c1": 1000.0, "c2": 1000.0, "time_limit": 1.0},
    "S2OCTClassifier": {"max_depth": 2},
}
"""Settings of trees with more splits than the quickest have."""
SPECIAL = {
    "OCTSVMClassifier of two classes": ("OCTSVMClassifier", {}),
    "RESVMClassifier of two classes": ("RESVMClassifier", {}),
    "S2OCTClassifier, committee": ("S2OCTClassifier", {"n_estimators": 3, "max_depth": 2}),
    "TAORegressor, linear leaves": ("TAORegressor", {"leaves": "linear"}),
    "TAORegressor, two outputs": ("TAORegressor", {}),
    "TAOClassifier, deep": ("TAOClassifier", {"max_depth": 8, "alpha": 0.0, "init": "cart"}),
}
CASES = [*TREES, *SPECIAL]


def kinds(case: str) -> tuple[str, dict, bool, bool]:
    """Estimator, settings, whether it has categories, and whether gaps."""
    name, settings = SPECIAL.get(case, (case, {}))
    mixed = name in MIXED
    return name, settings, mixed, mixed and settings.get("leaves") != "linear"


@cache
def fitted(case: str):
    """A fitted model of a case."""
    name, settings, mixed, gaps = kinds(case)
    table = rows(300, 0, mixed, gaps)
    numbers = truth(table)
    if case.endswith("two classes"):
        numbers = np.minimum(numbers, 1)
    y = targets(name, numbers, np.random.default_rng(1).random(300) < 0.5)
    if name not in REGRESSORS:
        y = np.array([None if number == -1 else LABELS[number] for number in y], dtype=object)
        if (numbers == y).all():
            y = y.astype(str)
    if case.endswith("two outputs"):
        y = np.column_stack([y, y**2 + table[NUMBERS[0]].fill_null(0.0).fill_nan(0.0).to_numpy()])
    model = quick(name, random_state=0, **(LARGER.get(name, {}) | settings))
    if mixed:
        model.set_params(categorical_features=[TEXT, CODE, FLAG])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table, y)


@cache
def random_rows(case: str) -> pl.DataFrame:
    """Rows with gaps and new levels where the model takes them."""
    _, _, mixed, gaps = kinds(case)
    return rows(N_ROWS, 2, mixed, gaps, new=True)


@cache
def said(case: str) -> dict[str, np.ndarray]:
    """What the model itself says of these rows."""
    model, table = fitted(case), random_rows(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {"predict": model.predict(table)}
        if hasattr(model, "predict_proba"):
            found["proba"] = model.predict_proba(table)
        if alone(case):
            found["leaf"] = model.apply(table)
    return found


def alone(case: str) -> bool:
    """Whether the model is one tree."""
    return len(getattr(fitted(case), "trees_", [0])) == 1
