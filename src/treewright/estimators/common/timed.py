"""Shared parameters and the course of a fit of everything that has a clock."""

from __future__ import annotations

import os
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from treewright.budget import Budget
from treewright.estimators.common.rows import fit_rows, publish
from treewright.exceptions import InvalidInputError

__all__ = ["TimedModel"]


class TimedModel:
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

    def _check_fit_rows(self, X: ArrayLike, y: ArrayLike | None, accept_sparse: str | bool = False) -> Any:
        """Validate the rows of a fit and note their number and names of features, for :meth:`_publish` to set."""
        rows, self._noted = fit_rows(self, X, y, accept_sparse)
        return rows

    @property
    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)

    def _seed(self) -> int:
        """Draw one number from ``random_state`` for everything random in the fit."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _publish(self, fitted: dict[str, Any], stale: Collection[str] = ()) -> None:
        """Set all fitted attributes, and what was noted of the features, in one step; warnings come after it."""
        publish(self, vars(self)["_noted"], fitted, ("_noted", *stale))
