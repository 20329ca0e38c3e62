from treewright.core.arrays import FloatArray, IntArray
from treewright.engine.draws import Draws

def wander(
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    size: FloatArray,
    n_classes: int,
    gap: float,
    least: float,
    price: float,
    floor: float,
    normals: FloatArray,
    offsets: FloatArray,
    labels: IntArray,
    near: FloatArray,
    steps: int,
    heat: float,
    unit: float,
    draws: Draws,
) -> tuple[float, float]: ...
