"""Many examples of one test in a loop: what pytest does around a case costs more than a body of milliseconds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def looped(names: str, examples: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, but one case; a failure says with which example it came.

    Fixtures are those of the one case: a body must not rely on a new folder or on what an earlier example has patched.
    """
    keys, table = [name.strip() for name in names.split(",")], list(examples)

    def of(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            assert table, f"{test.__name__} has no examples"
            for example in table:
                given = dict(zip(keys, example if len(keys) > 1 else (example,), strict=True))
                try:
                    test(*args, **fixtures, **given)
                except BaseException as error:
                    error.add_note(", ".join(f"{key} = {repr(value)[:200]}" for key, value in given.items()))
                    raise

        assert set(keys) <= set(signature.parameters), f"{test.__name__} does not take {names}"
        left = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return of
