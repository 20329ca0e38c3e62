"""The longest silence of the command line on a terminal, for each model and the whole job.

    python benchmarks/silence.py --time-limit 15
    python benchmarks/silence.py s2oct job

A line a command: the longest time without output, when it began, and the seconds of all of it. Loading the program
counts, so on a busy machine the first seconds are longer.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

MODELS = ("binoct", "fair-oct", "laptao", "oct", "oct-h", "octsvm", "resvm", "s2oct", "ssct", "svm1odt", "tao", "c2rf")


def write_tables(folder: Path) -> None:
    """A register of which a quarter is labelled, the same with all labels, and its totals."""
    rng, n = np.random.default_rng(0), 1500
    X = rng.normal(size=(n, 6)).round(4)
    y = np.array(["a", "b", "c"])[(X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 1)]
    known, sex = rng.random(n) < 0.25, np.where(X[:, 4] > 0, "m", "f")
    for name, labels in (("some.csv", np.where(known, y, "")), ("all.csv", y)):
        rows = [",".join([*map(str, x), g, label]) for x, g, label in zip(X.tolist(), sex, labels, strict=True)]
        (folder / name).write_text("\n".join(["x0,x1,x2,x3,x4,x5,sex,y", *rows]) + "\n")
    counts = [np.count_nonzero(~known & (y == label)) for label in "abc"]
    (folder / "totals.csv").write_text(f"a,b,c\n{','.join(map(str, counts))}\n")


def command(name: str, time_limit: float) -> list[str]:
    """The command line of a model, or of the whole job."""
    semi = name in ("laptao", "s2oct", "c2rf", "ssct", "job")
    words = ["fit", "some.csv" if semi else "all.csv", "--target", "y", "--out", "m.zip", "--random-state", "0"]
    words += ["--totals", "totals.csv"] if name in ("s2oct", "c2rf", "job") else []
    words += ["--protected", "sex", "--set", "fairness_weight=0.1"] if name == "fair-oct" else []
    words += [] if name == "job" else ["--model", name]
    return [sys.executable, "-m", "treewright", *words, "--time-limit", str(time_limit)]


def silence(words: list[str], folder: str) -> tuple[float, float, float, int]:
    """The longest silence of a command, when it began, seconds in all, exit code."""
    here, there = pty.openpty()
    process = subprocess.Popen(words, cwd=folder, stdout=there, stderr=there, stdin=subprocess.DEVNULL)
    os.close(there)
    began = last = time.perf_counter()
    longest = (0.0, 0.0)
    while True:
        ready, _, _ = select.select([here], [], [], 0.05)
        try:
            ended = not os.read(here, 65536) if ready else process.poll() is not None
        except OSError:  # the other end is closed
            ended = True
        now = time.perf_counter()
        if ready or ended:
            longest, last = max(longest, (now - last, last - began)), now
        if ended:
            os.close(here)
            return *longest, now - began, process.wait()


def main() -> None:
    """Measure the commands that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}, job (default: all)")
    parser.add_argument("--time-limit", type=float, default=15.0, help="seconds of each command")
    args = parser.parse_args()
    if unknown := [name for name in args.models if name not in (*MODELS, "job")]:
        parser.error(f"there is no model {unknown[0]}")
    print(f"{'command':10s} {'longest':>8s} {'from':>7s} {'of':>7s}  code", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder))
        for name in args.models or (*MODELS, "job"):
            longest, start, total, code = silence(command(name, args.time_limit), folder)
            print(f"{name:10s} {longest:6.1f} s {start:5.1f} s {total:5.1f} s  {code}", flush=True)


if __name__ == "__main__":
    main()
