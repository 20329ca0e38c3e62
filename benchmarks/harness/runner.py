"""Rows of a specification: made in parallel, written as they come, never made twice."""

from __future__ import annotations

import os
import pickle
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from harness.instance import Data, SkipRow
from harness.machine import machine, peak_memory, source_commit, versions
from harness.metrics import fit_record
from harness.processes import how_it_ended, process_pool, scheduled
from harness.specification import DataSet, Outcome, Row, Task, parameters_hash
from harness.store import Store, latest
from treewright.core.files import replacing
from treewright.exceptions import InvalidInputError

__all__ = ["RowMade", "Run", "make_row", "run"]

_MOST_WARNINGS, _LONGEST = 3, 300


@dataclass(frozen=True)
class RowMade:
    """A row that has just been written, how many there are of how many, and the seconds since the start."""

    row: Row
    done: int
    total: int
    seconds: float


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    made: int
    known: int
    failures: int
    """Rows made now, rows that the store had, and rows made now that failed."""
    left: int
    """Rows not made, because of Ctrl-C."""


def run(
    tasks: Sequence[Task],
    store: Store,
    *,
    jobs: int = 1,
    kill_after: float | None = None,
    cache: Path | None = None,
    retry: bool = False,
    on_row: Callable[[RowMade], None] | None = None,
) -> Run:
    """Make the rows that the store does not have.

    Parameters
    ----------
    tasks : sequence of Task
        Rows, from :func:`~harness.plan`.
    store : Store
        Where rows go as they come.
    jobs : int
        Rows at a time, each in a process of its own; 0 for one after the other in this process.
    kill_after : float or None
        Seconds after which the process of a row is killed and the row has failed.
    cache : Path or None
        Folder for data sets that are to be kept; None for the store's name with ``.cache``.
    retry : bool
        Whether rows that failed are made again.
    on_row : callable or None
        Called after each row.

    Returns
    -------
    Run
        How it ended. Ctrl-C ends it early; all rows that were finished are in the store, and the next run goes on.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import harness
    >>> def iris():
    ...     return harness.Data(*load_iris(return_X_y=True))
    >>> small = harness.Specification(
    ...     name="small",
    ...     data=(harness.DataSet("iris", iris),),
    ...     samples=(harness.Sample("simple", harness.partly_labelled, {"share": 0.3}),),
    ...     methods=(harness.Method("CART", DecisionTreeClassifier, {"random_state": 0}, on=harness.labelled_rows),),
    ...     metrics=(harness.accuracy,),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = harness.Store(Path(folder) / "rows.jsonl")
    ...     first = run(harness.plan(small), store, jobs=0)
    ...     second = run(harness.plan(small), store, jobs=0)
    ...     (row,) = store.rows()
    >>> (first.made, second.made), row["method"], row["accuracy"] > 0.8
    ((1, 0), 'CART', True)
    """
    if jobs < 0:
        raise InvalidInputError(f"jobs is {jobs!r}; it must be 0 or more")
    have = {row["key"] for row in latest(store.rows()) if "key" in row and not (retry and "failure" in row)}
    todo = [task for task in tasks if task.key not in have]
    cache = cache if cache is not None else store.path.with_name(store.path.name + ".cache")
    writer = _Writer(store, len(todo), on_row)
    try:
        if jobs:
            _in_processes(todo, cache, jobs, kill_after, writer)
        else:
            for task in todo:
                writer.write(make_row(task, cache))
    except KeyboardInterrupt:
        pass  # what is left is said in the end
    return Run(writer.made, len(tasks) - len(todo), writer.failures, len(todo) - writer.made)


class _Writer:
    """Takes rows to the store, and counts."""

    def __init__(self, store: Store, total: int, on_row: Callable[[RowMade], None] | None) -> None:
        self.store, self.total, self.on_row = store, total, on_row
        self.began, self.made, self.failures = time.perf_counter(), 0, 0

    def write(self, row: Row) -> None:
        self.store.append(row)
        self.made, self.failures = self.made + 1, self.failures + ("failure" in row)
        if self.on_row is not None:
            self.on_row(RowMade(row, self.made, self.total, time.perf_counter() - self.began))


