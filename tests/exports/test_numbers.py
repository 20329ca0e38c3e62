"""Databases read numbers as they are, to the last digit."""

import sqlite3

import duckdb
import numpy as np
import pytest

from treewright.exports.sql import DIALECTS

rng = np.random.default_rng(0)
NUMBERS = [
    *(rng.normal(size=20_000) * 10.0 ** rng.integers(-5, 6, 20_000)).tolist(),
    *(rng.normal(size=2000) * 10.0 ** rng.integers(-305, 305, 2000)).tolist(),
    *(0.0, 0.1, -0.1, 1 / 3, 48.5, 1e22, 2.0**53 + 2, 1e300, -1e300, 5e-324, 2.5e-310, 1.7976931348623157e308),
]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_numbers_are_read_exactly(dialect):
    base = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    for first in range(0, len(NUMBERS), 500):
        part = NUMBERS[first : first + 500]
        found = base.execute("SELECT " + ", ".join(map(DIALECTS[dialect].number, part))).fetchone()
        assert all(type(number) is float for number in found)
        assert list(found) == part
