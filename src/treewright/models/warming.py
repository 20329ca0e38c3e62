"""Everything compiled before anybody waits for it."""

from __future__ import annotations

from treewright.exceptions import InvalidInputError
from treewright.models.registry import LABELLERS, MODELS

__all__ = ["warm_up"]


def warm_up() -> str:
    """Compile everything that fits and predictions of all models may need, and keep it.

    The first fit of a model on a machine compiles for up to 40 seconds. After this none does: in an image of a
    container, or for users who may not write where treewright is installed. What is kept is for processors like this
    one; others compile again.

    Returns
    -------
    str
        Where it is kept: in the folder that the environment variable ``NUMBA_CACHE_DIR`` names, or else where
        treewright is installed, or else with the user, in the first of them that can be written to. What is in one of
        the first two is used by all who can read it.

    Examples
    --------
    >>> from treewright import warm_up
    >>> kept_in = warm_up()
    """
    from treewright.core.compiled import prepare, where_kept  # imports numba

    folder = where_kept()
    if folder is None:
        raise InvalidInputError(
            "compiled loops cannot be kept: neither the folder of treewright nor one of the user can be written to. "
            "Set NUMBA_CACHE_DIR to a folder that can be"
        )
    kinds = [kinds[name] for kinds in (MODELS, LABELLERS) for name in kinds]
    prepare(sorted({name for kind in kinds for name in kind._loops}))
    return folder
