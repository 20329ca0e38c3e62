"""What a teacher of a tree was: kept with the fitted model, apart from what teaches, which predictions do without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treewright.exceptions import ModelFileError

__all__ = ["TeacherMember", "TeacherRecord", "teacher_record_from_dict", "teacher_record_to_dict"]


@dataclass(frozen=True)
class TeacherMember:
    """One of the classifiers of a teacher."""

    name: str
    share: float
    """Of the scores of the teacher."""
    score: float
    """Share of pairs of labels left out that it orders rightly, NaN where that was not measured."""
    right: float = float("nan")
    """Share of labels left out that it finds by itself, likewise."""


@dataclass(frozen=True)
class TeacherRecord:
    """What a teacher was and how it scored.

    Attributes
    ----------
    name : str
        "auto", "labels", "probabilities", or the class of the estimator.
    members : tuple of TeacherMember
        What it was made of, and what else was compared on labels left out and is not needed; shares of these are 0.
    refined : float
        Share of the scores that come from classifiers fitted again on all rows, the unlabelled ones with the labels so
        far within the totals.
    right : float
        Share of labels left out that its members find together, NaN where that was not measured.

    Examples
    --------
    >>> print(TeacherRecord("auto", (TeacherMember("extra trees", 1.0, 0.91),), 0.25))
    auto: extra trees (orders 91.0 % of pairs of labels left out rightly), a quarter refined on its own labels
    """

    name: str
    members: tuple[TeacherMember, ...] = ()
    refined: float = 0.0
    right: float = float("nan")

    @property
    def chosen(self) -> list[str]:
        """Names of the members that it is made of."""
        return [member.name for member in self.members if member.share > 0]

    @property
    def score(self) -> float:
        """Share of pairs of labels left out that its members order rightly, on average; NaN if not measured."""
        known = [(m.share, m.score) for m in self.members if np.isfinite(m.score) and m.share > 0]
        return float(np.average([s for _, s in known], weights=[w for w, _ in known])) if known else float("nan")

    def __str__(self) -> str:
        if not self.members:
            return self.name
        parts, made_of = [], [m for m in self.members if m.share > 0]
        for m in made_of:
            share = "" if len(made_of) == 1 else f"{m.share:.0%} "
            known = f" (orders {m.score:.1%} of pairs of labels left out rightly)" if np.isfinite(m.score) else ""
            parts.append(f"{share}{m.name}{known}".replace("%)", " %)").replace("% of", " % of"))
        words = {0.25: "a quarter", 0.5: "half", 1.0: "all"}
        share = next((word for value, word in words.items() if abs(value - self.refined) < 0.05), f"{self.refined:.0%}")
        refined = f", {share} refined on its own labels" if self.refined >= 0.005 else ""
        return f"{self.name}: {', '.join(parts)}{refined}"


def teacher_record_to_dict(record: TeacherRecord | None) -> dict[str, Any] | None:
    """The record of a teacher as plain data; what was not measured is None."""
    if record is None:
        return None
    members = [
        {"name": m.name, "share": m.share, "score": _measured(m.score), "right": _measured(m.right)}
        for m in record.members
    ]
    return {"name": record.name, "members": members, "refined": record.refined, "right": _measured(record.right)}


def _measured(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def teacher_record_from_dict(state: Any) -> TeacherRecord | None:
    """The record of a teacher from plain data."""
    if state is None:
        return None
    try:
        # files of before have not all of it
        members = tuple(
            TeacherMember(str(m["name"]), float(m["share"]), _number(m["score"]), _number(m.get("right")))
            for m in state["members"]
        )
        return TeacherRecord(str(state["name"]), members, float(state["refined"]), _number(state.get("right")))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"teacher cannot be read: {error}") from None
