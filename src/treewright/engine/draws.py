"""Random numbers of compiled loops: one stream, of one number, that is changed by every draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import IntArray
from treewright.core.compiled import njit

__all__ = ["Draws", "draw", "draw_below", "draws_of", "shuffle"]

Draws = NDArray[np.uint64]
"""State of the random numbers of compiled code: one number, changed by every draw. numba knows numpy's generators, but
takes half a minute to compile what uses them."""


def draws_of(rng: np.random.Generator) -> Draws:
    """A state to draw from."""
    return rng.integers(1, 2**63, 1, dtype=np.uint64)


@njit()
def draw(draws: Draws) -> float:
    """A number in [0, 1) (xorshift64*)."""
    x = draws[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    draws[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@njit()
def draw_below(n: int, draws: Draws) -> int:
    """A number from 0 to n - 1."""
    return min(int(draw(draws) * n), n - 1)


@njit()
def shuffle(order: IntArray, draws: Draws) -> None:
    """Put numbers into a random order."""
    for i in range(len(order) - 1, 0, -1):
        j = draw_below(i + 1, draws)
        order[i], order[j] = order[j], order[i]
