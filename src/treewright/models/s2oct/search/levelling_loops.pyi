from treewright.core.arrays import FloatArray, IntArray

def best_place(
    level: FloatArray,
    order: IntArray,
    number: IntArray,
    if_left: IntArray,
    if_right: IntArray,
    wanted: IntArray,
    worth: FloatArray,
    begins: IntArray,
    groups: IntArray,
    times: IntArray,
    low: IntArray,
    high: IntArray,
    counts: IntArray,
    price: float,
    least_gap: float,
) -> tuple[int, int, float]: ...
