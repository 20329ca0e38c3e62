"""Shared parameters and the fit of everything that looks at neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from treewright.estimators.model import Given, Model
from treewright.estimators.parameters import parameter, parameters
from treewright.graph.neighbors import METHODS

__all__ = ["GraphModel"]


@parameters
class GraphModel(Model):
    """Mixin of the estimators that use a graph of the training rows.

    Parameters
    ----------
    gamma : float
        Price of differences along edges, relative to that of errors at labels.
    n_neighbors : int
        Neighbours of a row in the graph.
    perplexity : float
        Effective number of neighbours: how fast affinities fall with the distance.
    neighbors : {"auto", "exact", "approximate"}
        How neighbours are found.
    mutual : bool
        Whether edges need both rows to be neighbours of each other.
    graph_cache : path or None
        Folder that keeps graphs for the next fit on the same rows.

    Attributes
    ----------
    scaling_ : Scaling
        Scaling of the features to [0, 1].
    """

    n_neighbors: int = parameter(default=10, allowed=[Interval(Integral, 1, None, closed="left")])
    perplexity: float = parameter(default=5.0, allowed=[Interval(Real, 1, None, closed="left")])
    neighbors: str = parameter(default="auto", allowed=[StrOptions(set(METHODS))])
    mutual: bool = parameter(default=False, allowed=["boolean"])
    graph_cache: Any = parameter(default=None, allowed=[str, PathLike, None])

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
        return self._fit(Given(X, y, sample_weight, graph=graph))
