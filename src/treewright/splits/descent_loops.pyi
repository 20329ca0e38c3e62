from typing import Any

import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import BoolArray, FloatArray, IntArray

def walk_dense(
    X: NDArray[np.floating[Any]],
    rows: IntArray,
    node: IntArray,
    left: IntArray,
    right: IntArray,
    starts: IntArray,
    used: IntArray,
    weight: FloatArray,
    cut: FloatArray,
) -> None: ...
def walk_mixed(
    X: NDArray[np.floating[Any]],
    rows: IntArray,
    node: IntArray,
    left: IntArray,
    right: IntArray,
    starts: IntArray,
    used: IntArray,
    weight: FloatArray,
    cut: FloatArray,
    category: IntArray,
    listed: BoolArray,
    missing_left: BoolArray,
) -> None: ...
def walk_sparse(
    data: NDArray[np.floating[Any]],
    columns: NDArray[np.signedinteger[Any]],
    begins: NDArray[np.signedinteger[Any]],
    rows: IntArray,
    node: IntArray,
    left: IntArray,
    right: IntArray,
    normals: FloatArray,
    cut: FloatArray,
) -> None: ...
def levels_dense(X: NDArray[np.floating[Any]], rows: IntArray, used: IntArray, weight: FloatArray) -> FloatArray: ...
def levels_sparse(
    data: NDArray[np.floating[Any]],
    columns: NDArray[np.signedinteger[Any]],
    begins: NDArray[np.signedinteger[Any]],
    rows: IntArray,
    normal: FloatArray,
) -> FloatArray: ...
def descend(
    curvature: FloatArray, gradient: FloatArray, weights: FloatArray, alpha: float, passes: int, tolerance: float
) -> FloatArray: ...
