"""Compiled loops that the fits of a model may need, whatever the table: the first on a machine compiles them all."""

from __future__ import annotations

from importlib import import_module

from treewright.core.budget import Budget

__all__ = [
    "GRAPHS",
    "MACHINES",
    "MARGINS",
    "SELECTION",
    "have_compiled",
    "load_training",
]

GRAPHS = ("graph.edge_loops",)
MACHINES = ("models.octsvm.machine_loops", "models.octsvm.machines")
MARGINS = ("splits.hinge_loops", "splits.plane_programs", "models.svm1odt.walk", "models.svm1odt.crossing_loops")
SELECTION = ("models.svm1odt.selection.hull_loops",)


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
