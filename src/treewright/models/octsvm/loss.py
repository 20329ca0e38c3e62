r"""What a point pays at a split, and how long a normal is.

With the margin :math:`m = y f(x)`, y being -1 or +1, a point is relabelled where that is cheaper:

.. math:: \varphi(m) = \min(c_1 [1 - m]^+,\ c_2 + c_1 [1 + m]^+) ,

which is the case for :math:`m < -c_2 / (2 c_1)` if :math:`c_2 < 2 c_1`, and for :math:`m < 1 - c_2 / c_1` otherwise.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray

__all__ = ["DUAL", "Norm", "relabelling_margin", "relabelled_points", "normal_lengths", "octsvm_split_loss"]

Norm = Literal["l2", "l1", "linf"]

DUAL: dict[Norm, Norm] = {"l2": "l2", "l1": "linf", "linf": "l1"}
"""The norm with which ``|omega @ x| <= norm(omega) * dual(x)``."""

_ORDER = {"l2": 2, "l1": 1, "linf": np.inf}


def normal_lengths(rows: FloatArray, norm: Norm) -> FloatArray:
    """Norm of each normal of an OCTSVM.

    Examples
    --------
    >>> [normal_lengths(np.array([[3.0, -4.0]]), norm).tolist() for norm in ("l2", "l1", "linf")]
    [[5.0], [7.0], [4.0]]
    """
    return np.asarray(np.linalg.norm(rows, _ORDER[norm], axis=1))


def relabelling_margin(c1: float, c2: float) -> float:
    """Margin below which relabelling is cheaper in OCTSVM, 0 or less; ``-inf`` where it is not allowed.

    Examples
    --------
    >>> relabelling_margin(1.0, 1.0), relabelling_margin(1.0, 2.5), relabelling_margin(1.0, np.inf)
    (-0.5, -1.5, -inf)
    """
    ratio = c2 / c1
    return -ratio / 2 if ratio < 2 else 1 - ratio


def relabelled_points(margin: FloatArray, c1: float, c2: float) -> BoolArray:
    """Whether OCTSVM relabels points with these margins."""
    return np.asarray(margin < relabelling_margin(c1, c2))


def octsvm_split_loss(margin: FloatArray, c1: float, c2: float) -> FloatArray:
    """What points with these margins pay at a split of an OCTSVM.

    Examples
    --------
    >>> octsvm_split_loss(np.array([1.5, 0.5, 0.0, -0.75, -3.0]), c1=2.0, c2=2.0).tolist()
    [0.0, 1.0, 2.0, 2.5, 2.0]
    """
    kept, flipped = c1 * np.maximum(0.0, 1.0 - margin), c2 + c1 * np.maximum(0.0, 1.0 + margin)
    return np.asarray(np.minimum(kept, flipped))
