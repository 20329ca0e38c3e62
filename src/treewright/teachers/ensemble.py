"""Ensembles of scikit-learn as members that vote: class numbers for rows, and the rows each member did not see."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.ensemble._forest import ForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from treewright.core.arrays import BoolArray, IntArray
from treewright.core.budget import Budget
from treewright.core.progress import stage
from treewright.data import Problem, Sample
from treewright.data.rows import errors_told, fitting_rows, is_frame
from treewright.exceptions import InvalidInputError
from treewright.optimize.settings import TeacherSettings

__all__ = ["FittedEnsemble", "Member", "Members", "fit_ensemble", "paper_forest", "seed_where_unset"]

_SEED = 2**31 - 1


def paper_forest(random_state: Any = None) -> BaggingClassifier:
    """The forest of the C2RF paper: 20 trees of depth 2, each on 20 % of the labelled rows without replacement.

    Parameters
    ----------
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    BaggingClassifier
        To be passed to :class:`treewright.C2RFClassifier`.

    Examples
    --------
    >>> from treewright import C2RFClassifier, paper_forest
    >>> model = C2RFClassifier(paper_forest(), class_prices=False, prefer="equal")
    """
    tree = DecisionTreeClassifier(max_depth=2)
    return BaggingClassifier(tree, n_estimators=20, max_samples=0.2, bootstrap=False, random_state=random_state)


def seed_where_unset(estimator: Any, seed: int) -> None:
    """Seed every ``random_state`` of a wrapped teacher or ensemble that is None, those of pipeline steps included."""
    given = estimator.get_params()
    names = [key for key in given if key == "random_state" or key.endswith("__random_state")]
    estimator.set_params(**{key: seed for key in names if given[key] is None})


@dataclass(frozen=True)
class Member:
    """A fitted classifier that votes."""

    classifier: Any
    """The fitted classifier."""
    numbers: IntArray
    """Class number in the model of each of its own classes."""
    features: IntArray | None = None
    """Features it is fitted on, None for all."""

    def votes(self, X: Any) -> IntArray:
        """Class number of each row."""
        rows = X if self.features is None else X[:, self.features]
        label = self.classifier.predict(rows)
        return self.numbers[np.searchsorted(self.classifier.classes_, label)]


@dataclass(frozen=True)
class Members:
    """The members of a fitted ensemble."""

    ensemble: Any
    """The fitted ensemble; None for a plain list."""
    members: list[Member]
    """Its members."""
    prepare: Any = None
    """The fitted steps of a pipeline before the ensemble; None without any."""

    def votes(self, X: Any) -> IntArray:
        """Class numbers, shape (n_rows, n_members), in the smallest type that holds them."""
        n_rows = X.shape[0]
        largest = max(int(member.numbers.max()) for member in self.members)
        votes = np.empty((n_rows, len(self.members)), dtype=np.min_scalar_type(largest))
        if self.prepare is not None and n_rows:
            X = self.prepare.transform(X)
            X = np.asarray(X) if is_frame(X) else X
        # Trees of scikit-learn work on single precision and would each convert the rows anew.
        forest = all(isinstance(member.classifier, DecisionTreeClassifier) for member in self.members)
        rows = X.astype(np.float32) if forest and not is_frame(X) else X
        for j, member in enumerate(self.members if n_rows else ()):
            with errors_told(member.classifier, rows):
                votes[:, j] = member.votes(rows)
        return votes


@dataclass(frozen=True)
class FittedEnsemble:
    """Members, and the rows that they were fitted on."""

    members: Members
    """The members."""
    labelled: Sample
    """The labelled rows, as the ensemble was given them."""
    unseen: BoolArray | None
    """Labelled rows that a member was not fitted on, where the ensemble tells."""
    cut_short: str = ""
    """What became of a forest that there was no time for, in words."""


@stage("ensemble")
def fit_ensemble(
    given: Any,
    problem: Problem,
    prefit: bool,
    seed: int,
    budget: Budget,
    settings: TeacherSettings = TeacherSettings(),
) -> FittedEnsemble:
    """Fit an ensemble that votes as a teacher, or the classifiers of a list, on the labelled rows; take it apart.

    Parameters
    ----------
    given : classifier, sequence of classifiers or of (name, classifier), or None
        None is a random forest of 200 trees, of fewer where these would take more than half of the time.
    problem : Problem
        The data.
    prefit : bool
        Whether `given` is fitted already.
    seed : int
        Seed of what has none of its own.
    budget : Budget
        Time for all that is done with the ensemble.
    settings : TeacherSettings
        Trees of the forest.
    """
    labelled = fitting_rows(problem, merged=given is None, rng=np.random.default_rng(seed))
    if isinstance(given, Sequence):
        return _from_list(given, labelled, problem.classes, prefit, seed)
    if given is None:
        ensemble = _forest(labelled, problem, seed, budget, settings)
        found = _taken_apart(ensemble, labelled, problem.classes, fitted_here=True)
        n_trees = len(found.members.members)
        most = settings.ensemble_trees
        words = f"the forest has {n_trees} of {most} trees, for want of time" if n_trees < most else ""
        return replace(found, cut_short=words)
    ensemble = given
    if not prefit:
        ensemble = _fitted(_seeded(ensemble, seed), labelled, problem.classes)
    if isinstance(ensemble, Pipeline):
        check_is_fitted(ensemble)
        found = _taken_apart(ensemble[-1], labelled, problem.classes, fitted_here=not prefit)
        prepare = ensemble[:-1] if len(ensemble.steps) > 1 else None
        return replace(found, members=Members(ensemble, found.members.members, prepare))
    return _taken_apart(ensemble, labelled, problem.classes, fitted_here=not prefit)


def _forest(
    labelled: Sample, problem: Problem, seed: int, budget: Budget, settings: TeacherSettings
) -> RandomForestClassifier:
    """A forest of as many trees as half of the time allows, the first ones of the whole forest; a few in any case."""
    n_trees = settings.ensemble_trees
    few = min(settings.ensemble_few_trees, n_trees)
    forest = RandomForestClassifier(few, random_state=seed, warm_start=True)
    began = time.perf_counter()
    forest = _fitted(forest, labelled, problem.classes)
    each = (time.perf_counter() - began) / few + settings.vote_seconds * problem.n_unlabelled
    if budget.interrupted:
        n_trees = few
    elif not budget.allows(2.0 * each * (n_trees - few)):
        n_trees = min(n_trees, few + int(0.5 * budget.remaining / each))
    if n_trees > few:
        forest = _fitted(forest.set_params(n_estimators=n_trees), labelled, problem.classes)
    return forest.set_params(warm_start=False)


def _from_list(given: Sequence[Any], labelled: Sample, classes: np.ndarray, prefit: bool, seed: int) -> FittedEnsemble:
    members = [item[1] if isinstance(item, tuple) else item for item in given]
    if not members:
        raise InvalidInputError("estimator is an empty list; pass an ensemble or a list of classifiers")
    for member in members:
        if isinstance(member, type) or not hasattr(member, "fit") or not is_classifier(member):
            raise InvalidInputError(f"estimator has a member that is no classifier: {member!r}")
    if prefit:
        for member in members:
            check_is_fitted(member)
    else:
        members = [_fitted(_seeded(member, seed + k), labelled, classes) for k, member in enumerate(members)]
    return FittedEnsemble(Members(None, [Member(m, _numbers(m.classes_, classes)) for m in members]), labelled, None)


def _seeded(estimator: Any, seed: int) -> Any:
    """A clone with a seed where it has none."""
    copy = clone(estimator)
    if isinstance(copy, Pipeline):
        seed_where_unset(copy, seed % _SEED)
    elif "random_state" in copy.get_params() and copy.get_params()["random_state"] is None:
        copy.set_params(random_state=seed % _SEED)
    return copy


def _fitted(estimator: Any, labelled: Sample, classes: np.ndarray) -> Any:
    with errors_told(estimator, labelled.X):
        return _fitted_to(estimator, labelled, classes)


def _fitted_to(estimator: Any, labelled: Sample, classes: np.ndarray) -> Any:
    assert labelled.y is not None
    y = classes[labelled.y]
    if np.all(labelled.weight == 1.0):
        return estimator.fit(labelled.X, y)
    if isinstance(estimator, Pipeline):
        step = f"{estimator.steps[-1][0]}__sample_weight"
        return estimator.fit(labelled.X, y, **{step: labelled.weight})
    if not has_fit_parameter(estimator, "sample_weight"):
        raise InvalidInputError(f"{type(estimator).__name__} takes no sample_weight, but sample_weight is not constant")
    return estimator.fit(labelled.X, y, sample_weight=labelled.weight)


def _taken_apart(ensemble: Any, labelled: Sample, classes: np.ndarray, fitted_here: bool) -> FittedEnsemble:
    """Members of a fitted ensemble, with the labelled rows that they did not see if it was fitted on these."""
    check_is_fitted(ensemble)
    parts: Any = getattr(ensemble, "estimators_", None)
    flat = np.ravel(parts) if isinstance(parts, np.ndarray) else parts  # which has a column a class in boosting
    if flat is None or not len(flat) or not all(is_classifier(part) for part in flat):
        raise InvalidInputError(
            f"{type(ensemble).__name__} is not an ensemble of classifiers: it has no estimators_ that vote. "
            "TotalsClassifier cuts any classifier at the totals"
        )
    # These hand numbers of classes to their members instead of labels.
    encoded = isinstance(ensemble, ForestClassifier | BaggingClassifier | VotingClassifier)
    features = getattr(ensemble, "estimators_features_", [None] * len(parts))
    members = []
    for part, own in zip(parts, features, strict=True):
        labels = ensemble.classes_[part.classes_.astype(np.int64)] if encoded else part.classes_
        everything = own is None or np.array_equal(own, np.arange(ensemble.n_features_in_))
        members.append(Member(part, _numbers(labels, classes), None if everything else np.asarray(own)))
    unseen = _unseen(ensemble, len(parts), len(labelled)) if fitted_here else None
    return FittedEnsemble(Members(ensemble, members), labelled, unseen)


def _numbers(labels: np.ndarray, classes: np.ndarray) -> IntArray:
    place = {label: number for number, label in enumerate(classes.tolist())}
    unknown = [label for label in labels.tolist() if label not in place]
    if unknown:
        raise InvalidInputError(f"the ensemble knows the class {unknown[0]!r}, which neither y nor the totals have")
    return np.array([place[label] for label in labels.tolist()], dtype=np.int64)


def _unseen(ensemble: Any, n_members: int, n_labelled: int) -> BoolArray | None:
    """Labelled rows out of each member's sample; None if there is no such thing."""
    samples = getattr(ensemble, "estimators_samples_", None)
    if samples is None:
        return None
    unseen = np.ones((n_labelled, n_members), dtype=bool)
    for j, rows in enumerate(samples):
        unseen[rows, j] = False
    return unseen if unseen.any() else None
