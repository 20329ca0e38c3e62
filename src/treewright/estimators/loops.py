"""Compiled loops that the fits of a model may need, whatever the table: the first on a machine compiles them all."""

from __future__ import annotations

from importlib import import_module

from treewright.core.budget import Budget

__all__ = [
    "TOTALS",
    "TREES",
    "have_compiled",
    "load_training",
]

TREES = ("splits.descent_loops", "splits.newton_loops")
"""Alternating optimization, from which many searches start."""
TOTALS = ("data.label_changes", "totals.mending", "totals.shift")
"""Labels within totals."""


def have_compiled(loops: tuple[str, ...], budget: Budget) -> None:
    """Have loops of some modules compiled, which does not count to the time limit; Ctrl-C ends it as it does a fit."""
    if loops:
        from treewright.core.compiled import prepare  # imports numba

        with budget.stop_on_interrupt():
            prepare(loops, lambda: budget.interrupted)


def load_training(training: str, loops: tuple[str, ...]) -> None:
    """Import what trains a model, and its loops: that takes a second, which is no part of a time limit."""
    for name in (training, *loops) if training else loops:
        import_module(f"treewright.{name}")
