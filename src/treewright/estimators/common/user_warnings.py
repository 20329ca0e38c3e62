"""Warnings that name the line of the user."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_user"]


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something, as of the line that called into treewright, however deep it is found out."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("treewright."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
