"""How a fit runs, which is nothing to what it looks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Conduct"]


@dataclass(frozen=True)
class Conduct:
    """Threads, seed, and who is told of progress.

    Attributes
    ----------
    threads : int
        Threads; what is found does not depend on them.
    seed : int
        Seed of all that is drawn.
    told : callable or None
        Told of each step of the method, in the method's own terms.
    """

    threads: int = 1
    seed: int = 0
    told: Callable[..., Any] | None = None
