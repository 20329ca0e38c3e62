from treewright.core.arrays import FloatArray, IntArray

def mend(
    scores: FloatArray,
    labels: IntArray,
    first: IntArray,
    group: IntArray,
    times: IntArray,
    low: IntArray,
    high: IntArray,
    of_one: IntArray,
    most: int,
) -> None: ...
