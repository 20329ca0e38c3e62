"""How a fit runs, which is nothing to what it looks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Conduct"]


@dataclass(frozen=True)
class Conduct:
    """Threads, seed, and who is told of progress."""

    threads: int = 1
    """Threads; what is found does not depend on them."""
    seed: int = 0
    """Seed of all that is drawn."""
    told: Callable[..., Any] | None = None
    """Told of each step of the method, in the method's own terms."""
