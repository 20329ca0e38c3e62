r"""A tree of support vector machines as arrays, and what it pays.

Node t = 0, 1, ... has the children 2t + 1 and 2t + 2. A node that does not split is a leaf whose `label` is -1 or +1,
and nothing below it splits. Costs are in units of ``c1``.
"""

from __future__ import annotations

from typing import NamedTuple

from treewright.core.arrays import BoolArray, FloatArray

__all__ = ["NORMS", "Machines", "Prices"]

NORMS = {"l2": 0, "l1": 1, "linf": 2}
"""Norms as loops know them."""


class Prices(NamedTuple):
    """What a tree pays, in units of ``c1``."""

    depth: int
    r2: float
    """For a relabelled point, infinite for none."""
    r3: float
    """For a split."""
    limit: float
    """Length of normals at most."""
    norm: int


class Machines(NamedTuple):
    """The splits of all nodes of a complete tree."""

    w: FloatArray
    b: FloatArray
    split: BoolArray
    label: FloatArray
