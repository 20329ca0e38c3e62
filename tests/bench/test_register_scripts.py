"""The benchmarks of registers make what they say, and count what they say."""

import json
import sys

import numpy as np
import polars as pl
import pytest

import intervals
import register


def test_a_register_and_its_totals(tmp_path, monkeypatch):
    monkeypatch.setattr(register, "BATCH", 150)
    monkeypatch.setattr(register, "LABELLED", 0.2)
    n = 400
    frames = {}
    for kind, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        (tmp_path / kind).mkdir()
        facts = register.make_register(tmp_path / kind, n, kind)
        frames[kind] = read(tmp_path / kind / f"register.{kind}")
        assert facts["rows"] == frames[kind].height == n
        assert facts["labelled"] == frames[kind]["status"].drop_nulls().len() > 0
        assert frames[kind].width == 20 + 3  # beside person, area and status
    assert frames["csv"]["status"].equals(frames["parquet"]["status"])
    truth = np.concatenate([classes for _, classes in register.register_batches(n, batch=150)])
    frame = frames["parquet"].with_columns(prediction=pl.Series(register.CLASSES.tolist()).gather(truth))
    assert frame.filter(pl.col("status").is_not_null() & (pl.col("status") != pl.col("prediction"))).height == 0
    frame.write_parquet(tmp_path / "labels.parquet")
    paths = tmp_path / "parquet" / "register.parquet", tmp_path / "labels.parquet", tmp_path / "parquet" / "totals.csv"
    assert register.check_labels(*paths) == (120, 0)
    assert register.true_accuracy(paths[1], n) == 1.0
    hidden = frame["status"].is_null().to_numpy()
    first = int(np.flatnonzero(hidden)[0])
    other = next(name for name in register.CLASSES if name != frame["prediction"][first])
    frame[first, "prediction"] = str(other)
    frame.write_parquet(paths[1])
    assert register.check_labels(*paths) == (120, 2)  # one too few and one too many
    assert register.true_accuracy(paths[1], n) == pytest.approx(1 - 1 / hidden.sum())


def test_memory_and_time_of_a_process(capsys):
    found = register.measured([sys.executable, "-c", "x = bytearray(200 << 20); print('said')"])
    assert found["output"] == "said"
    assert 0.19 < found["gib"] < 1.0 and found["seconds"] > 0
    with pytest.raises(SystemExit, match="failed"):
        register.measured([sys.executable, "-c", "raise ValueError"])


def test_a_sample_of_intervals():
    found = intervals.measured(*intervals.made_table(1500, 0), "logistic", 0)
    assert found["away"] < 1e-6
    assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
    assert json.dumps(found)
