"""TAO with its own node solver against TAO whose nodes call LIBLINEAR, in one run.

Usage: python benchmarks/tao.py [--small] [--passes 5] [--depth 8] [--alpha 1.0] [--tol 1e-2]

Both start from the same CART tree, make the same number of passes on one thread, with the same exact thresholds and the
same rule of acceptance: only the direction of a node differs. LIBLINEAR starts from zero each time, as scikit-learn's
interface has it, at a tolerance of 1e-2, which is kind to it (its default is 1e-4). Objectives are those of the trees
that the fits return. Compilation is not timed; it happens once in a process, or once on a machine with numba's cache.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from treewright.budget import Budget
from treewright.search.grow.starts import cart_start
from treewright.search.improve.leaves import ClassLeaves
from treewright.search.improve.tao import Direction, alternate_nodes, logistic_node
from treewright.tree import predict_labels

FULL = {"100 000 x 18": (100_000, 18, 12), "20 000 x 784": (20_000, 784, 60)}
SMALL = {"10 000 x 18": (10_000, 18, 12), "2 000 x 784": (2_000, 784, 60)}


def table(n: int, p: int, informative: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ten classes of three clusters each, features scaled to [0, 1], twice as many rows as asked for."""
    X, y = make_classification(
        2 * n, p, n_informative=informative, n_classes=10, n_clusters_per_class=3, class_sep=1.5, random_state=0
    )
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return np.ascontiguousarray(X, dtype=np.float32), y.astype(np.int64)


def liblinear_node(tol: float) -> Direction:
    def direction(
        X: Any, goes_right: np.ndarray, weight: np.ndarray, alpha: float, start: tuple[np.ndarray, float] | None
    ) -> tuple[np.ndarray, float]:
        model = LogisticRegression(C=1 / alpha, l1_ratio=1, solver="liblinear", tol=tol, random_state=0, max_iter=100)
        model.fit(X, goes_right, sample_weight=weight)
        return model.coef_[0].astype(np.float64), float(model.intercept_[0])

    return direction


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a tenth of the rows, for a quick look")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-2, help="of LIBLINEAR")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    solvers = {"ours": logistic_node, "LIBLINEAR": liblinear_node(args.tol)}
    print(f"depth {args.depth}, alpha {args.alpha:g}, {args.passes} passes, one thread, LIBLINEAR's tol {args.tol:g}")
    for name, (n, p, informative) in (SMALL if args.small else FULL).items():
        X, y = table(n, p, informative)
        train, test, weight = X[:n], X[n:], np.ones(n)
        with threadpool_limits(1):
            start = cart_start(train, y[:n, None].astype(float), weight, args.depth, True, 0, Budget())
            assert start is not None
            alternate_nodes(start, train[:500], ClassLeaves(y[:500], weight[:500], 10), 1.0, max_iter=1)  # compiles
            print(f"{name}: CART objective {args.alpha * len(start.branches) + error(start, train, y[:n]) * n:.1f}")
            seconds = {}
            for solver, direction in solvers.items():
                leaves = ClassLeaves(y[:n], weight, 10)
                began = time.perf_counter()
                result = alternate_nodes(start, train, leaves, args.alpha, max_iter=args.passes, direction=direction)
                seconds[solver] = time.perf_counter() - began
                print(
                    f"  {solver:10} {seconds[solver]:8.2f} s  objective {result.objective:9.1f}  "
                    f"test error {error(result.tree, test, y[n:]):.4f}  passes {result.n_iter}",
                    flush=True,
                )
        print(f"  time ratio {seconds['LIBLINEAR'] / seconds['ours']:.1f}", flush=True)


def error(tree: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(predict_labels(tree, X) != y))


if __name__ == "__main__":
    main()
