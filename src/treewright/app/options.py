"""What is asked for beside a table: one object for Python and the command line."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

from treewright.app.spelling import Spelling
from treewright.core.names import option
from treewright.estimators.model import drawn_seed
from treewright.exceptions import InvalidInputError

__all__ = ["AskedMargin", "FitOptions", "TotalsOptions", "is_path", "knows_totals"]

_CHOICES: dict[str, tuple[Any, ...]] = {"totals_of": ("unlabeled", "all"), "spelling": (None, "merge", "keep")}


def is_path(value: object) -> bool:
    """Whether something that a job is given names a file."""
    return isinstance(value, str | os.PathLike)


def knows_totals(kind: type) -> bool:
    """Whether fits of an estimator that a job is given take totals."""
    return "totals" in inspect.signature(kind.fit).parameters  # type: ignore[attr-defined]


class AskedMargin(NamedTuple):
    """Totals that a job is asked for."""

    parameter: str
    """What asks for them."""
    column: str | None
    """Column of the groups; None for totals of all rows."""
    source: Any
    """Path of a file, mapping or frame."""


@dataclass(frozen=True, kw_only=True)
class TotalsOptions:
    """Totals that labels are to meet, and how names and cells of files are read; as :func:`label_table` takes them."""

    totals: Any = None
    groups: str | None = None
    margins: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()
    totals_of: str = "unlabeled"
    totals_tolerance: float = 0.0
    spelling: str | None = None
    na: Sequence[str] = ()
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                said = " or ".join(repr(value) for value in allowed)
                raise InvalidInputError(f"{option(name, getattr(self, name))}: expected {said}")
        object.__setattr__(self, "na", [str(mark) for mark in _listed(self.na)])

    @cached_property
    def asked_margins(self) -> list[AskedMargin]:
        """Totals of `totals`, and of each of `margins`; none is no totals."""
        if self.totals is None and self.groups is not None:
            totals = option("totals")
            raise InvalidInputError(f"{option('groups')} says by what {totals} are known; give {totals} too")
        own = [] if self.totals is None else [AskedMargin("totals", self.groups, self.totals)]
        pairs = self.margins.items() if isinstance(self.margins, Mapping) else self.margins
        margins = own + [AskedMargin("margins", column, source) for column, source in pairs]
        columns = [margin.column for margin in margins]
        twice = [column for column in columns if columns.count(column) > 1]
        if twice:
            raise InvalidInputError(f"{option('margins')}: totals by {twice[0]!r} are given twice")
        return margins

    @property
    def group_name(self) -> str:
        """The column of groups of one margin; several are named in their totals, see :meth:`named_margins`."""
        margins = self.asked_margins
        return (margins[0].column or "") if len(margins) == 1 else ""

    def named_margins(self, reached: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Totals asked and reached, of several margins with the column of each: ``by``, None for totals of all rows."""
        margins = self.asked_margins
        return [row | {"by": margins[row["margin"]].column} if "margin" in row else row for row in reached]

    def totals_words(self, whose: str) -> tuple[str, str]:
        """What totals there are, in words of how a report was made."""
        sources = [
            (os.path.basename(margin.source) if is_path(margin.source) else "as given")
            + (f", by {margin.column}" if margin.column is not None else "")
            for margin in self.asked_margins
        ]
        tolerance = f"; shares may be missed by {self.totals_tolerance:g}" if self.totals_tolerance else ""
        return "totals", f"{', and '.join(sources)}{whose}{tolerance}"

    @property
    def names(self) -> Spelling:
        """What becomes of names that are written alike."""
        return Spelling(self.spelling)


@dataclass(frozen=True, kw_only=True)
class FitOptions(TotalsOptions):
    """What is asked of a fit to a table."""

    target: str
    model: str | None = None
    estimator: Any = None
    weight: str | None = None
    protected: str | None = None
    allow_new_classes: bool = False
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    id: str | None = None
    max_depth: int | None = None
    time_limit: float | None = None
    solver: str | None = None
    gap: float | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    warm_start: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    suspects: bool = False
    """Whether labels that are probably wrong are asked for."""
    seed_drawn: bool = False
    """Whether nobody gave a seed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "drop", _listed(self.drop))
        if self.features is not None:
            object.__setattr__(self, "features", _listed(self.features))

    def with_seed(self) -> Self:
        """The same with a seed, drawn if none is given: what is drawn in the fit can be told and repeated."""
        if self.random_state is not None or "random_state" in self.settings:
            return self
        return replace(self, random_state=drawn_seed(None), seed_drawn=True)

    @property
    def totals_rules(self) -> dict[str, Any]:
        """Arguments of ``fit`` that say how totals are meant."""
        return {
            "totals_of": self.totals_of,
            "totals_tolerance": self.totals_tolerance,
            "allow_new_classes": self.allow_new_classes,
        }


def _listed(names: Iterable[Any] | str) -> list[Any]:
    """Several names; a text is one."""
    return [names] if isinstance(names, str) else list(names)
