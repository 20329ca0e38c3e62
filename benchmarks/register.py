"""The whole job at register size: time and memory of one command, beside reading the file and fitting the estimator.

    python benchmarks/register.py --rows 1000000 --kind csv
    python benchmarks/register.py --rows 1000000 --kind parquet --predict
    python benchmarks/register.py --rows 20000000 --kind parquet

A register is made: 20 columns of numbers, categories, dates and gaps, 40 areas, three classes, 1 % of the rows
labelled, some classes and ages more often than others, and the totals of the others by area. Each measured step is a
process of its own, so that its peak of resident memory is known; nothing else should run beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

CLASSES = np.array(["employed", "inactive", "unemployed"])
N_AREAS, LABELLED, BATCH = 40, 0.01, 500_000
LEVELS = {"sex": 2, "marital": 5, "education": 8, "sector": 12, "country": 20, "housing": 4, "benefit": 3, "school": 6}
NUMBERS = ("age", "income", "hours", "rooms", "distance", "children", "savings", "visits")
GAPS = {"income": 0.1, "hours": 0.05, "savings": 0.2, "education": 0.03, "sector": 0.15, "moved": 0.25}


def register_batches(n_rows: int, seed: int = 0, batch: int | None = None) -> Iterator[tuple[pl.DataFrame, np.ndarray]]:
    """Parts of a made register, and the true class of each row."""
    effects = np.random.default_rng(seed)
    effect = {name: effects.normal(size=(levels, 3)) * 0.7 for name, levels in LEVELS.items()}
    effect["area"] = effects.normal(size=(N_AREAS, 3)) * 0.4
    slope = effects.normal(size=(len(NUMBERS), 3)) * 0.6
    batch = batch or BATCH
    for start in range(0, n_rows, batch):
        yield _batch(start, min(batch, n_rows - start), np.random.default_rng([seed, start]), effect, slope)


def _batch(
    start: int, n: int, rng: np.random.Generator, effect: dict[str, np.ndarray], slope: np.ndarray
) -> tuple[pl.DataFrame, np.ndarray]:
    codes = {name: (rng.random(n) ** 1.5 * levels).astype(int) for name, levels in LEVELS.items()}
    codes["area"] = rng.integers(N_AREAS, size=n)
    z = rng.normal(size=(n, len(NUMBERS)))
    born, moved = rng.integers(-20_000, 12_000, n), rng.integers(12_000, 20_000, n)
    logit = z @ slope + sum(effect[name][code] for name, code in codes.items())
    logit[:, 1] += 1.5 * np.abs(z[:, 0]) + born / 10_000
    logit[:, 2] += (moved - 16_000) / 4000 * (z[:, 1] < 0)
    truth = (1.5 * logit + rng.gumbel(size=(n, 3))).argmax(axis=1)
    columns: dict[str, pl.Series] = {"person": pl.Series(np.arange(start, start + n)).cast(pl.String).str.zfill(9)}
    for name, code in codes.items():
        names = [f"{name} {k:02d}" for k in range(N_AREAS if name == "area" else LEVELS[name])]
        columns[name] = pl.Series(names).gather(code)
    scale = {"age": (40, 12, 0), "children": (2, 1, 0), "rooms": (4, 1, 0), "visits": (10, 4, 0)}
    for j, name in enumerate(NUMBERS):
        centre, spread, digits = scale.get(name, (1000, 300, 2))
        columns[name] = pl.Series(np.round(centre + spread * z[:, j], digits))
    columns["born"] = pl.Series(born.astype(np.int32)).cast(pl.Date)
    columns["moved"] = pl.Series(moved.astype(np.int32)).cast(pl.Date)
    columns["citizen"] = pl.Series(rng.random(n) < 0.9)
    columns["code"] = pl.Series(rng.integers(1, 100, n).astype(float))
    for name, share in GAPS.items():
        columns[name] = columns[name].set(pl.Series(rng.random(n) < share), None)
    # classes and ages are asked unequally often: the sample is biased
    asked = LABELLED * np.array([0.7, 1.0, 2.0])[truth] * np.where(z[:, 0] > 0, 0.7, 1.3)
    label = pl.Series(CLASSES.tolist()).gather(truth)
    columns["status"] = label.set(pl.Series(rng.random(n) >= asked), None)
    return pl.DataFrame(columns), truth


def make_register(folder: Path, n_rows: int, kind: str) -> dict[str, int]:
    """Write ``register.csv`` or ``.parquet``, ``totals.csv`` and ``all_totals.csv`` (of all rows), part by part."""
    counts, every, labelled = np.zeros((N_AREAS, 3), dtype=int), np.zeros((N_AREAS, 3), dtype=int), 0
    path = folder / f"register.{kind}"
    parts = folder / "parts"
    parts.mkdir()
    with open(path if kind == "csv" else os.devnull, "wb") as file:
        for number, (frame, truth) in enumerate(register_batches(n_rows)):
            hidden = frame.get_column("status").is_null().to_numpy()
            area = frame.get_column("area").str.slice(-2).cast(pl.Int64).to_numpy()
            np.add.at(counts, (area[hidden], truth[hidden]), 1)
            np.add.at(every, (area, truth), 1)
            labelled += int(np.count_nonzero(~hidden))
            if kind == "csv":
                frame.write_csv(file, include_header=number == 0)
            else:
                frame.write_parquet(parts / f"{number:04d}.parquet")
    if kind == "parquet":
        pl.scan_parquet(sorted(parts.iterdir())).sink_parquet(path, row_group_size=BATCH)
        for part in parts.iterdir():
            part.unlink()
    parts.rmdir()
    table = pl.DataFrame({"area": [f"area {k:02d}" for k in range(N_AREAS)]})
    for name, numbers in (("totals.csv", counts), ("all_totals.csv", every)):
        table.with_columns([pl.Series(str(c), numbers[:, k]) for k, c in enumerate(CLASSES)]).write_csv(folder / name)
    return {"rows": n_rows, "labelled": labelled, "bytes": path.stat().st_size}


# ---------------------------------------------------------------------- what is measured

ALONE = """
import sys, json, time
begun = time.perf_counter(), 0.0  # a process begins with no processor time
import numpy as np, polars as pl
path, model, estimator = sys.argv[1:]
def spent(start):
    return [now() - then for now, then in zip((time.perf_counter, time.process_time), start)]
