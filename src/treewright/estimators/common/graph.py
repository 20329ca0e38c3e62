"""Shared parameters and the fit of everything that looks at neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.budget import Budget
from treewright.estimators.common.rows import fit_rows
from treewright.estimators.common.timed import TimedModel
from treewright.graph.neighbors import METHODS
from treewright.training.record import FitRecord

__all__ = ["GraphModel"]


class GraphModel(TimedModel):
    """Mixin of the estimators that use a graph of the training rows."""

    _sometimes: ClassVar[tuple[str, ...]] = ()
    """Attributes that only some fits have."""
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "neighbors": [StrOptions(set(METHODS))],
        "mutual": ["boolean"],
        "graph_cache": [str, PathLike, None],
    }

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, graph: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled and unlabelled rows; a scipy sparse array too, if the model is a tree or takes them.
        y : array-like of shape (n_samples,) or, for several outputs, (n_samples, n_outputs)
            Labels or targets; unlabelled rows have the mark ``unlabeled``, NaN or None, in all outputs.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows, labelled or not; 0 leaves a row out, 2 counts it twice.
        graph : sparse array or array-like of shape (n_samples, n_samples), or None
            Affinities of the rows, symmetric, degrees about 1; None for those of nearest neighbours.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        budget = self._start_clock()
        self._check_model()
        rows, noted = self._fit_rows(X, y)
        record, fitted = self._trained(rows, y, sample_weight, graph, budget, noted)
        self._publish(record.closed(budget), noted | fitted, self._sometimes)
        return self

    def _check_model(self) -> None:
        """Refuse what cannot be before the data is looked at."""

    def _fit_rows(self, X: ArrayLike, y: ArrayLike | None) -> tuple[Any, dict[str, Any]]:
        """Validated rows, and what is noted of them."""
        return fit_rows(self, X, y, "csr" if get_tags(self).input_tags.sparse else False)

    def _trained(
        self,
        rows: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        graph: Any,
        budget: Budget,
        noted: dict[str, Any],
    ) -> tuple[FitRecord, dict[str, Any]]:
        """The record of a fit, and the fitted attributes without those that were noted of the rows."""
        raise NotImplementedError
