from treewright.core.arrays import BoolArray, FloatArray

def newton_dense(
    X: FloatArray,
    right: BoolArray,
    weight: FloatArray,
    alpha: float,
    given: FloatArray,
    intercept: float,
    max_steps: int,
    tol: float,
    passes: int,
    flat: float,
    sufficient: float,
) -> tuple[FloatArray, float, float, int]: ...
