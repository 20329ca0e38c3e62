import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import FloatArray, IntArray

def best_of_roots(
    X: FloatArray,
    order: IntArray,
    label: IntArray,
    keys: NDArray[np.uint64],
    gains: IntArray,
    targets: NDArray[np.uint64],
    need: FloatArray,
    root: int,
    first: int,
    last: int,
    two_levels: bool,
    least: int,
) -> tuple[int, IntArray, FloatArray]: ...
