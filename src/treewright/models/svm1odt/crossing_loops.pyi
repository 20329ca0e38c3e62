import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import FloatArray, IntArray
from treewright.models.svm1odt.crossing import Kept, Places, State

def begin(places: Places, state: State, kept: Kept, own: float) -> None: ...
def cross(
    places: Places,
    state: State,
    kept: Kept,
    first: int,
    last: int,
    steps: int,
    heat: float,
    own: float,
    chance: NDArray[np.uint64],
) -> None: ...
def release(
    places: Places, state: State, kept: Kept, node: int, share: float, limit: float, chance: NDArray[np.uint64]
) -> bool: ...
def settle(
    places: Places, size: FloatArray, labels: IntArray, price: float, fits: int, keep_root: bool, state: State
) -> bool: ...
