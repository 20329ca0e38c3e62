"""Random numbers of compiled loops: one stream, of one number, that is changed by every draw (``draws.pxd``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Draws", "draws_of"]

Draws = NDArray[np.uint64]
"""State of the random numbers of compiled loops."""


def draws_of(rng: np.random.Generator) -> Draws:
    """A state to draw from."""
    return rng.integers(1, 2**63, 1, dtype=np.uint64)
