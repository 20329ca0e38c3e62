"""One thread for the products of a fit, so that how many there are changes no result."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """Libraries with threads of their own, looked for again once modules, which load libraries, were imported.

    To look for them takes 10 ms and more, as long as a small fit.
    """
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Within it, libraries of linear algebra and of parallel loops have one thread.

    Examples
    --------
    >>> with one_thread():
    ...     from threadpoolctl import threadpool_info
    ...     {library["num_threads"] for library in threadpool_info()} <= {1}
    True
    """
    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limited
