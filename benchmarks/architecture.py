"""How far a fit walks through the source, and how large the source is: several trees of it side by side.

    python benchmarks/architecture.py
    python benchmarks/architecture.py --source ../before/src --source src

Each source is measured in a process of its own, each model on a small made table: 100 rows, 4 features, 2 classes; 30 %
of the labels where a model takes unlabelled rows, and the totals of the others where it takes these. Settings are as
they are but for a seed and a time limit of 2 s of the processor, so that other work on the machine changes nothing. A
first fit imports and compiles what it needs; the second one is watched. Counted are

- files: source files of treewright of which Python calls something (a function, a generator) during the fit, in any of
  its threads. Compiled loops are no calls of Python, nor are methods that dataclasses write; a file that only lends
  constants does not count.
- returns: these files in the order in which they are first entered, without those right below ``treewright``; how often
  the next one is in another folder than the one before, but in one that had been entered already. A folder is the first
  one below ``treewright``, and of ``models`` each folder in it is one.
- lines and files of all modules; constants: names in capitals that modules bind at their top level.

A fit that its time limit ends may pass a file more or less on another machine.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

OURS = Path(__file__).parents[1] / "src"
MODELS = ("S2OCTClassifier", "TotalsClassifier", "C2RFClassifier", "LapTAOClassifier", "SVM1ODTClassifier")
SUPERVISED, WITH_TOTALS = ("SVM1ODTClassifier",), ("S2OCTClassifier", "TotalsClassifier", "C2RFClassifier")
TIME_LIMIT = 2.0
_CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*")


# ---------------------------------------------------------------------- the walk of a fit


def files_entered(call: Callable[[], Any], root: Path) -> list[str]:
    """Return files below a folder, relative to it, in the order in which a call first enters them."""
    prefix = f"{root}{os.sep}"
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(prefix):
            entered.setdefault(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [Path(name).relative_to(root).as_posix() for name in entered]


def folder_of(file: str) -> str:
    """Return the folder that a file counts to, "" for one right below ``treewright``."""
    parts = file.split("/")[:-1]
    return "/".join(parts[: 2 if parts[:1] == ["models"] else 1])


def returns(files: Sequence[str]) -> int:
    """Return how often the next file is in a folder that had been left."""
    folders = [folder for folder in map(folder_of, files) if folder]
    return sum(
        folder != before and folder in folders[:place]
        for place, (before, folder) in enumerate(pairwise(folders), start=1)
    )


def a_fit(name: str) -> Callable[[], Any]:
    """Return what fits a model of this name to the made table."""
    import treewright

    rng, n = np.random.default_rng(0), 100
    X = rng.normal(size=(n, 4)).round(3)
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n) > 0.3).astype(np.int64)
    hidden = rng.random(n) < (0.0 if name in SUPERVISED else 0.7)
    counts = np.bincount(y[hidden], minlength=2)
    given = {"totals": dict(enumerate(counts.tolist()))} if name in WITH_TOTALS else {}
    kind = getattr(treewright, name)
    settings = {"time_limit": TIME_LIMIT, "random_state": 0}
    model = kind(**{key: value for key, value in settings.items() if key in kind().get_params()})
    return lambda: model.fit(X, np.where(hidden, -1, y), **given)


# ---------------------------------------------------------------------- a source


def measured(source: Path, models: Sequence[str]) -> dict[str, str]:
    """Return what is counted of the source that this process imports, in the words of the table."""
    time.perf_counter = time.process_time  # before anything that looks at the clock is imported
    import treewright

    root = source.resolve() / "treewright"
    if Path(treewright.__file__).resolve().parent != root:
        raise SystemExit(f"{source} has no package treewright; this process imports {treewright.__file__}")
    texts = [path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))]
    facts = {
        "files of the source": f"{len(texts)}",
        "lines": f"{sum(len(text.splitlines()) for text in texts)}",
        "constants": f"{sum(constants(text) for text in texts)}",
    }
    for name in models:
        fit = a_fit(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit()
            files = files_entered(fit, Path(treewright.__file__).parent)
        facts[f"{name.removesuffix('Classifier')}: files passed / returns"] = f"{len(files)} / {returns(files)}"
    return facts


def constants(text: str) -> int:
    """Return how many names in capitals a module binds at its top level."""
    names: list[ast.expr] = []
    for statement in ast.parse(text).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
        for target in targets:
            names += target.elts if isinstance(target, ast.Tuple) else [target]
    return sum(isinstance(name, ast.Name) and _CONSTANT.fullmatch(name.id) is not None for name in names)


def table(sources: Sequence[Path], models: Sequence[str]) -> str:
    """Return a table in markdown, a column a source."""
    columns = []
    for source in sources:
        command = [sys.executable, __file__, "--source", str(source), "--models", ",".join(models), "--json"]
        environment = os.environ | {"PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1"}
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        if ended.returncode:
            raise SystemExit(f"{source} could not be measured")
        columns.append(json.loads(ended.stdout))
    heads = ["", *map(str, sources)]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]).replace(
        "|  |", "| |"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, action="append", metavar="DIR", help=f"a src/ folder [{OURS.name}]")
    parser.add_argument("--models", default=",".join(MODELS), metavar="A,B", help="only these models")
    parser.add_argument(
        "--json", action="store_true", help="measure the first source in this process, which imports it"
    )
    args = parser.parse_args(argv)
    models = args.models.split(",")
    unknown = [name for name in models if name not in MODELS]
    if unknown:
        parser.error(f"no model {unknown[0]!r}: {', '.join(MODELS)}")
    sources = args.source or [Path(os.path.relpath(OURS))]
    print(json.dumps(measured(sources[0], models)) if args.json else table(sources, models))
    return 0


if __name__ == "__main__":
    sys.exit(main())
