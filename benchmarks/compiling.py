"""How long the first fits of each model compile: each model in a process and with a fresh copy of the package.

    python benchmarks/compiling.py [MODEL ...]

For each model three fits, of tables that differ in rows, features, classes, weights and labels: processor seconds that
numba compiles in each of them, beside those that it takes in all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import treewright

_MODELS: dict[str, dict[str, Any]] = {
    "BinOCTClassifier": {"max_depth": 2, "time_limit": 5.0},
    "C2RFClassifier": {"time_limit": 5.0},
    "FairOCTClassifier": {"max_depth": 2, "time_limit": 5.0},
    "LapSVMClassifier": {},
    "LapTAOClassifier": {"max_depth": 2},
    "OCTClassifier": {"max_depth": 2, "time_limit": 5.0},
    "OCTHClassifier": {"max_depth": 2, "time_limit": 5.0},
    "OCTSVMClassifier": {"max_depth": 2, "time_limit": 5.0},
    "RESVMClassifier": {"time_limit": 5.0},
    "S2OCTClassifier": {"max_depth": 2, "time_limit": 5.0},
    "SSCTClassifier": {"max_depth": 2},
    "SVM1ODTClassifier": {"max_depth": 2, "time_limit": 5.0},
    "TAOClassifier": {"max_depth": 2},
    "TotalsClassifier": {},
}
_PARTLY = ("C2RF", "LapSVM", "LapTAO", "S2OCT", "SSCT", "Totals")
_TWO_CLASSES = ("OCTSVM", "RESVM", "Fair")


def _tables(name: str) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    tables = []
    for n, p, classes in ((60, 3, 2), (200, 8, 3), (120, 5, 2)):
        X, y = rng.random((n, p)), np.arange(n) % (2 if name.startswith(_TWO_CLASSES) else classes)
        y = np.where(np.arange(n) < n // 2, y, -1) if name.startswith(_PARTLY) else y
        tables.append((X, y, *((0.5 + rng.random(n),) if n == 120 else ())))
    return tables


def _measured(name: str) -> None:
    """Three fits in this process: processor seconds of compiling and of all, a fit a line."""
    from numba.core.event import Event, Listener, install_listener

    class Compiling(Listener):
        def __init__(self) -> None:
            self.seconds, self.depth = 0.0, 0

        def on_start(self, event: Event) -> None:
            self.began = self.began if self.depth else time.process_time()
            self.depth += 1

        def on_end(self, event: Event) -> None:
            self.depth -= 1
            self.seconds += 0.0 if self.depth else time.process_time() - self.began

    make: Callable[..., Any] = getattr(treewright, name)
    for X, y, *weight in _tables(name):
        compiling, began = Compiling(), time.process_time()
        with install_listener("numba:compile", compiling), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(**_MODELS[name], random_state=0).fit(X, y, *weight)
        print(f"{compiling.seconds:.1f} {time.process_time() - began:.1f}")


def main() -> None:
    if sys.argv[1:2] == ["--in-this-process"]:
        _measured(sys.argv[2])
        return
    print("| model | compiling, first fit | second | third | in all, first fit | second | third |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or _MODELS:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(treewright.__file__).parent
            shutil.copytree(source, Path(folder) / "treewright", ignore=shutil.ignore_patterns("__pycache__"))
            environment = {**os.environ, "PYTHONPATH": folder}
            environment.pop("NUMBA_CACHE_DIR", None)
            done = subprocess.run(
                [sys.executable, __file__, "--in-this-process", name],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
        compiling, whole = zip(*(line.split() for line in done.stdout.splitlines()), strict=True)
        print(f"| {name} | {' | '.join(compiling)} | {' | '.join(whole)} |", flush=True)


if __name__ == "__main__":
    main()