def clock():
    return time.perf_counter(), time.process_time()
start = clock()
frame = pl.read_csv(path) if path.endswith("csv") else pl.read_parquet(path)
read = spent(start)
known = frame.filter(pl.col("status").is_not_null())
del frame
from treewright.app.table_model import TableModel
from treewright.app.planning import ESTIMATORS
from treewright.data.tables.files import Table
from treewright.teachers.classifier import TeacherClassifier
from sklearn.base import clone
X = TableModel.read(model).features_of(Table(known))
y = known.get_column("status").to_numpy()
made = ESTIMATORS[estimator]()
made = TeacherClassifier(random_state=0) if isinstance(made, str) else made
start = clock()
made.fit(X, y)
fit, process, start = spent(start), spent(begun), clock()
made.predict_proba(np.resize(X, (200_000, X.shape[1])))
score = [part / 200_000 for part in spent(start)]
print(json.dumps({"read": read, "fit": fit, "process": process, "score a row": score, "features": X.shape[1]}))
"""


def measured(command: list[str]) -> dict[str, Any]:
    """Wall and processor seconds and the peak of resident memory of a process and of those it starts."""
    # the peak of children is that of the largest there has been: each command gets a parent of its own
    run = subprocess.run(
        [sys.executable, __file__, "--measured", *command], capture_output=True, text=True, check=False
    )
    if run.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{run.stderr}")
    *output, last = run.stdout.splitlines()
    return {**json.loads(last), "output": "\n".join(output)}


def _measure(command: list[str]) -> None:
    start = time.perf_counter()
    code = subprocess.run(command, check=False).returncode
    seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "gib": used.ru_maxrss / 2**20}
    print(json.dumps(found), flush=True)
    sys.exit(code)


def check_labels(register: Path, labels: Path, totals: Path) -> tuple[int, int]:
    """Totals, and how many of them the written labels miss, counted from the files alone."""
    scan = pl.scan_csv if labels.suffix == ".csv" else pl.scan_parquet
    found = scan(labels).select("prediction").collect()
    given = (pl.scan_csv if register.suffix == ".csv" else pl.scan_parquet)(register).select("area", "status").collect()
    both = pl.concat([given, found], how="horizontal").filter(pl.col("status").is_null())
    reached = both.group_by("area").agg([(pl.col("prediction") == name).sum().alias(name) for name in CLASSES.tolist()])
    asked = pl.read_csv(totals).sort("area")
    wrong = np.count_nonzero(asked.drop("area").to_numpy() != reached.sort("area").select(asked.columns[1:]).to_numpy())
    return asked.height * 3, int(wrong)


def true_accuracy(labels: Path, n_rows: int) -> float:
    """Share of right labels among rows without one, by making the register again."""
    scan = pl.scan_csv(labels) if labels.suffix == ".csv" else pl.scan_parquet(labels)
    right = total = 0
    for number, (frame, truth) in enumerate(register_batches(n_rows)):
        found = scan.slice(number * BATCH, len(truth)).select("prediction").collect().to_series()
        hidden = frame.get_column("status").is_null()
        right += int(((found == pl.Series(CLASSES.tolist()).gather(truth)) & hidden).sum())
        total += int(hidden.sum())
    return right / total


def main() -> None:
    """Measure."""
    if sys.argv[1:2] == ["--measured"]:
        return _measure(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kind", choices=["csv", "parquet"], default="csv")
    parser.add_argument("--estimator", default="auto", help="--estimator of fit")
    parser.add_argument("--options", default="", help="more options of fit, such as '--model totals'")
    parser.add_argument(
        "--predict",
        action="store_true",
        help="also predict the same file with the model, without totals and within them",
    )
    parser.add_argument("--skip-alone", action="store_true", help="do not fit the estimator alone")
    parser.add_argument("--folder", help="where the register is made and kept; by default one that is removed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(args.folder or passing)
        folder.mkdir(parents=True, exist_ok=True)
        run(args, folder)


def run(args: argparse.Namespace, folder: Path) -> None:
    """Make a register if there is none yet, and measure the steps."""
    register, labels = folder / f"register.{args.kind}", folder / f"labels.{args.kind}"
    if not register.exists():
        print(json.dumps(make_register(folder, args.rows, args.kind)), flush=True)
    model = folder / "model.zip"
    main_command = [sys.executable, "-m", "treewright"]
    job = [*main_command, "fit", str(register), "--target", "status", "--totals", str(folder / "totals.csv")]
    job += ["--groups", "area", "--id", "person", "--estimator", args.estimator, "--random-state", "0"]
    job += ["--out", str(model), "--predictions", str(labels), "--report", str(folder / "report.txt"), "--json"]
    found = measured([*job, *args.options.split()])
    document = json.loads(str(found.pop("output")))
    n_totals, wrong = check_labels(register, labels, folder / "totals.csv")
    print(json.dumps({"step": "fit", **found, "totals": n_totals, "totals missed": wrong}), flush=True)
    tree = document.get("tree") or {}
    estimate = {name: value for name, value in document["accuracy"].items() if name != "recall"}
    right = true_accuracy(labels, args.rows)
    print(json.dumps({"accuracy": right, "estimate": estimate, "agreement": tree.get("agreement")}), flush=True)
    if not args.skip_alone:
        alone = measured([sys.executable, "-c", ALONE, str(register), str(model), args.estimator])
        parts = json.loads(str(alone.pop("output")))
        print(json.dumps({"step": "alone", **alone, **parts}), flush=True)
        for k, clock in enumerate(("seconds", "cpu")):
            bare = parts["read"][k] + parts["fit"][k]
            scored = bare + parts["score a row"][k] * args.rows
            ratios = {
                "to read and fit": found[clock] / bare,
                "to a process that does": found[clock] / parts["process"][k],
                "to read, fit and score": found[clock] / scored,
            }
            print(json.dumps({f"{clock} of the job": ratios}), flush=True)
    if args.predict:
        new = folder / f"new.{args.kind}"
        command = [*main_command, "predict", str(model), str(register), "--id", "person", "--out", str(new)]
        for step, more in (
            ("predict", []),
            ("predict within totals", ["--totals", str(folder / "all_totals.csv"), "--groups", "area"]),
        ):
            said = measured([*command, *more])
            said.pop("output")
            print(json.dumps({"step": step, **said}), flush=True)


if __name__ == "__main__":
    main()
