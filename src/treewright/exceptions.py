"""Every error treewright raises on purpose, and the way it warns.

Each is also a builtin exception, so callers who do not know treewright can catch what they expect.
"""

from __future__ import annotations

import sys
import warnings

__all__ = [
    "AlikeNamesWarning",
    "ForgottenMarkWarning",
    "InfeasibleTotalsError",
    "InvalidInputError",
    "MissingLicenseError",
    "ModelFileError",
    "PackageNotInstalledError",
    "SolverError",
    "SolverNotInstalledError",
    "TreewrightError",
    "UnsoundModelWarning",
    "UnsupportedProgramError",
    "warn_user",
]


class TreewrightError(Exception):
    """Root of all treewright errors."""


class InvalidInputError(TreewrightError, ValueError):
    """Data or a parameter cannot be used; the text names the value and the remedy."""


class InfeasibleTotalsError(TreewrightError, ValueError):
    """Class totals contradict the data or one another; the text says which numbers clash."""


class ModelFileError(TreewrightError, ValueError):
    """A model file is malformed, truncated, hostile or from an unknown version."""


class SolverError(TreewrightError, RuntimeError):
    """A solver failed in a way that no input explains."""


class PackageNotInstalledError(TreewrightError, ImportError):
    """A Python package that was asked for is missing; the text says how to install it."""


class SolverNotInstalledError(PackageNotInstalledError):
    """The Python package of a solver is missing."""


class MissingLicenseError(TreewrightError, RuntimeError):
    """The solver is installed, but its licence is missing, expired or too small for the program."""


class UnsupportedProgramError(TreewrightError, ValueError):
    """The program needs something that the solver lacks; the text names solvers that can."""


class UnsoundModelWarning(UserWarning):
    """A model was asked for as it is printed, although its optimum need not be what it claims to be."""


class ForgottenMarkWarning(UserWarning):
    """A label looks like a mark of rows without one, and is taken for a class."""


class OtherNumbersWarning(UserWarning):
    """Numbers of new rows are beyond those of the fit, or shifted: in other units, of another year or population."""


class AlikeNamesWarning(UserWarning):
    """Classes or groups have names that differ in capitals, blanks or marks on letters alone."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something, as of the line that called into treewright, however deep it is found out."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("treewright."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
