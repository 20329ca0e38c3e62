from treewright.core.arrays import BoolArray, FloatArray, IntArray

OPEN: int
INSIDE: int
CORNER: int
UNSURE: int

def grow(
    points: FloatArray,
    order: IntArray,
    first: int,
    state: IntArray,
    sure: BoolArray,
    corners: FloatArray,
    member: IntArray,
    limit: FloatArray,
    m: int,
    noise: FloatArray,
    map_back: FloatArray,
    least: float,
    work: float,
) -> tuple[int, int]: ...
def combine(
    points: FloatArray,
    rows: IntArray,
    first: int,
    corners: FloatArray,
    limit: FloatArray,
    m: int,
    noise: FloatArray,
    used: IntArray,
    share: FloatArray,
    work: float,
) -> int: ...