def _in_processes(todo: Sequence[Task], cache: Path, jobs: int, kill_after: float | None, writer: _Writer) -> None:
    """Rows as they come from processes; what Ctrl-C finds finished is written too."""
    calls = [scheduled(make_row, task, cache) for task in todo]
    pool = process_pool(jobs)
    try:
        pending: dict[Future[bytes], Task] = {}
        for call, task in zip(calls, todo, strict=True):
            pending[pool.schedule(*call, timeout=kill_after)] = task
        try:
            for future in as_completed(list(pending)):
                writer.write(_row_of(future, pending.pop(future)))
        except KeyboardInterrupt:
            for future, task in pending.items():
                # A process that was just starting may have died of the Ctrl-C itself, which says nothing of its row.
                if not future.cancel() and future.exception() is None:
                    writer.write(_row_of(future, task))
            raise
    finally:
        pool.stop()
        pool.join()


def _row_of(future: Future[bytes], task: Task) -> Row:
    """What a process answered, or that it did not."""
    error = future.exception()
    if error is None:
        try:
            row: Row = pickle.loads(future.result())
            return row
        except Exception as unreadable:  # a value of a class that this process cannot find
            error = unreadable
    return {**_head(task), "failure": how_it_ended(error)}


# ---------------------------------------------------------------------- one row


def make_row(task: Task, cache: Path | None = None) -> Row:
    """Make a row: load, sample, build, fit (timed), predict, measure.

    Parameters
    ----------
    task : Task
        The row.
    cache : Path or None
        Folder for data sets that are to be kept; None for none.

    Returns
    -------
    dict
        The row, with "skipped" and a reason, or "failure" and "traceback", if that is how it ended.
    """
    row = _head(task)
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(task.threads):
        warnings.simplefilter("always")
        try:
            _extend(row, _measured(task, cache))
        except SkipRow as skip:
            row["skipped"] = str(skip)
        except Exception as error:
            row["failure"] = f"{type(error).__name__}: {error}"
            row["traceback"] = traceback.format_exc(limit=-8)
    if row.get("status") == "interrupted":  # Ctrl-C ended the fit early: that is no result
        raise KeyboardInterrupt
    told = dict.fromkeys(f"{warning.category.__name__}: {warning.message}"[:_LONGEST] for warning in caught)
    if told:
        row["warnings"] = list(told)[:_MOST_WARNINGS]
    return row


def _head(task: Task) -> Row:
    """What is known of a row before it is made."""
    return {
        "key": task.key,
        **task.identity,
        "parameters": dict(task.method.parameters),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "threads": task.threads,
        "versions": versions(),
        "commit": source_commit(),
    }


def _measured(task: Task, cache: Path | None) -> Row:
    method = task.method
    data = _loaded(task.data, cache)
    instance = task.sample.take(data, task.draw, **task.sample.parameters)
    seen = method.on(instance)
    computed = {name: compute(instance) for name, compute in method.per_instance.items()}
    model = method.model(**method.parameters, **computed)
    lacking = [name for name in method.given if name not in seen.given]
    if lacking:
        raise InvalidInputError(f"the sample gives no {lacking[0]!r}, which {method.name!r} is to be given")
    given = {name: seen.given[name] for name in method.given}
    X, y = seen.X, seen.y
    wall, processor = time.perf_counter(), time.process_time()
    fitted = model.fit(X, y, **given)
    seconds, processor_seconds = time.perf_counter() - wall, time.process_time() - processor
    row = {"n": len(data.X), "p": data.X.shape[1], **instance.facts}
    _extend(row, {"seconds": seconds, "processor_seconds": processor_seconds, "memory_gib": peak_memory()})
    _extend(row, fit_record(fitted))
    outcome = Outcome(fitted, method.answer(fitted, seen))
    for metric in task.metrics:
        _extend(row, metric(instance, outcome))
    return row


def _extend(row: Row, more: Mapping[str, Any]) -> None:
    """Add values, none under a name that is taken; by-products of several metrics come together."""
    taken = sorted(set(row) & set(more) - {"also"})
    if taken:
        raise InvalidInputError(f"{taken[0]!r} is measured twice in one row; rename one of them")
    also = {**row.get("also", {}), **more.get("also", {})}
    row.update(more)
    if also:
        row["also"] = also


def _loaded(data: DataSet, cache: Path | None) -> Data:
    """The data set, from the cache if it is to be kept and was loaded before."""
    if not data.keep or cache is None:
        return data.load(*data.paths, **data.parameters)
    path = cache / f"{parameters_hash({'name': data.name, 'parameters': data.parameters})}.pickle"
    if path.exists():
        with path.open("rb") as file:
            return _checked(pickle.load(file), path)
    found = data.load(*data.paths, **data.parameters)
    cache.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        pickle.dump(found, file, protocol=pickle.HIGHEST_PROTOCOL)
    return found


def _checked(found: Any, path: Path) -> Data:
    if not isinstance(found, Data):
        raise InvalidInputError(f"{path} is not a data set; remove it")
    return found
