"""S2OCT beyond the paper's comparison: three classes with all totals, and data of the size of adult and connect_4.

Usage: python benchmarks/s2oct_more.py --data FOLDER [--limit 60]

FOLDER as for benchmarks/s2oct.py; wine comes from scikit-learn, data of the size of adult (48 790 x 14) are made. 10 %
of the rows are labelled at random. Prints a table; memory is the largest of the process so far.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from s2oct import read
from sklearn.datasets import load_wine, make_classification

from treewright import S2OCTClassifier
from treewright.data import simple_random_sample


def three_classes(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and class numbers as they are in the file."""
    with gzip.open(path, "rt") as file:
        table = np.array(list(csv.reader(file, delimiter="\t"))[1:], dtype=float)
    return table[:, :-1], np.unique(table[:, -1], return_inverse=True)[1]


def line(name: str, X: np.ndarray, truth: np.ndarray, depth: int, limit: float) -> str:
    """One fit as a row of the table."""
    known = simple_random_sample(len(truth), 0.1, random_state=0)
    totals = {int(k): int(np.sum(truth[~known] == k)) for k in np.unique(truth)}
    began = time.perf_counter()
    model = S2OCTClassifier(depth, time_limit=limit, random_state=0).fit(X, np.where(known, truth, -1), totals=totals)
    seconds = time.perf_counter() - began
    missed = sum(row["deviation"] for row in model.totals_)
    accuracy = np.mean(model.transduction_[~known] == truth[~known])
    guess = max(totals.values()) / sum(totals.values())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"| {name} | {len(X)} x {X.shape[1]} | {len(totals)} | {depth} | {model.status_} | {model.objective_:.6g} | "
        f"{missed} | {accuracy:.1%} | {guess:.1%} | {seconds:.1f} | {memory:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | size | classes | depth | status | objective | missed | accuracy | largest | seconds | GiB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for file in ("10_iris", "27_penguins"):
        print(line(file[3:], *three_classes(options.data / f"{file}.tsv.gz"), 2, options.limit), flush=True)
    print(line("wine", *load_wine(return_X_y=True), 2, options.limit), flush=True)
    X, truth = make_classification(
        48790, 14, n_informative=6, n_clusters_per_class=3, weights=[0.76], flip_y=0.1, random_state=0
    )
    print(line("as large as adult", X, truth, 3, options.limit), flush=True)
    _, X, truth = read(options.data / "85_connect_4.tsv.gz")
    print(line("connect_4", X, truth, 3, options.limit), flush=True)


if __name__ == "__main__":
    main()
