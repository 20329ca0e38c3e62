"""An experiment as data: data sets, samples, methods, metrics, and the rows that follow from them.

A row is one method in one setting on one draw of one sample of one data set. Functions of a specification are named by
reference when rows run in processes of their own, so they stand at the top level of a module.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from harness.instance import Data, Instance, everything, predictions
from treewright.data.columns_checked import AnyArray, listing
from treewright.exceptions import InvalidInputError

__all__ = [
    "SOLVER",
    "THREADS",
    "TIME_LIMIT",
    "DataSet",
    "Method",
    "Metric",
    "Outcome",
    "Row",
    "Sample",
    "Selection",
    "Source",
    "Specification",
    "Task",
    "Where",
    "parameters_hash",
    "plan",
]

Row = dict[str, Any]
"""A line of the store."""


class _Shared(Enum):
    """A parameter whose value is the specification's, so that the command line can change it for all methods."""

    TIME_LIMIT = "time_limit"
    THREADS = "threads"
    SOLVER = "solver"


TIME_LIMIT, THREADS, SOLVER = _Shared.TIME_LIMIT, _Shared.THREADS, _Shared.SOLVER


class Source(Protocol):
    """What data sets come from: a data set itself, or tables of a folder."""

    def sets(self, folder: Path | None) -> tuple[DataSet, ...]:
        """Return the data sets."""


@dataclass(frozen=True)
class DataSet:
    """A data set and how to get it."""

    name: str
    """Its name in rows."""
    load: Callable[..., Data]
    """``load(*paths, **parameters)`` returns :class:`~harness.Data`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Plain values, or :data:`TIME_LIMIT` and :data:`THREADS`; part of the key of a row."""
    paths: tuple[Path, ...] = ()
    """Files to load; not part of the key, but their hashes should be among the parameters."""
    keep: bool = False
    """Whether what was loaded is kept on disk for the next row: for what takes long to make."""

    def sets(self, folder: Path | None) -> tuple[DataSet, ...]:
        """Return the data set alone; it needs no folder."""
        return (self,)


@dataclass(frozen=True)
class Sample:
    """A protocol of sampling."""

    name: str
    """Its name in rows."""
    take: Callable[..., Instance]
    """``take(data, draw, **parameters)`` returns an :class:`~harness.Instance`; `draw` is the seed."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Plain values; part of the key of a row."""
    draws: int = 1
    """How many are taken: 0, 1, ... up to this number."""


@dataclass(frozen=True)
class Where:
    """What a method is run on; None is everything."""

    sets: tuple[str, ...] | None = None
    samples: tuple[str, ...] | None = None
    """Names."""
    draws: int | None = None
    """Only draws below this number."""
    spread: int | None = None
    """So many data sets, evenly spread over all of the specification."""

    def allows(self, data: str, sample: str, draw: int, names: Sequence[str]) -> bool:
        """Whether the method is run there; `names` are all data sets of the specification."""
        if self.spread is not None:
            # The sets that benchmarks have always taken: whole parts of evenly spaced numbers.
            places = np.linspace(0, len(names) - 1, min(self.spread, len(names)))
            if data not in {names[int(place)] for place in places}:
                return False
        return (
            (self.sets is None or data in self.sets)
            and (self.samples is None or sample in self.samples)
            and (self.draws is None or draw < self.draws)
        )


@dataclass(frozen=True)
class Method:
    """A way to fit a model. Only the call of ``fit`` is timed."""

    name: str
    """Its name in rows."""
    model: Callable[..., Any]
    """``model(**parameters)`` returns what has ``fit(X, y, **given)``: an estimator's class, or a function."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Plain values, or :data:`TIME_LIMIT`, :data:`THREADS` and :data:`SOLVER`; part of the key of a row."""
    setting: str = ""
    """Tells rows of the same method apart."""
    per_instance: Mapping[str, Callable[[Instance], Any]] = field(default_factory=dict)
    """Further parameters, computed from the instance."""
    on: Callable[[Instance], Instance] = everything
    """What the fit sees of the instance: all of it, :func:`~harness.labelled_rows`, ... It may raise
    :class:`~harness.SkipRow`."""
    given: tuple[str, ...] = ()
    """What else goes to ``fit``, from the instance: "totals", ..."""
    answer: Callable[[Any, Instance], AnyArray] = predictions
    """``answer(model, instance)`` returns predictions for the test rows; not timed."""
    where: Where = Where()
    """Where it is run."""


