"""C2RF against the plain forest and its cut, by the paper's protocol.

1 % of the rows are labelled, biased (85 % of class A) or at random; the paper's forest (20 trees of depth 2, each on
20 % of the labelled rows) and one of 200 trees are fitted on them. "Forest" is the majority of the members of C2RF's
own forest, "forest, cut" the highest shares of their votes as many as are known to be class A, ties at random. On the
first biased sample of each data set the printed program runs with the preprocessing of Algorithm 1, but without its
branching priorities, which HiGHS does not take. Part c2rf-ablation has all four printed programs, by default on SCIP;
``--solver gurobi`` is the paper's.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier

import harness
from harness import SOLVER, TIME_LIMIT, Column, GroupTable, Instance, Method, Outcome, Row, Sample, Where
from treewright import C2RFClassifier, paper_forest

NAMES = ("magic", "ring", "twonorm", "waveform_21", "agaricus_lepiota", "connect_4", "clean2")
OURS, PRINTED, ONLY_PP = "C2RF, paper's model", "Algorithm 1 as printed", "Algorithm 1 without priorities"
PROGRAMS: dict[str, dict[str, Any]] = {
    PRINTED: {"preprocess": True, "branching": True},
    "P1 as printed": {"preprocess": False, "branching": False},
    ONLY_PP: {"preprocess": True, "branching": False},
    "P1 with priorities": {"preprocess": False, "branching": True},
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


def small_forest(instance: Instance) -> BaggingClassifier:
    return paper_forest(random_state=instance.draw)


def large_forest(instance: Instance) -> RandomForestClassifier:
    return RandomForestClassifier(200, random_state=instance.draw)


def measures(label: np.ndarray, instance: Instance) -> dict[str, Any]:
    found = harness.accuracy_of(label, instance)
    deviation = float(abs(np.sum(label) - instance.given["totals"][1]))
    return {**found, "mcc_percent": 50.0 * (1.0 + found["mcc"]), "deviation": deviation}


def all_measures(instance: Instance, outcome: Outcome) -> Mapping[str, Any]:
    """What the labels come to, whether the objective is the deviation that is counted, and what the forest comes to."""
    own, model, also = measures(outcome.answer, instance), outcome.model, {}
    own["contradictions"] = [f"a deviation of {own['deviation']}"] if own["deviation"] != model.objective_ else []
    if model.class_prices:
        # Members of these forests predict numbers of classes, and both classes are labelled.
        votes = np.mean([member.predict(instance.X_test) for member in model.estimators_], axis=0)
        labels = {"forest": (votes > 0.5).astype(int), "forest, cut": harness.cut_at_total(votes, instance)}
        also = {name: {**measures(label, instance), "status": None} for name, label in labels.items()}
    return {**own, "also": also}


FORESTS = {"paper": small_forest, "200 trees": large_forest}


def method(name: str, forest: str = "paper", **parameters: Any) -> Method:
    parameters = {"solver": SOLVER, "time_limit": TIME_LIMIT, "random_state": 0, **parameters}
    options: dict[str, Any] = {"given": ("totals", "allow_new_classes"), "answer": harness.transduction}
    return Method(name, C2RFClassifier, parameters, forest, {"estimator": FORESTS[forest]}, **options)


def printed(name: str) -> Method:
    own = {"class_prices": False, "formulation": "paper", "order_cuts": False, "time_limit": 120.0, **PROGRAMS[name]}
    return replace(method(name, "paper", **own), where=Where(samples=("biased",), draws=1))


# ---------------------------------------------------------------------- summary


def overview(sample: str) -> GroupTable:
    columns = (
        harness.count("fits"),
        harness.mean("accuracy", "accuracy", ".2%"),
        harness.mean("MCC", "mcc", ".3f"),
        harness.mean("MCC, %", "mcc_percent", ".2f"),
        harness.mean("mean deviation", "deviation", ".1f"),
        harness.share("proven", "status", "optimal"),
    )

    def title(rows: list[Row]) -> str:
        return f"{len({(row['data'], row['draw']) for row in rows})} {sample} samples"

    by = {"setting": "forest", "method": "method"}
    return GroupTable(by, columns, title, harness.finished_with(sample=sample), order=("paper", "200 trees"))


def published(sample: str, title: str, first: int) -> Column:
    def value(group: list[Row], rows: list[Row]) -> str:
        return "{:.2f} / {:.2f}".format(*PUBLISHED[sample][group[0]["data"]][first : first + 2])

    return Column(title, value)


def medians(name: str) -> Column:
    percent = harness.median("", lambda row: 100 * row["accuracy"])
    return harness.joined(name, percent, harness.median("", "mcc_percent")).of(method=name)


def by_data(sample: str) -> GroupTable:
    theirs = published(sample, "forest, published", 0), published(sample, "C2RF, published", 2)
    columns = (*theirs, *map(medians, ("forest", OURS, "C2RF, threshold")))
    title = f"Paper's forest, medians over the {sample} samples, accuracy / MCC in %"
    return GroupTable({"data": "data"}, columns, title, harness.finished_with(sample=sample, setting="paper"))


def times(*programs: str) -> GroupTable:
    columns = (
        harness.mean("ours, first sample", "fit_seconds", ".1f").of(method=OURS, draw=0),
        harness.median("ours, median", "fit_seconds", ".1f").of(method=OURS),
        harness.most("ours, largest", "fit_seconds", ".1f").of(method=OURS),
        *(harness.each(name, "{fit_seconds:.1f}, {status}").of(method=name) for name in programs),
    )
    title = "Seconds to proof, paper's forest and model, biased samples; printed programs on the first sample"
    return GroupTable({"data": "data"}, columns, title, harness.finished_with(sample="biased", setting="paper"))


def ratios(rows: list[Row]) -> str:
    """How much faster than the printed algorithm, or than what a solver without priorities makes of it."""
    name = PRINTED if any(row["method"] == PRINTED for row in rows) else ONLY_PP
    first = harness.finished_with(sample="biased", setting="paper", draw=0)(rows)
    own = {(row["data"], row["method"]): row["fit_seconds"] for row in first}
    both = np.array([(own[d, name], own[d, OURS]) for d, m in own if m == name and (d, OURS) in own])
    if not len(both):
        return ""
    theirs, mine = np.median(both, axis=0)
    return (
        f"First samples, same solver, same run: median {theirs:.1f} s for {name} (a time limit counts as the time), "
        f"{mine:.1f} s for ours, {theirs / mine:.0f} times; median of the ratios "
        f"{np.median(both[:, 0] / both[:, 1]):.1f}."
    )


BIASED = Sample("biased", harness.partly_labelled, {"share": 0.01, "biased": True}, draws=5)
SIMPLE = Sample("simple", harness.partly_labelled, {"share": 0.01}, draws=5)
DATA = harness.PaperSets("C2RF", harness.read_one_class, NAMES)
TABLES = (*map(overview, PUBLISHED), *map(by_data, PUBLISHED))
MODELS = (method("C2RF, threshold"), method(OURS, class_prices=False), method("C2RF, threshold", "200 trees"))
MAIN = harness.Specification(
    name="c2rf",
    data=(DATA,),
    samples=(BIASED, SIMPLE),
    methods=(*MODELS, printed(ONLY_PP)),
    metrics=(all_measures,),
    summary=(*TABLES, times(ONLY_PP), ratios, harness.contradictions),
    time_limit=60.0,
)
ABLATION = replace(
    MAIN,
    name="c2rf-ablation",
    solver="scip",
    samples=(replace(BIASED, draws=1),),
    methods=(MODELS[1], *map(printed, PROGRAMS)),
    summary=(times(*PROGRAMS), ratios, harness.contradictions),
)
SMALL: dict[str, Any] = {
    "data": (replace(DATA, names=("waveform_21",)),),
    "samples": (replace(BIASED, draws=1),),
    "time_limit": 2.0,
    "methods": MODELS,
}

SPECIFICATIONS = (MAIN.with_quick(**SMALL), ABLATION.with_quick(**SMALL))

if __name__ == "__main__":
    sys.exit(harness.main(*SPECIFICATIONS, about=__doc__))
