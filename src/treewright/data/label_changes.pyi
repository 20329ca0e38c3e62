from treewright.core.arrays import IntArray

def missed_along(
    begins: IntArray,
    groups: IntArray,
    times: IntArray,
    low: IntArray,
    high: IntArray,
    counts: IntArray,
    points: IntArray,
    old: IntArray,
    new: IntArray,
) -> IntArray: ...
