"""C2RF against the plain forest and its cut, by the paper's protocol, in one run.

Usage: python benchmarks/c2rf.py --data FOLDER --out FILE.jsonl [--samples 5] [--jobs 2] [--printed 120]
       python benchmarks/c2rf.py --summary FILE.jsonl

FOLDER holds ``*.tsv.gz`` tables as for benchmarks/s2oct.py. 1 % of the rows are labelled, biased (85 % of class A) or
at random; the paper's forest (20 trees of depth 2, each on 20 % of the labelled rows) and one of 200 trees are
fitted on them. One row of output is one method on one sample. Ties at a cut are broken at random. The printed programs
run on the first biased sample of each data set, for `--printed` seconds each.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from s2oct import read
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import matthews_corrcoef

from treewright import C2RFClassifier, paper_forest
from treewright.data import biased_sample, simple_random_sample

DATA = ("magic", "ring", "twonorm", "waveform_21", "agaricus_lepiota", "connect_4", "clean2")
PRINTED: dict[str, dict[str, Any]] = {
    "P1 as printed": {"preprocess": False, "branching": False},
    "only PP": {"preprocess": True, "branching": False},
    "only BR": {"preprocess": False, "branching": True},
    "Algorithm 1 as printed": {"preprocess": True, "branching": True},
}


# Tables 3 and 4 of the paper: accuracy and MCC of the forest, accuracy and MCC of p-C2RF; medians, per cent.
PUBLISHED = {
    "biased": {
        "magic": (65.14, 70.35, 75.03, 73.13),
        "ring": (50.80, 54.20, 60.20, 61.45),
        "twonorm": (58.90, 65.76, 66.93, 67.05),
        "waveform_21": (75.88, 78.55, 78.59, 76.47),
        "agaricus_lepiota": (81.30, 83.95, 87.59, 87.57),
        "connect_4": (24.79, 52.19, 56.69, 55.98),
        "clean2": (99.43, 98.89, 100.0, 100.0),
    },
    "simple": {
        "magic": (78.28, 75.82, 78.14, 75.86),
        "ring": (71.81, 72.61, 67.35, 67.35),
        "twonorm": (84.32, 85.32, 85.09, 85.10),
        "waveform_21": (76.75, 71.97, 77.10, 74.10),
        "agaricus_lepiota": (88.15, 88.17, 87.17, 87.15),
        "connect_4": (75.36, 50.0, 67.71, 55.89),
        "clean2": (97.64, 95.37, 100.0, 100.0),
    },
}


class Instance:
    """A data set with a labelled sample of 1 % and the number of unlabelled rows of class A."""

    def __init__(self, path: Path, sample: str, seed: int) -> None:
        name, self.X, self.truth = read(path)
        self.name = name.split("_", 1)[1]
        if sample == "biased":
            self.known = biased_sample(self.truth, 0.01, weights={1: 0.85, 0: 0.15}, random_state=seed)
        else:
            self.known = simple_random_sample(len(self.truth), 0.01, random_state=seed)
        self.y = np.where(self.known, self.truth, -1)
        self.positive = int(self.truth[~self.known].sum())
        self.noise = np.random.default_rng(seed).random(int((~self.known).sum()))

    def measures(self, label: np.ndarray) -> dict[str, float]:
        """Accuracy, MCC on both scales and the deviation, on the unlabelled rows."""
        hidden = self.truth[~self.known]
        mcc = float(matthews_corrcoef(hidden, label))
        return {
            "accuracy": float(np.mean(label == hidden)),
            "mcc": mcc,
            "mcc_percent": 50.0 * (1.0 + mcc),
            "deviation": float(abs(label.sum() - self.positive)),
        }

    def cut(self, score: np.ndarray) -> np.ndarray:
        """Class A for the highest scores, as many as are known; ties at random."""
        label = np.zeros(len(score), dtype=int)
        label[np.lexsort((self.noise, -score))[: self.positive]] = 1
        return label


def ours(instance: Instance, forest: Any, **parameters: Any) -> tuple[dict[str, Any], C2RFClassifier]:
    """One fit, and what it says of its proof."""
    model = C2RFClassifier(forest, random_state=0, **parameters)
    model.fit(instance.X, instance.y, totals={0: len(instance.noise) - instance.positive, 1: instance.positive})
    result = instance.measures((model.transduction_ == 1)[~instance.known].astype(int))
    assert result["deviation"] == model.objective_, "the deviation that is counted is not the one that is claimed"
    return result | {"status": model.status_, "bound": model.bound_, "fit_seconds": model.solve_time_}, model


def run(path: Path, sample: str, seed: int, limit: float, printed: float, variants: set[str]) -> list[dict[str, Any]]:
    """All methods on one sample."""
    instance = Instance(path, sample, seed)
    head = {"data": instance.name, "m": len(instance.noise), "sample": sample, "seed": seed}
    rows: list[dict[str, Any]] = []

    def add(forest: str, method: str, result: dict[str, Any]) -> None:
        rows.append(head | {"forest": forest, "method": method} | result)

    warnings.simplefilter("ignore")
    hidden = instance.X[~instance.known]
    for name, forest in {
        "paper": paper_forest(random_state=seed),
        "200 trees": RandomForestClassifier(200, random_state=seed),
    }.items():
        result, model = ours(instance, forest, time_limit=limit)
        add(name, "C2RF, threshold", result)
        votes = np.mean([member.predict(hidden) for member in model.estimators_], axis=0)
        add(name, "forest", instance.measures((votes > 0.5).astype(int)))
        add(name, "forest, cut", instance.measures(instance.cut(votes)))
        if name == "paper":
            add(name, "C2RF, paper's model", ours(instance, forest, time_limit=limit, threshold=False)[0])
            for method, switches in PRINTED.items() if sample == "biased" and seed == 0 and printed > 0 else ():
                if method in variants:
                    began = time.perf_counter()
                    result, _ = ours(
                        instance,
                        forest,
                        time_limit=printed,
                        threshold=False,
                        formulation="paper",
                        order_cuts=False,
                        **switches,
                    )
                    add(name, method, result | {"seconds": time.perf_counter() - began})
    return rows


def summary(path: Path) -> str:
    """The tables of the docs from a file of results."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines = []
    for sample in dict.fromkeys(row["sample"] for row in rows):
        own = [row for row in rows if row["sample"] == sample]
        n = len({(row["data"], row["seed"]) for row in own})
        lines += [
            f"{n} {sample} samples",
            "",
            "| forest | method | fits | accuracy | MCC | MCC, % | mean deviation | proven |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for forest, method in dict.fromkeys((row["forest"], row["method"]) for row in own):
            some = [row for row in own if (row["forest"], row["method"]) == (forest, method)]
            mean = {k: np.mean([row[k] for row in some]) for k in ("accuracy", "mcc", "mcc_percent", "deviation")}
            proven = f"{np.mean([row['status'] == 'optimal' for row in some]):.0%}" if "status" in some[0] else ""
            lines.append(
                f"| {forest} | {method} | {len(some)} | {mean['accuracy']:.2%} | {mean['mcc']:.3f} | "
                f"{mean['mcc_percent']:.2f} | {mean['deviation']:.1f} | {proven} |"
            )
        lines.append("")
    return "\n".join([*lines, *_by_data(rows)])


def _by_data(rows: list[dict[str, Any]]) -> list[str]:
    """Medians of each data set beside the paper's Tables 3 and 4."""
    lines = []
    for sample, published in PUBLISHED.items():
        lines += [
            f"Paper's forest, medians over the {sample} samples, accuracy / MCC in %",
            "",
            "| data | forest, published | C2RF, published | forest | C2RF, paper's model | C2RF, threshold |",
            "|---|---|---|---|---|---|",
        ]
        own = [row for row in rows if row["sample"] == sample and row["forest"] == "paper"]
        for data in dict.fromkeys(row["data"] for row in own):
            cells = ["{:.2f} / {:.2f}".format(*pair) for pair in np.reshape(published[data], (2, 2)).tolist()]
            for method in ("forest", "C2RF, paper's model", "C2RF, threshold"):
                some = [row for row in own if row["data"] == data and row["method"] == method]
                accuracy = 100 * np.median([row["accuracy"] for row in some])
                cells.append(f"{accuracy:.2f} / {np.median([row['mcc_percent'] for row in some]):.2f}")
            lines.append(f"| {data} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines + _times(rows)


def _times(rows: list[dict[str, Any]]) -> list[str]:
    """Seconds to proof, ours over all biased samples and the printed programs on the first."""
    own = [row for row in rows if row["sample"] == "biased" and row["forest"] == "paper"]
    lines = [
        "Seconds to proof, paper's forest and model, biased samples; printed programs on the first sample",
        "",
        "| data | ours, first sample | ours, median | ours, largest | Algorithm 1 as printed | P1 as printed |",
        "|---|---|---|---|---|---|",
    ]
    ratios, both = [], []
    for data in dict.fromkeys(row["data"] for row in own):
        ours = [row for row in own if row["data"] == data and row["method"] == "C2RF, paper's model"]
        seconds = [row["fit_seconds"] for row in ours]
        first = next(row["fit_seconds"] for row in ours if row["seed"] == 0)
        cells = [f"{first:.1f}", f"{np.median(seconds):.1f}", f"{max(seconds):.1f}"]
        for method in ("Algorithm 1 as printed", "P1 as printed"):
            told = [row for row in own if row["data"] == data and row["method"] == method]
            cells.append("; ".join(f"{row['fit_seconds']:.1f}, {row['status']}" for row in told))
            if told and method.startswith("Algorithm"):
                ratios.append(told[0]["fit_seconds"] / first)
                both.append((told[0]["fit_seconds"], first))
        lines.append(f"| {data} | " + " | ".join(cells) + " |")
    if ratios:
        theirs, mine = np.median(both, axis=0)
        lines += [
            "",
            f"First samples, same solver, same run: median {theirs:.1f} s for Algorithm 1 as printed (a time limit "
            f"counts as the time), {mine:.1f} s for ours, {theirs / mine:.0f} times; "
            f"median of the ratios {np.median(ratios):.1f}.",
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/c2rf.jsonl"))
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--printed", type=float, default=120.0, help="seconds for each printed program; 0 for none")
    parser.add_argument("--no-p1", action="store_true", help="of the printed programs only Algorithm 1")
    parser.add_argument("--ablation", action="store_true", help="all four printed variants")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="samples at a time, one core each")
    parser.add_argument("--match", default="", help="only data sets whose name contains this")
    parser.add_argument("--summary", type=Path)
    options = parser.parse_args()
    if options.summary:
        print(summary(options.summary))
        return
    names = {path: path.name.removesuffix(".tsv.gz").split("_", 1)[1] for path in sorted(options.data.glob("*.tsv.gz"))}
    paths = [path for path, name in names.items() if name in DATA and options.match in name]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    tasks = [(p, kind, seed) for kind in ("biased", "simple") for seed in range(options.samples) for p in paths]
    variants = set(PRINTED) if options.ablation else {"P1 as printed", "Algorithm 1 as printed"}
    variants -= {"P1 as printed"} if options.no_p1 else set()
    with options.out.open("w") as file:
        work = (delayed(run)(*task, options.limit, options.printed, variants) for task in tasks)
        for rows in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
            for row in rows:
                file.write(json.dumps(row) + "\n")
            file.flush()
    print(summary(options.out))


if __name__ == "__main__":
    main()