@dataclass(frozen=True)
class Outcome:
    """A fitted model and its predictions for the test rows."""

    model: Any
    answer: AnyArray


Metric = Callable[[Instance, Outcome], Mapping[str, Any]]
"""The whole instance and what came of it to named values; under "also", measures of by-products by their names."""


@dataclass(frozen=True)
class Specification:
    """An experiment.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from harness import Data, DataSet, Method, Sample, Specification, accuracy, partly_labelled, plan
    >>> def iris():
    ...     return Data(*load_iris(return_X_y=True))
    >>> small = Specification(
    ...     name="small",
    ...     data=(DataSet("iris", iris),),
    ...     samples=(Sample("simple", partly_labelled, {"share": 0.3}, draws=2),),
    ...     methods=tuple(Method("CART", DecisionTreeClassifier, {"max_depth": d}, f"depth {d}") for d in (1, 2)),
    ...     metrics=(accuracy,),
    ... )
    >>> [(task.draw, task.method.setting) for task in plan(small)]
    [(0, 'depth 1'), (0, 'depth 2'), (1, 'depth 1'), (1, 'depth 2')]
    """

    name: str
    """Its name in the store, and on the command line of a script with several."""
    data: tuple[Source, ...]
    """Data sets, and tables of a folder."""
    samples: tuple[Sample, ...]
    """How labels and test rows are drawn."""
    methods: tuple[Method, ...]
    """What is compared."""
    metrics: tuple[Metric, ...] = ()
    """What is measured besides time, memory and what a fit says of itself."""
    summary: tuple[Callable[[list[Row]], Any], ...] = ()
    """Each makes a table or text of all rows."""
    time_limit: float | None = None
    """Seconds of a fit, for parameters that are :data:`TIME_LIMIT`."""
    threads: int = 1
    """Cores of a fit, for parameters that are :data:`THREADS` and for numerical libraries."""
    solver: str = "highs"
    """Name of a solver, for parameters that are :data:`SOLVER`."""
    quick: Specification | None = None
    """A small one that tells in seconds whether everything runs."""

    def __post_init__(self) -> None:
        samples = [f"sample {sample.name!r}" for sample in self.samples]
        names = samples + [f"method {method.name!r} {method.setting!r}" for method in self.methods]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInputError(f"specification {self.name!r} has the {twice} twice")

    def with_quick(self, **changes: Any) -> Specification:
        """Return the specification with a quick one that differs in some fields."""
        return replace(self, quick=replace(self, name=f"{self.name}-quick", **changes))


