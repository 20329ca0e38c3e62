from treewright.core.arrays import FloatArray, IntArray

PERTURBED: float

def best_plane(
    X: FloatArray,
    sides: IntArray,
    price: FloatArray,
    limits: tuple[float, float, float, float],
    limit: float,
    normal: FloatArray,
    dual: FloatArray,
) -> tuple[float, float]: ...
