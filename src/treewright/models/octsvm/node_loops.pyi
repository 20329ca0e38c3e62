from treewright.core.arrays import FloatArray
from treewright.engine.draws import Draws
from treewright.models.octsvm.machines import Machines, Prices

def total_cost(X: FloatArray, sign: FloatArray, weight: FloatArray, machines: Machines, prices: Prices) -> float: ...
def last_values(X: FloatArray, machines: Machines) -> FloatArray: ...
def improve_node(
    X: FloatArray,
    sign: FloatArray,
    weight: FloatArray,
    machines: Machines,
    prices: Prices,
    t: int,
    noise: float,
    draws: Draws,
) -> bool: ...
def kicked(
    X: FloatArray, sign: FloatArray, machines: Machines, prices: Prices, everywhere: bool, draws: Draws
) -> None: ...
