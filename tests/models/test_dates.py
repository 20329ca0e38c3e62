"""Dates, times and durations are refused by name, by every estimator, in fit and in predict."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.estimators_list import QUICK, REGRESSORS, quick
from tests.examples import looped

from treewright import TAOClassifier
from treewright.data import make_problem
from treewright.exceptions import InvalidInputError

N = 8
DAYS = pd.date_range("2024-01-01", periods=N)
AGE = np.arange(float(N))
GAPS = pd.Series(DAYS).where(AGE != 3)

FRAMES = {
    "pandas datetime": (pd.DataFrame({"age": AGE, "when": DAYS}), "'when'"),
    "pandas datetime alone": (pd.DataFrame({"when": DAYS}), "'when'"),
    "pandas missing": (pd.DataFrame({"when": GAPS}), "'when'"),
    "pandas timezone": (pd.DataFrame({"age": AGE, "when": DAYS.tz_localize("UTC")}), "'when'"),
    "pandas timedelta": (pd.DataFrame({"length": DAYS - DAYS[0]}), "'length'"),
    "pandas period": (pd.DataFrame({"month": DAYS.to_period("M")}), "'month'"),
    "pandas objects": (pd.DataFrame({"age": AGE, "when": pd.Series(list(DAYS.date), dtype=object)}), "'when'"),
    "pandas one date": (pd.DataFrame({"when": pd.Series([*range(N - 1), DAYS[0]], dtype=object)}), "'when'"),
    "pandas same names": (pd.DataFrame(np.column_stack([AGE, DAYS.values.astype(object)]), columns=["a", "a"]), "'a'"),
    "two columns": (pd.DataFrame({"from": DAYS, "age": AGE, "to": DAYS}), "columns 'from', 'to'"),
    "polars datetime": (pl.DataFrame({"age": AGE, "when": list(DAYS)}), "'when'"),
    "polars date": (pl.DataFrame({"age": AGE, "day": list(DAYS.date)}), "'day'"),
    "polars duration": (pl.DataFrame({"length": [dt.timedelta(hours=i) for i in range(N)]}), "'length'"),
    "polars time": (pl.DataFrame({"hour": [dt.time(i) for i in range(N)]}), "'hour'"),
    "numpy datetime": (np.column_stack([DAYS.values, DAYS.values]), "columns 0, 1"),
    "numpy timedelta": ((DAYS - DAYS[0]).values[:, None], "column 0"),
    "numpy objects": (np.column_stack([AGE.astype(object), np.array(list(DAYS), dtype=object)]), "column 1"),
    "lists": ([[age, day] for age, day in zip(AGE, DAYS.to_pydatetime(), strict=True)], "column 1"),
}
y = np.array([0, 0, 0, 0, 1, 1, 1, 1])


@looped("X, columns", FRAMES.values())
def test_every_kind_of_column_is_refused_by_name(X, columns):
    with pytest.raises(InvalidInputError, match=f"X has dates, times or durations in .*{columns}; .*days since"):
        TAOClassifier().fit(X, y)
    with pytest.raises(InvalidInputError, match=f"{columns};"):
        make_problem(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", QUICK)
def test_every_estimator_refuses_in_fit_and_predict(name):
    model = quick(name)
    dates = pd.DataFrame({"age": AGE, "when": DAYS})
    with pytest.raises(InvalidInputError, match="in column 'when'"):
        model.fit(dates, y)
    model.fit(dates.assign(when=AGE), AGE if name in REGRESSORS else y)
    for method in ("predict", "predict_proba", "decision_function", "apply", "decision_path"):
        if hasattr(model, method):
            with pytest.raises(InvalidInputError, match="in column 'when'"):
                getattr(model, method)(dates)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_refuse_dates_as_targets(name):
    for targets in (DAYS.values, pd.Series(DAYS - DAYS[0]), np.array(list(DAYS), dtype=object)):
        with pytest.raises(InvalidInputError, match="y has dates, times or durations; "):
            quick(name).fit(AGE[:, None], targets)


def test_numbers_of_any_library_are_taken():
    frame = pd.DataFrame({"a": pd.Series(AGE, dtype=object), "b": pd.Categorical(AGE), "c": pd.array(AGE, "Float64")})
    for X in (frame, pl.DataFrame({"a": AGE, "b": AGE > 3}), [[v, True] for v in AGE], frame.to_numpy(dtype=object)):
        TAOClassifier(max_depth=1).fit(X, y)
