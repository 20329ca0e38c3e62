"""Small fits that have numba compile, and keep on disk, what tests would else compile within their time limits.

``python -m tests.warm_up NAME`` makes one of the lots: a minute on a new machine, seconds on others.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from scipy import sparse

import treewright as tw

_rng = np.random.default_rng(0)
X, y = _rng.random((40, 3)), np.arange(40) % 2
FEW = np.where(np.arange(40) < 20, y, -1)


def trees() -> None:
    """Alternating optimization, graphs, S2OCT, optimal trees of single features and of hyperplanes, relabelling."""
    for table in (X, X.astype(np.float32), sparse.csr_array(X)):
        tw.TAOClassifier(max_depth=2, random_state=0).fit(table, y)
    tw.TAORegressor(max_depth=2, random_state=0).fit(X, X[:, 0])
    tw.LapTAOClassifier(max_depth=2, random_state=0).fit(X, FEW)
    tw.SSCTClassifier(max_depth=2, random_state=0).fit(X, FEW)
    for most in ("auto", 1, None):
        tw.S2OCTClassifier(max_split_features=most, time_limit=1, random_state=0).fit(X, FEW, totals={0: 10, 1: 10})
    tw.OCTClassifier(max_depth=3, time_limit=1, random_state=0).fit(X, y)
    tw.OCTClassifier(max_depth=2, time_limit=1, random_state=0).fit(X, np.arange(40) % 3)
    tw.OCTHClassifier(max_depth=1, time_limit=5, random_state=0).fit(X[:16], y[:16])
    tw.OCTSVMClassifier(max_depth=1, time_limit=1, random_state=0).fit(X, y)
    tw.RESVMClassifier(time_limit=1, random_state=0).fit(X, y)


def margins() -> None:
    """SVM1-ODT, selected rows, mixed tables, graphs of sparse rows, totals."""
    tw.SVM1ODTClassifier(max_depth=1, selection="hull", time_limit=1, random_state=0).fit(X, y)
    # Few rows, so that the search gets to its end, and compiles all of it, on a machine that is busy too.
    tw.SVM1ODTClassifier(max_depth=1, epsilon=0.1, time_limit=10, random_state=0).fit(X[:12], y[:12])
    mixed = np.where(X > 0.9, np.nan, np.floor(3 * X))
    tw.TAOClassifier(max_depth=2, categorical_features=[0], random_state=0).fit(mixed, y)
    tw.LapTAOClassifier(max_depth=2, random_state=0).fit(sparse.csr_array(X), FEW)
    tw.TotalsClassifier(random_state=0).fit(X, FEW, totals={0: 10, 1: 10})


LOTS: dict[str, Callable[[], None]] = {"trees": trees, "margins": margins}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    LOTS[sys.argv[1]]()
