"""Exports say of random rows what the models say: labels, values and leaves to the bit, probabilities too."""

import sqlite3

import duckdb
import numpy as np
import onnxruntime
import polars as pl
import pytest
from exported import CASES, FLAG, NUMBERS, TEXT, alone, fitted, random_rows, said

TABLE, QUOTED = 'the "table', '"the ""table"'
ROUNDING = 1e-12
"""What the order of sums over classes may change."""


def check(case, answers, values, exact=True):
    """Compare labels or values, probabilities and leaves, in the order in which exports give them."""
    expected = said(case)
    rounding = 0.0 if exact and alone(case) else ROUNDING
    first = np.array(answers)
    if "proba" in expected:
        assert (first == expected["predict"]).all()
        assert np.abs(np.array(values) - expected["proba"]).max() <= rounding
        assert len(np.unique(expected["predict"])) > 1  # else anything would do
    else:
        assert np.allclose(first.reshape(expected["predict"].shape), expected["predict"], rtol=rounding, atol=rounding)


@pytest.mark.parametrize("case", CASES)
def test_python_says_what_the_model_says(case):
    space = {}
    exec(fitted(case).to_python(), {"__builtins__": __builtins__}, space)
    found = [space["predict"](row) for row in random_rows(case).iter_rows(named=True)]
    if "proba" not in said(case):
        return check(case, found, None)
    labels, shares = zip(*found, strict=True)
    assert [list(share) for share in shares[:1]] == [fitted(case).classes_.tolist()]
    check(case, labels, [list(share.values()) for share in shares])
    by_place = [space["predict"](row) for row in random_rows(case).head(100).iter_rows()]
    assert by_place == found[:100]


def check_rows(case, answers):
    """Compare rows of a SELECT that keeps the number of the row in front."""
    found = np.array(answers, dtype=object)
    assert (found[:, 0] == np.arange(len(found))).all()
    n_classes = said(case)["proba"].shape[1] if "proba" in said(case) else 0
    width = 2 if n_classes else 1 + np.atleast_2d(said(case)["predict"].T).shape[0]
    values = found[:, 2 : 2 + n_classes].astype(float)
    check(case, found[:, 1] if n_classes else found[:, 1:width].astype(float), values)
    if alone(case):
        assert (found[:, -1].astype(int) == said(case)["leaf"]).all()


@pytest.mark.parametrize("case", CASES)
def test_duckdb_says_what_the_model_says(case, tmp_path):
    table = random_rows(case).with_row_index("row number")
    table.write_parquet(tmp_path / "rows.parquet")
    base = duckdb.connect()
    base.execute(f"CREATE TABLE {QUOTED} AS FROM '{tmp_path / 'rows.parquet'}'")
    query = fitted(case).to_sql(TABLE, keep=["row number"])
    check_rows(case, base.execute(f'{query} ORDER BY "row number"').fetchall())


@pytest.mark.parametrize("case", CASES)
def test_sqlite_says_what_the_model_says(case):
    table = random_rows(case).with_row_index("row number")
    base = sqlite3.connect(":memory:")
    quoted = ['"' + name.replace('"', '""') + '"' for name in table.columns]
    columns = [f"{name} TEXT COLLATE NOCASE" if name == quoted[-3] else name for name in quoted]  # red is not Red
    base.execute(f"CREATE TABLE {QUOTED} ({', '.join(columns)})")
    base.executemany(f"INSERT INTO {QUOTED} VALUES ({', '.join('?' * len(quoted))})", table.iter_rows())
    query = fitted(case).to_sql(TABLE, "sqlite", keep=["row number"])
    check_rows(case, base.execute(f'{query} ORDER BY "row number"').fetchall())


@pytest.mark.parametrize("case", CASES)
def test_onnx_says_what_the_model_says(case):
    model, table = fitted(case), random_rows(case)
    session = onnxruntime.InferenceSession(
        model.to_onnx(missing_text="gone").SerializeToString(), providers=["CPUExecutionProvider"]
    )
    if getattr(model, "categories_", None) is None:
        given = {"X": table.select(NUMBERS).to_numpy()}
    else:
        numbers = table.with_columns(pl.exclude(TEXT).cast(pl.Float64).fill_null(float("nan")))
        given = {name: numbers[name].to_numpy()[:, None] for name in table.columns if name != TEXT}
        given[TEXT] = np.array(table[TEXT].fill_null("gone").to_list(), dtype=object)[:, None]  # "" is a level
        assert given[FLAG].dtype == float
    found = dict(zip([output.name for output in session.get_outputs()], session.run(None, given), strict=True))
    check(case, found["value"] if "value" in found else found["label"], found.get("probabilities"), exact=False)
    assert ("leaf" in found) == alone(case)
    if alone(case):
        assert (found["leaf"] == said(case)["leaf"]).all()
