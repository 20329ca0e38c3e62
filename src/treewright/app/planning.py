"""Which estimator is fitted to a table, with which parameters."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from treewright.app.options import FitOptions, knows_totals
from treewright.core.names import option
from treewright.exceptions import InvalidInputError
from treewright.models.registry import LABELLERS, SHORT_NAMES
from treewright.models.tao.estimator import TAOClassifier

__all__ = ["ESTIMATORS", "planned_estimators", "takes_parameter", "takes_unlabelled"]

_PARAMETERS = ("max_depth", "time_limit", "solver", "gap", "n_jobs", "random_state")


def planned_estimators(options: FitOptions, hidden: bool) -> tuple[Any, Any]:
    """The estimator that a job fits and, for the whole job, the tree that is to explain its labels."""
    if options.model is not None and options.model not in SHORT_NAMES and options.model not in LABELLERS:
        known = ", ".join(sorted([*SHORT_NAMES, *LABELLERS]))
        raise InvalidInputError(f"{option('model', options.model)}: there is no such model; known are {known}")
    name = options.model or ("totals" if hidden else "oct-h")
    job = options.model is None and hidden
    model = option("model")
    if options.estimator is not None and name not in LABELLERS:
        with_one = f"{option('model', 'totals')} or c2rf, or for no {model}"
        raise InvalidInputError(f"{option('estimator')}: {name} has none; it is for {with_one}")
    if options.suspects and not hasattr(SHORT_NAMES.get(name), "relabel_table"):
        able = ", ".join(name for name, kind in sorted(SHORT_NAMES.items()) if hasattr(kind, "relabel_table"))
        raise InvalidInputError(f"{option('suspects')}: {name} does not look for wrong labels; {able} do")
    if name in LABELLERS and options.time_limit is not None and not options.time_limit > 0:
        raise InvalidInputError(f"{option('time_limit', options.time_limit)}: expected seconds above 0 for time_limit")
    if not job:
        estimator, tree = _estimator(options, name), None
    else:
        tree = _estimator(options, "s2oct")
        tree._validate_params()  # its fit comes last, and is to refuse nothing by then
        tree._prepared(False)
        kept = {"unlabeled": tree.unlabeled, "random_state": options.random_state}
        estimator = LABELLERS[name](**_wrapped(options), **kept)
    margins = options.asked_margins
    if margins and not knows_totals(type(estimator)):
        kinds = {**SHORT_NAMES, **LABELLERS}
        able = ", ".join(other for other, kind in sorted(kinds.items()) if knows_totals(kind))
        asked = option(margins[0].parameter)
        raise InvalidInputError(f"{asked}: {name} does not know totals; models that do: {able}")
    if len(margins) > 1 and not estimator._crossing:
        able = ", ".join(other for other, kind in sorted(LABELLERS.items()) if kind._crossing)
        raise InvalidInputError(
            f"{option('margins')}: {name} takes totals of one margin; of several {option('model', able)} does, and a "
            f"fit without {model}"
        )
    if options.protected is not None and "protected" not in signature(estimator.fit).parameters:
        raise InvalidInputError(f"{option('protected')}: {name} does not know protected groups; fair-oct does")
    return estimator, tree


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "boosting": HistGradientBoostingClassifier,
    "extra-trees": lambda: ExtraTreesClassifier(200),
    "forest": lambda: RandomForestClassifier(200),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}
"""What ``estimator`` names."""


_ENSEMBLES = ("extra-trees", "forest")
"""Those that have members to weigh."""


def _wrapped(options: FitOptions, model: str = "totals") -> dict[str, Any]:
    """Parameters of who labels within totals: the estimator, whose probabilities are written and so to be true."""
    chosen, calibrated = options.estimator, {} if model == "c2rf" else {"calibrate": True}
    if chosen is not None and not isinstance(chosen, str):
        return {"estimator": clone(chosen), **calibrated}
    name = chosen or ("auto" if model == "totals" else "forest")
    if name not in ESTIMATORS:
        known = ", ".join(ESTIMATORS)
        raise InvalidInputError(
            f"{option('estimator', name)}: there is no such estimator; known are {known}, and those of scikit-learn"
        )
    if model == "c2rf" and name not in _ENSEMBLES:
        raise InvalidInputError(
            f"{option('estimator', name)}: c2rf weighs the members of an ensemble, {' or '.join(_ENSEMBLES)}; "
            f"{option('model', 'totals')} takes any estimator"
        )
    return {"estimator": ESTIMATORS[name](), **({} if name == "auto" else calibrated)}


def takes_unlabelled(estimator: Any) -> bool:
    """Whether rows without a label are of use to the estimator of a job; to TAO only if it has a teacher."""
    return takes_parameter(estimator, "unlabeled") and not (
        isinstance(estimator, TAOClassifier) and estimator.teacher is None
    )


def takes_parameter(estimator: Any, name: str) -> bool:
    """Whether the estimator of a job has a parameter."""
    return name in estimator.get_params(deep=False)


def _estimator(options: FitOptions, model: str) -> Any:
    kind: Any = (LABELLERS if model in LABELLERS else SHORT_NAMES)[model]
    accepted = kind().get_params(deep=False)
    given = {name: value for name in _PARAMETERS if (value := getattr(options, name)) is not None}
    if options.seed_drawn and "random_state" not in accepted:
        del given["random_state"]
    wrapped: dict[str, Any] = {}
    if model in LABELLERS:
        wrapped = _wrapped(options, model)
        given["estimator"] = wrapped.pop("estimator")
        for of_job in {"time_limit", "n_jobs"} - set(accepted):  # parts of labels left out, cores that score rows
            given.pop(of_job, None)
    for name, value in options.settings.items():
        setting = option("settings", {name: value})
        if name == "warm_start":
            raise InvalidInputError(f"{setting}: use {option('warm_start', 'MODEL')}")
        if name in given:
            raise InvalidInputError(f"{setting}: {name} is given twice")
        given[name] = value
    given = wrapped | given
    unknown = [name for name in given if name not in accepted]
    if unknown:
        without = f" (without {option('model')} the tree that explains the labels is an s2oct)"
        hint = "" if options.model is not None else without
        words = f"{model} has no parameter {unknown[0]!r}{hint}; it has {', '.join(sorted(accepted))}"
        raise InvalidInputError(words)
    if given.get("estimator") == "graph" and model == "laptao":
        raise InvalidInputError(
            f"{option('settings', {'estimator': 'graph'})}: such a model is the rows of its fit, which no model file "
            "holds; take tao or cart, or LapTAOClassifier in Python"
        )
    if given.get("n_estimators", 1) != 1 and model == "laptao":
        setting = option("settings", {"n_estimators": given["n_estimators"]})
        raise InvalidInputError(f"{setting}: a forest has no one tree to write; take LapTAOClassifier in Python")
    return kind(**given)
