"""How a fit runs, which is nothing to what it looks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from treewright.optimize.settings import SearchSettings

if TYPE_CHECKING:
    from treewright.solvers import Progress, Solver

__all__ = ["Conduct"]


@dataclass(frozen=True)
class Conduct:
    """Threads, seed, who is told of progress, who proves optimality, where that is tried, and how much searches do."""

    threads: int = 1
    """Threads, those of a solver too; what searches find does not depend on them."""
    seed: int = 0
    """Seed of all that is drawn."""
    told: Callable[..., Any] | None = None
    """Told of each step: a `Progress` where there is a solver, else in the terms of the method."""
    solver: Solver | None = None
    """Takes over where a search ends without proof; refused before the search if it cannot take the model."""
    gap: float = 1e-4
    """Relative gap that counts as optimal."""
    search: SearchSettings = SearchSettings()
    """How much searches do."""

    @property
    def prover(self) -> Solver:
        """The solver, of a fit that has one."""
        assert self.solver is not None
        return self.solver

    def told_in_units(self, unit: float) -> Conduct:
        """The same, with an objective of 1 told as one of `unit`."""
        told = self.told
        if told is None:
            return self

        def heard(event: Progress) -> None:
            told(replace(event, objective=event.objective * unit, bound=event.bound * unit))

        return replace(self, told=heard)
