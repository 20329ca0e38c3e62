from treewright.core.arrays import FloatArray, IntArray

def best_cuts(
    values: FloatArray,
    order: IntArray,
    Z: FloatArray,
    y: IntArray,
    weight: FloatArray,
    size: FloatArray,
    n_classes: int,
    label_factor: float,
    spread_factor: float,
    own_shares: bool,
    least: float,
) -> tuple[FloatArray, IntArray]: ...
