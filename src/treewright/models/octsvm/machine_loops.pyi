from treewright.core.arrays import FloatArray
from treewright.engine.draws import Draws

def length(w: FloatArray, norm: int) -> float: ...
def range_within(w: FloatArray, u: FloatArray, limit: float, norm: int) -> tuple[float, float]: ...
def node_cost(
    f: FloatArray, sign: FloatArray, weight: FloatArray, left: FloatArray, right: FloatArray, r2: float
) -> float: ...
def least_along(
    a: FloatArray,
    b: FloatArray,
    sign: FloatArray,
    weight: FloatArray,
    left: FloatArray,
    right: FloatArray,
    r2: float,
    low: float,
    high: float,
) -> tuple[float, float]: ...
def machine(
    X: FloatArray, side: FloatArray, worth: FloatArray, limit: float, norm: int, draws: Draws
) -> tuple[FloatArray, float]: ...
