"""Shared parameters and the course of a fit of everything that has a clock."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from treewright.budget import Budget
from treewright.estimators.common.recorded import RecordedModel
from treewright.exceptions import InvalidInputError
from treewright.training.conduct import Conduct

__all__ = ["TimedModel"]


class TimedModel(RecordedModel):
    """Mixin of the estimators whose fits keep a time limit and may be interrupted."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    time_limit: float | None
    n_jobs: int | None
    verbose: int
    random_state: Any

    def _start_clock(self) -> Budget:
        """Check parameters before anything else, and start the clock."""
        budget = Budget(self.time_limit)
        self._validate_params()  # type: ignore[attr-defined]
        if self.n_jobs == 0:
            raise InvalidInputError("n_jobs must not be 0; use None for one thread, -1 for all cores")
        return budget

    @property
    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)

    def _conduct(self, told: Callable[..., Any] | None = None) -> Conduct:
        """Threads, seed, and who is told of progress, if ``verbose``."""
        return Conduct(self._threads, self._seed(), told if self.verbose else None)

    def _seed(self) -> int:
        """Draw one number from ``random_state`` for everything random in the fit."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))
