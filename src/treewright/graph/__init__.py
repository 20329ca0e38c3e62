"""Which points are near each other: neighbours, affinities, and labels smoothed along edges."""

from treewright.graph.affinity import GraphSettings, affinity_graph, neighbor_graph, perplexity_affinities
from treewright.graph.cache import FoundGraph, cached_graph
from treewright.graph.laplacian import check_graph, components, laplacian
from treewright.graph.neighbors import Neighbors, affordable_points, nearest_neighbors
from treewright.graph.smoothing import LabelSmoother, nearest_mean

__all__ = [
    "FoundGraph",
    "GraphSettings",
    "LabelSmoother",
    "Neighbors",
    "affinity_graph",
    "affordable_points",
    "cached_graph",
    "check_graph",
    "components",
    "laplacian",
    "nearest_mean",
    "nearest_neighbors",
    "neighbor_graph",
    "perplexity_affinities",
]
