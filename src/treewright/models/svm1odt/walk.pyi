from treewright.core.arrays import FloatArray, IntArray

def wander(
    X: FloatArray,
    y: IntArray,
    weight: FloatArray,
    price: FloatArray,
    n_classes: int,
    epsilon: float,
    margin: float,
    alpha: float,
    largest: float,
    free: IntArray,
    planes: IntArray,
    F: FloatArray,
    normals: FloatArray,
    offsets: FloatArray,
    labels: IntArray,
    steps: int,
    heat: float,
    cheap: float,
    seed: int,
) -> float: ...
