from typing import Any

from numpy.typing import NDArray

from treewright.core.arrays import FloatArray, IntArray

def closest_dense(X: NDArray[Any], rows: IntArray, found: IntArray, index: IntArray, distance: FloatArray) -> None: ...
def closest_sparse(
    data: NDArray[Any],
    columns: NDArray[Any],
    begins: NDArray[Any],
    rows: IntArray,
    found: IntArray,
    index: IntArray,
    distance: FloatArray,
) -> None: ...
def near_sparse(
    data: NDArray[Any],
    columns: NDArray[Any],
    begins: NDArray[Any],
    by_data: NDArray[Any],
    by_rows: NDArray[Any],
    by_begins: NDArray[Any],
    square: FloatArray,
    rows: IntArray,
    found: IntArray,
) -> None: ...
def affinities(distance: FloatArray, entropy: float, tolerance: float, out: FloatArray) -> None: ...
def finish(diagonal: FloatArray, gamma: float, P: FloatArray, Q: FloatArray) -> FloatArray: ...
def advance(
    step: FloatArray, diagonal: FloatArray, P: FloatArray, Q: FloatArray, Z: FloatArray, R: FloatArray
) -> tuple[FloatArray, FloatArray]: ...
def turn(keep: FloatArray, diagonal: FloatArray, R: FloatArray, P: FloatArray) -> None: ...
