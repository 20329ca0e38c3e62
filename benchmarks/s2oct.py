"""S2OCT against what its users have, by the paper's protocol, in one run.

Usage: python benchmarks/s2oct.py --data FOLDER --out FILE.jsonl [--limit 60] [--jobs 2] [--sample biased|simple]
       python benchmarks/s2oct.py --summary FILE.jsonl

FOLDER holds ``*.tsv.gz`` tables with a header, the last column is the target. Rows equal in features and label are
dropped (not in ionosphere); label 1 is class A, or the smaller label where there is none. One row of output is one
method on one data set. Ties of scores at the cut are broken at random: in the order of the file they would leak the
class, since many files are sorted by it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import matthews_corrcoef
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from verify_s2oct import verify_zero

from treewright import OCTHClassifier, S2OCTClassifier
from treewright.data import biased_sample, drop_duplicate_rows, simple_random_sample
from treewright.tree import predict_labels

COMMITTEE = 25


def read(path: Path) -> tuple[str, np.ndarray, np.ndarray]:
    """Name, features and whether a row is of class A."""
    with gzip.open(path, "rt") as file:
        table = np.array(list(csv.reader(file, delimiter="\t"))[1:], dtype=float)
    X, target = table[:, :-1], table[:, -1]
    if "ionosphere" not in path.name:
        kept = drop_duplicate_rows(X, target)
        X, target = X[kept], target[kept]
    labels, counts = np.unique(target, return_counts=True)
    first = 1.0 if 1.0 in labels else labels[np.argmin(counts)]
    return path.name.removesuffix(".tsv.gz"), X, (target == first).astype(int)


class Instance:
    """A data set with a labelled sample and the number of unlabelled rows of class A."""

    def __init__(self, path: Path, sample: str, seed: int) -> None:
        self.name, self.X, self.truth = read(path)
        if sample == "biased":
            self.known = biased_sample(self.truth, 0.1, weights={1: 0.85, 0: 0.15}, random_state=seed)
        else:
            self.known = simple_random_sample(len(self.truth), 0.1, random_state=seed)
        self.y = np.where(self.known, self.truth, -1)
        self.positive = int(self.truth[~self.known].sum())
        self.depth = 2 if len(self.X) < 1000 else 3
        self.Z = StandardScaler().fit_transform(self.X)
        self.noise = np.random.default_rng(seed).random(int((~self.known).sum()))

    def cut(self, score: np.ndarray) -> np.ndarray:
        """Class A for the highest scores, as many as are known; ties at random."""
        label = np.zeros(len(score), dtype=int)
        label[np.lexsort((self.noise, -score))[: self.positive]] = 1
        return label

    def measures(self, label: np.ndarray) -> dict[str, float]:
        """Accuracy and MCC on the unlabelled and on all rows."""
        everything = self.truth.copy()
        everything[~self.known] = label
        hidden = self.truth[~self.known]
        return {
            "accuracy": float(np.mean(label == hidden)),
            "mcc": float(matthews_corrcoef(hidden, label)),
            "accuracy_all": float(np.mean(everything == self.truth)),
            "mcc_all": float(matthews_corrcoef(self.truth, everything)),
        }


def methods(instance: Instance, limit: float, printed: bool) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Name and work of each method."""
    Z, known, truth = instance.Z, instance.known, instance.truth
    yield "S2OCT", lambda: s2oct(instance, limit, margin="tolerance", n_trees=COMMITTEE)
    yield "S2OCT margin=paper", lambda: s2oct(instance, limit, margin="paper")
    if printed:
        yield "S2OCT as printed", lambda: s2oct(instance, limit, margin="paper", formulation="paper")
    oct_h = OCTHClassifier(max_depth=instance.depth, min_samples_leaf=0.05, margin=0.005, time_limit=10, random_state=0)
    cart = DecisionTreeClassifier(max_depth=instance.depth, random_state=0)
    forest = RandomForestClassifier(200, random_state=0)
    yield "OCT-H", lambda: supervised(instance, oct_h)
    yield "CART", lambda: supervised(instance, cart)
    yield "self-training CART", lambda: self_training(instance, cart)
    for name, model in {
        "logistic regression, cut": LogisticRegression(max_iter=1000),
        "linear SVM, cut": LinearSVC(),
        "CART, cut": DecisionTreeClassifier(max_depth=instance.depth, random_state=0),
        "random forest, cut": forest,
    }.items():
        yield (
            name,
            lambda model=model: instance.measures(instance.cut(scores(model.fit(Z[known], truth[known]), Z[~known]))),
        )


def s2oct(instance: Instance, limit: float, **parameters: Any) -> dict[str, Any]:
    """One fit; with a committee, the single tree under the plain names and the committee's beside it."""
    model = S2OCTClassifier(time_limit=limit, random_state=0, **parameters)
    hidden_rows = int(np.sum(~instance.known))
    model.fit(instance.X, instance.y, totals={0: hidden_rows - instance.positive, 1: instance.positive})
    hidden = instance.X[~instance.known]
    result = instance.measures(predict_labels(model.tree_, hidden))
    result |= {"status": model.status_, "objective": model.objective_, "bound": model.bound_}
    if model.objective_ == 0:
        result["contradictions"] = verify_zero(model.tree_, instance.X, instance.y, instance.positive, model.margin)
    if parameters.get("n_trees", 1) > 1:
        result["committee"] = instance.measures(model.transduction_[~instance.known])
        result["trees"] = len(model.trees_)
    proofs = model.trace_[model.trace_[:, 1] <= model.trace_[:, 2] + 1e-9]
    result["proof_seconds"] = float(proofs[0, 0]) if len(proofs) else None
    return result


