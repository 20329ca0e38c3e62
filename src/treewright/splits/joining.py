"""Linear programs of many points, most of which never matter: points join when a solution misses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from treewright.core.arrays import BoolArray, FloatArray, IntArray
from treewright.core.budget import Budget

__all__ = ["Joined", "solve_joining"]

S = TypeVar("S")


class Joined(NamedTuple, Generic[S]):
    """What a program ended with."""

    solution: S | None
    """Its last solution, None if there is none."""
    complete: bool
    """Whether the solution misses no point outside of the program: it is then that of all points."""


def solve_joining(
    solve: Callable[[float], S | None],
    join: Callable[[IntArray], None],
    short: Callable[[S], FloatArray],
    inside: BoolArray,
    first: IntArray,
    *,
    at_a_time: int,
    rounds: int,
    budget: Budget,
) -> Joined[S]:
    """Solve the program of a node, let points that its solution misses join, and again, until it misses none.

    Parameters
    ----------
    solve : callable
        Seconds that are left to the solution of the program as it is, None if there is none.
    join : callable
        Puts points into the program, by their numbers.
    short : callable
        How far each point falls short of what it is to have in a solution; above 0 it is missed.
    inside : ndarray of bool, shape (n_points,)
        Which points are in the program; changed in place.
    first : ndarray of int
        Points to begin with, where they are not inside.
    at_a_time : int
        Points that join at a time, those missed most.
    rounds : int
        Most programs that are solved.
    budget : Budget
        Ends the work early.

    Examples
    --------
    The largest number is found without looking at all of them:

    >>> from treewright.solvers.linear import LinearProgram
    >>> numbers = np.arange(1000.0)
    >>> program = LinearProgram([1.0], 0.0, np.inf)
    >>> inside = np.zeros(1000, dtype=bool)
    >>> found = solve_joining(
    ...     lambda seconds: program.solve(seconds).x,
    ...     lambda some: program.add_rows(np.ones((len(some), 1)), numbers[some], np.inf),
    ...     lambda x: numbers - x[0],
    ...     inside, np.arange(2), at_a_time=10, rounds=5, budget=Budget(),
    ... )
    >>> found.complete, found.solution.tolist(), int(inside.sum())
    (True, [999.0], 12)
    """
    found: S | None = None
    joining = first[~inside[first]]
    for _ in range(rounds):
        if len(joining):
            join(joining)
            inside[joining] = True
        found = solve(budget.remaining)
        if found is None or budget.over:
            return Joined(found, False)
        lacking = np.where(inside, 0.0, short(found))
        missed = np.flatnonzero(lacking > 0)
        if not len(missed):
            return Joined(found, True)
        joining = missed[np.argsort(-lacking[missed], kind="stable")][:at_a_time]
    return Joined(found, False)