@dataclass(frozen=True)
class Selection:
    """A part of a specification: names of methods, data sets and samples (empty for all), and the number of draws."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    draws: int | None = None

    def allows(self, row: Mapping[str, Any]) -> bool:
        """Whether a row, or the identity of one, belongs to the part."""
        return (
            (not self.only or row["method"] in self.only)
            and row["method"] not in self.skip
            and (not self.sets or row["data"] in self.sets)
            and (not self.samples or row["sample"] in self.samples)
            and (self.draws is None or row["draw"] < self.draws)
        )


@dataclass(frozen=True)
class Task:
    """A row that is to be made. The parameters of its method are plain values."""

    specification: str
    data: DataSet
    sample: Sample
    draw: int
    method: Method
    metrics: tuple[Metric, ...]
    threads: int = 1

    @property
    def identity(self) -> Row:
        """What tells the row from the others of its specification, but for parameters."""
        return {
            "specification": self.specification,
            "data": self.data.name,
            "sample": self.sample.name,
            "draw": self.draw,
            "method": self.method.name,
            "setting": self.method.setting,
        }

    @property
    def parameters(self) -> dict[str, Mapping[str, Any]]:
        """Parameters of data set, sample and method."""
        return {"data": self.data.parameters, "sample": self.sample.parameters, "method": self.method.parameters}

    @property
    def key(self) -> str:
        """Identity and hash of the parameters: a row of the same key need not be made again."""
        return "|".join([*map(str, self.identity.values()), parameters_hash(self.parameters)])


def plan(
    specification: Specification, folder: Path | None = None, selection: Selection | None = None
) -> tuple[Task, ...]:
    """Return the rows of a specification, in the order in which they are run.

    Parameters
    ----------
    specification : Specification
        The experiment.
    folder : Path or None
        The folder of tables, where the specification takes some from there.
    selection : Selection or None
        A part of it; None for all.

    Raises
    ------
    InvalidInputError
        If a name of the selection is unknown, a file is missing, or a parameter is not plain.
    """
    selection = selection or Selection()
    found = [one for source in specification.data for one in source.sets(folder)]
    data = [replace(one, parameters=_resolved(one.parameters, specification)) for one in found]
    names = [one.name for one in data]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"specification {specification.name!r} has the data set {twice!r} twice")
    _check_names(specification, selection, names)
    tasks = tuple(task for task in _tasks(specification, data, selection) if selection.allows(task.identity))
    for task in tasks:
        _canonical(task.parameters, "parameters")  # refuses what is not plain, before any work
    for path in dict.fromkeys(path for task in tasks for path in task.data.paths):
        if not path.exists():
            raise InvalidInputError(f"{path} is missing")
    return tasks


def _tasks(specification: Specification, data: Sequence[DataSet], selection: Selection) -> Iterator[Task]:
    names = [one.name for one in data]
    methods = [replace(one, parameters=_resolved(one.parameters, specification)) for one in specification.methods]
    for one in data:
        for sample in specification.samples:
            for draw in range(sample.draws if selection.draws is None else selection.draws):
                for method in methods:
                    if method.where.allows(one.name, sample.name, draw, names):
                        yield Task(
                            specification.name, one, sample, draw, method, specification.metrics, specification.threads
                        )


def _resolved(parameters: Mapping[str, Any], specification: Specification) -> dict[str, Any]:
    values = {TIME_LIMIT: specification.time_limit, THREADS: specification.threads, SOLVER: specification.solver}
    return {name: values[value] if isinstance(value, _Shared) else value for name, value in parameters.items()}


def _check_names(specification: Specification, selection: Selection, data: list[str]) -> None:
    methods = [method.name for method in specification.methods]
    for what, asked, known in (
        ("method", selection.only + selection.skip, methods),
        ("data set", selection.sets, data),
        ("sample", selection.samples, [sample.name for sample in specification.samples]),
    ):
        unknown = [name for name in asked if name not in known]
        if unknown:
            known_names = listing(dict.fromkeys(known), limit=100)
            raise InvalidInputError(f"specification {specification.name!r} has no {what} {unknown[0]!r}: {known_names}")


def parameters_hash(parameters: Mapping[str, Any]) -> str:
    """Hash of plain values that stays the same from run to run; 1 and 1.0 are equal, and so are tuples and lists.

    Examples
    --------
    >>> parameters_hash({"depth": 2, "share": 1.0}) == parameters_hash({"share": 1, "depth": 2})
    True
    """
    text = json.dumps(_canonical(parameters, "parameters"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _canonical(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _canonical(entry, f"{where}.{name}") for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(entry, where) for entry in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInputError(
        f"{where} is {value!r}; parameters are numbers, text, None, lists and mappings: let a function make the rest"
    )
