from treewright.core.arrays import BoolArray, FloatArray, IntArray

def plane_cost(f: FloatArray, stake: FloatArray, toll: FloatArray, epsilon: float, margin: float) -> float: ...
def line_minimum(
    f: FloatArray,
    rate: FloatArray,
    stake: FloatArray,
    toll: FloatArray,
    epsilon: float,
    kink: float,
    force: float,
    low: float,
    high: float,
) -> tuple[float, float]: ...
def pass_over(
    X: FloatArray,
    absent: BoolArray,
    rows: IntArray,
    stake: FloatArray,
    toll: FloatArray,
    epsilon: float,
    margin: float,
    alpha: float,
    largest: float,
    order: IntArray,
    normal: FloatArray,
    offset: float,
    cost: float,
) -> tuple[float, float]: ...
