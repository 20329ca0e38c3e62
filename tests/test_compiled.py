"""What numba compiles does not count to a time limit."""

import time

import numba

from treewright import compiled
from treewright.budget import Budget


def test_compiling_does_not_count(monkeypatch):
    budget = Budget(0.05)
    before = compiled.compiling_seconds()

    @numba.njit
    def loop(n):
        total = 0.0
        for i in range(n):
            total += i**0.5
        return total

    loop(3)
    spent = compiled.compiling_seconds() - before
    assert 0 < spent <= budget.elapsed
    left = budget.remaining
    assert left > 0.05 - (budget.elapsed - spent) - 1e-6
    loop(3)  # compiled by now
    assert compiled.compiling_seconds() - before == spent
    time.sleep(0.06)
    assert budget.over


def test_nested_and_running_compilations_count_once():
    clock = compiled._Clock()
    clock.on_start(None)
    clock.on_start(None)
    time.sleep(0.01)
    assert clock.total == 0.0 < clock.seconds()
    clock.on_end(None)
    clock.on_end(None)
    assert 0.01 <= clock.seconds() == clock.total < 5.0
