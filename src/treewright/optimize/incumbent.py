"""The best solution so far, as every search keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from treewright.optimize.formulation import Formulation

__all__ = ["Incumbent"]

S = TypeVar("S")


class Incumbent(Generic[S]):
    """The best feasible tree (or weighting) of a model so far.

    Parameters
    ----------
    model : Formulation
        Repairs and scores what is offered.
    floor : float or None
        Objective at which nothing better exists, by default the model's own bound, computed when it is first needed.
    on_better : callable or None
        Called with each better objective.
    on_bound : callable or None
        Called with each better bound that is found.

    Examples
    --------
    >>> from treewright.models.oct_h.objective import OCTH
    >>> from treewright.tree import Tree
    >>> model = OCTH(np.array([[0.0], [1.0]]), np.array([0, 1]), np.ones(2), n_classes=2, depth=1)
    >>> best = Incumbent(model)
    >>> best.offer(Tree.stump([1.0], 0.3, [[1.0, 0.0], [0.0, 1.0]]))
    True
    >>> best.objective, best.proven
    (0.0, True)
    """

    def __init__(
        self,
        model: Formulation[S],
        floor: float | None = None,
        on_better: Callable[[float], None] | None = None,
        on_bound: Callable[[float], None] | None = None,
    ) -> None:
        self.model = model
        self._floor = floor
        self.on_better = on_better
        self.on_bound = on_bound
        self.solution: S | None = None
        self.objective = np.inf

    @property
    def floor(self) -> float:
        """Objective at which nothing better exists."""
        if self._floor is None:
            self._floor = self.model.lower_bound()
        return self._floor

    @property
    def proven(self) -> bool:
        """Whether the bound is reached, so that the solution is optimal; no objective is below 0."""
        return bool(self.objective <= 1e-9 or self.objective <= self.floor + 1e-9)

    def raise_floor(self, bound: float) -> None:
        """Take note of a better bound."""
        if bound > self.floor:
            self._floor = bound
            if self.on_bound is not None:
                self.on_bound(bound)

    def offer(self, solution: S) -> bool:
        """Repair and score a solution; keep it if it is better."""
        feasible = self.model.repair(solution)
        return self.take(feasible, self.model.objective(feasible))

    def take(self, feasible: S, objective: float) -> bool:
        """Keep a feasible solution of known objective if it is better."""
        if objective >= self.objective - 1e-9:
            return False
        self.solution, self.objective = feasible, objective
        if self.on_better is not None:
            self.on_better(objective)
        return True
