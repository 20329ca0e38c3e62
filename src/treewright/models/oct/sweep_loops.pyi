import numpy as np
from numpy.typing import NDArray

from treewright.core.arrays import FloatArray, IntArray
from treewright.models.oct.sweeps import Block, Rules, Sweeps

def split_costs(block: Block, rules: Rules) -> tuple[FloatArray, FloatArray]: ...
def cuts_of(block: Block, rules: Rules, column: int) -> tuple[IntArray, FloatArray, FloatArray]: ...
def solve_two(
    block: Block,
    rules: Rules,
    single: FloatArray,
    bounds: FloatArray,
    todo: NDArray[np.int64],
    sweeps: Sweeps,
    limit: float,
) -> bool: ...
def cut_of_split(block: Block, rules: Rules, column: int) -> int: ...
def restricted(block: Block, column: int, cut: int, lower: bool) -> Block: ...
