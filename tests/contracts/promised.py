"""What tests of the promises of estimators share: fits, and the table of what has a test."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.contracts.estimators import PROMISES, Fit, fits_of, run
from tests.estimators_list import SOLVED

RAN: dict[int, set[str]] = {number: set() for number in PROMISES}
"""Estimators for which a promise has a test."""


def each(promise: int, *only: str, given: list[Fit] | None = None) -> Any:
    """Parametrize over the fits that make a promise (or some of them), and note that there is a test of it."""
    chosen = [fit for fit in (fits_of(promise) if given is None else given) if not only or fit.name in only]
    RAN[promise] |= {fit.kind for fit in chosen}
    return pytest.mark.parametrize("fit", chosen, ids=lambda fit: fit.name)


def moved(data: dict[str, Any], factor: Any, shift: Any) -> dict[str, Any]:
    """The same data with features in other units."""
    p = data["X"].shape[1]
    return data | {"X": data["X"] * np.resize(factor, p) + np.resize(shift, p)}


def reordered(data: dict[str, Any], order: np.ndarray) -> dict[str, Any]:
    """The same rows in another order."""
    turned = {name: np.asarray(value)[order] for name, value in data.items() if name not in ("totals", "graph")}
    if "graph" in data:
        turned["graph"] = data["graph"][np.ix_(order, order)]
    return turned | {name: data[name] for name in ("totals",) if name in data}


@cache
def plain(fit: Fit) -> Any:
    """The fit as it stands, shared by the tests that hold another one against it."""
    return run(fit)


def in_other_units(fit: Fit) -> dict[str, Any]:
    return moved(fit.data(), [1e3, 1e-4, 1.0, 7.0], [5e4, 0.0, -3.0, 1e-2])


@cache
def elsewhere(fit: Fit) -> Any:
    """The fit on features of very different sizes; it need not prove anything."""
    limit = {"time_limit": 0.2} if fit.kind in SOLVED else {}
    return run(fit, in_other_units(fit), **limit)
