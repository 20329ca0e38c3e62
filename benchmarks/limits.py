"""Seconds that fits take at the edges of what they are made for, beside the limit they were given.

    python benchmarks/limits.py                 # all cases, each in a process of its own
    python benchmarks/limits.py tao-sparse c2rf-groups --profile

A line a case: the limit, seconds by the clock and by the processor of the fit, the largest
memory of the process, and how the fit ended. `--profile` prints besides where the time went. On a machine that others
keep busy `--processor` lets limits count the time of the processor, of which an idle machine takes about as much.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parent.parent))

Case = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""An estimator and what its `fit` is given."""


def sparse_rows(kind: str) -> Case:
    """A hundred thousand texts of five thousand words, twenty in each; labels follow a few hundred of them."""
    import treewright

    rng = np.random.default_rng(0)
    n, p, k = 100_000, 5000, 20
    words = (rng.pareto(1.0, n * k) * 20).astype(np.int64) % p
    X = sparse.csr_array((np.ones(n * k), words, np.arange(0, n * k + 1, k)), shape=(n, p))
    X.sum_duplicates()
    score = X @ (rng.normal(size=p) * (rng.random(p) < 0.1))
    y: Any = (score > np.median(score)).astype(np.int64)
    if kind == "TAORegressor":
        y = score + rng.normal(size=n)
    if kind == "LapTAOClassifier":
        y = np.where(rng.random(n) < 0.05, y, -1)
    return getattr(treewright, kind)(time_limit=5.0, random_state=0), (X, y), {}


def many_groups(kind: str, limit: float = 1.0, **parameters: Any) -> Case:
    """Three hundred thousand rows in two thousand groups with totals; one in thirty is labelled."""
    import treewright

    rng = np.random.default_rng(0)
    n = 300_000
    groups = rng.integers(0, 2000, n)
    X = rng.normal(size=(n, 8))
    truth = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=2000)[groups] > 0.5).astype(np.int64)
    known = rng.random(n) < 1 / 30
    totals = dict(enumerate({1: count} for count in np.bincount(groups[~known], truth[~known], 2000).astype(int)))
    model = getattr(treewright, kind)(time_limit=limit, random_state=0, **parameters)
    return model, (X, np.where(known, truth, -1)), {"totals": totals, "groups": groups}


def wide_rows(kind: str, **parameters: Any) -> Case:
    """Fifty rows of twenty thousand features."""
    import treewright

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 20_000))
    y = (X[:, 0] + 0.5 * rng.normal(size=50) > 0).astype(np.int64)
    model = getattr(treewright, kind)(time_limit=1.0, random_state=0, **parameters)
    if kind == "FairOCTClassifier":
        return model, (X, y), {"protected": np.arange(50) % 2}
    known = np.arange(50) % 2 == 0
    return model, (X, np.where(known, y, -1)), {"totals": {1: int(y[~known].sum())}}


def many_protected() -> Case:
    """Three hundred thousand rows of two thousand protected groups."""
    import treewright

    rng = np.random.default_rng(0)
    n = 300_000
    X = rng.normal(size=(n, 8))
    y = (X[:, 0] + X[:, 1] > rng.normal(size=n)).astype(np.int64)
    model = treewright.FairOCTClassifier(fairness_weight=1.0, time_limit=1.0, random_state=0)
    return model, (X, y), {"protected": rng.integers(0, 2000, n)}


CASES: dict[str, Callable[[], Case]] = {
    "tao-sparse": lambda: sparse_rows("TAOClassifier"),
    "tao-regressor-sparse": lambda: sparse_rows("TAORegressor"),
    "laptao-sparse": lambda: sparse_rows("LapTAOClassifier"),
    "c2rf-groups": lambda: many_groups("C2RFClassifier"),
    "s2oct-groups": lambda: many_groups("S2OCTClassifier"),
    "s2oct-groups-any": lambda: many_groups("S2OCTClassifier", max_split_features=None),
    "s2oct-groups-one": lambda: many_groups("S2OCTClassifier", max_split_features=1),
    "fair-wide": lambda: wide_rows("FairOCTClassifier", fairness_weight=1.0),
    "s2oct-wide-one": lambda: wide_rows("S2OCTClassifier", max_split_features=1),
    "fair-groups": many_protected,
}


def measure(name: str, profile: bool) -> None:
    """Fit one case in this process and print its line."""
    warnings.simplefilter("ignore")
    model, given, more = CASES[name]()
    profiler = cProfile.Profile()
    clock, processor = time.perf_counter(), time.process_time()
    if profile:
        profiler.enable()
    try:
        ended = model.fit(*given, **more).status_
    except Exception as error:
        ended = f"{type(error).__name__}: {error}"[:80]
    profiler.disable()
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:22s} {model.time_limit:5.0f} s {clock:7.1f} {processor:7.1f} {memory:6.1f} GiB  {ended}", flush=True)
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)


def main() -> None:
    """Measure the cases that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--profile", action="store_true", help="print where the time went")
    parser.add_argument("--processor", action="store_true", help="limits count processor time")
    parser.add_argument("--here", action="store_true", help="in this process, which other cases may have warmed")
    args = parser.parse_args()
    if unknown := [name for name in args.cases if name not in CASES]:
        parser.error(f"there is no case {unknown[0]}; there are {', '.join(CASES)}")
    if not args.here:
        print(f"{'case':22s} {'limit':>7s} {'clock':>7s} {'cpu':>7s} {'memory':>10s}  ended", flush=True)
    for name in args.cases or CASES:
        if args.here:
            if args.processor:  # before anything that looks at the clock is imported
                time.perf_counter = time.process_time
            measure(name, args.profile)
        else:
            more = [f"--{word}" for word in ("profile", "processor") if getattr(args, word)]
            subprocess.run([sys.executable, __file__, name, "--here", *more], check=False)


if __name__ == "__main__":
    main()
