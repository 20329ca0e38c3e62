"""Parameters of an estimator as the settings of its training."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

__all__ = ["settings_of"]

S = TypeVar("S")


def settings_of(estimator: Any, kind: type[S]) -> S:
    """Return the settings that the parameters of an estimator stand for; those it does not have keep their defaults.

    Examples
    --------
    >>> from treewright import TAOClassifier
    >>> from treewright.training.tao import TAOSettings
    >>> settings = settings_of(TAOClassifier(max_depth=3), TAOSettings)
    >>> settings.max_depth, settings.leaves
    (3, 'constant')
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: getattr(estimator, name) for name in names if hasattr(estimator, name)})