def supervised(instance: Instance, model: Any) -> dict[str, Any]:
    """A model on the labelled rows alone."""
    model.fit(instance.X[instance.known], instance.truth[instance.known])
    return instance.measures(model.predict(instance.X[~instance.known])) | {"status": getattr(model, "status_", "")}


def self_training(instance: Instance, base: Any) -> dict[str, Any]:
    """scikit-learn's self-training with a tree."""
    model = SelfTrainingClassifier(base).fit(instance.X, instance.y)
    return instance.measures(model.predict(instance.X[~instance.known]))


def scores(model: Any, X: np.ndarray) -> np.ndarray:
    """Score of class A."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]


def run(path: Path, sample: str, seed: int, limit: float, printed: bool, only: str, skip: str) -> list[dict[str, Any]]:
    """All methods on one data set."""
    instance = Instance(path, sample, seed)
    head = {"data": instance.name, "n": len(instance.X), "p": instance.X.shape[1], "sample": sample, "seed": seed}
    one_class = len(np.unique(instance.truth[instance.known])) < 2
    rows = []
    for name, work in methods(instance, limit, printed):
        if (only and only != name) or skip == name:
            continue
        if one_class and not name.startswith("S2OCT"):
            rows.append(head | {"method": name, "skipped": "the labelled sample has one class"})
            continue
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = work()
        rows.append(head | {"method": name, "seconds": time.perf_counter() - began} | result)
    return rows


def summary(path: Path) -> str:
    """The tables of the docs from a file of results."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    used = [row for row in rows if "skipped" not in row]
    # Where the sample has one class nothing but S2OCT can be fitted: such data sets count in its share of optima alone.
    alone = {row["data"] for row in rows if "skipped" in row}
    lines = [f"{len({row['data'] for row in rows})} data sets; the labelled sample of {len(alone)} has one class", ""]
    lines += [
        "| method | fits | optimal | accuracy | MCC | accuracy, all rows | median seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    expanded = [*used, *(row | row["committee"] | {"method": "S2OCT committee"} for row in used if "committee" in row)]
    for method in dict.fromkeys(row["method"] for row in expanded):
        own = [row for row in expanded if row["method"] == method]
        optimal = [row["status"] == "optimal" for row in own if row.get("status")]
        fair = [row for row in own if row["data"] not in alone]
        mean = {key: np.mean([row[key] for row in fair]) for key in ("accuracy", "mcc", "accuracy_all")}
        lines.append(
            f"| {method} | {len(own)} | {f'{np.mean(optimal):.0%}' if optimal else ''} | {mean['accuracy']:.1%} | "
            f"{mean['mcc']:.3f} | {mean['accuracy_all']:.1%} | {np.median([row['seconds'] for row in own]):.1f} |"
        )
    by = {(row["data"], row["method"]): row for row in expanded}
    pairs = [(by[d, "S2OCT"], by[d, "OCT-H"]) for d, m in by if m == "OCT-H" and (d, "S2OCT") in by]
    if pairs:
        share = np.mean([ours["accuracy"] >= theirs["accuracy"] for ours, theirs in pairs])
        lines += ["", f"S2OCT is at least as accurate as OCT-H on {share:.0%} of {len(pairs)} data sets."]
    both = [(by[d, "S2OCT margin=paper"], row) for (d, m), row in by.items() if m == "S2OCT as printed"]
    if both:
        ours, theirs = (np.mean([row["status"] == "optimal" for row in side]) for side in zip(*both, strict=True))
        lines += [
            f"On the {len(both)} data sets of the printed program, with the same margin: "
            f"optimal {theirs:.0%} as printed, {ours:.0%} by us."
        ]
    wrong = [(row["data"], row["method"], row["contradictions"]) for row in used if row.get("contradictions")]
    claims = sum("contradictions" in row for row in used)
    lines += [f"{claims} claims of a zero objective re-verified, {len(wrong)} contradicted {wrong or ''}"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/s2oct.jsonl"))
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=1, help="data sets at a time, one core each")
    parser.add_argument("--sample", choices=["biased", "simple"], default="biased")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--printed", type=int, default=20, help="data sets for the printed program, evenly spread")
    parser.add_argument("--only", default="", help="a single method")
    parser.add_argument("--skip", default="", help="a method to leave out")
    parser.add_argument("--match", default="", help="only files whose name contains this")
    parser.add_argument("--summary", type=Path)
    options = parser.parse_args()
    if options.summary:
        print(summary(options.summary))
        return
    paths = [path for path in sorted(options.data.glob("*.tsv.gz")) if options.match in path.name]
    spread = {paths[int(k)] for k in np.linspace(0, len(paths) - 1, min(options.printed, len(paths)))}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w") as file:
        work = (
            delayed(run)(path, options.sample, options.seed, options.limit, path in spread, options.only, options.skip)
            for path in paths
        )
        for rows in Parallel(n_jobs=options.jobs, return_as="generator")(work):
            for row in rows:
                file.write(json.dumps(row) + "\n")
            file.flush()
    print(summary(options.out))


if __name__ == "__main__":
    main()
