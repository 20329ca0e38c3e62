"""The demo of ``make demo``: from a survey table to a tree, predictions and a report, in half a minute.

Usage: python examples/demo.py [FOLDER], by default ``demo-output``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from make_survey import write_survey

from treewright.cli import main as treewright
from treewright.cli.files import TableModel
from treewright.data.table import read_table, replacing
from treewright.report import fit_report

MODEL = "oct-h"  # a model that knows totals goes here once there is one
TIME_LIMIT = 20


def demo(folder: Path) -> int:
    """Make the data, fit, and compare predictions with the known totals; return the exit code."""
    survey, totals = write_survey(folder)
    print(f"A made-up survey is in {survey}, known totals by area are in {totals}.\n")
    model, predictions = folder / "model.json", folder / "predictions.csv"
    command = ["fit", str(survey), "--target", "employed", "--drop", "person", "--model", MODEL]
    command += ["--max-depth", "2", "--time-limit", str(TIME_LIMIT), "--random-state", "0"]
    command += ["--out", str(model), "--predictions", str(predictions)]
    print("$ treewright " + " ".join(command) + "\n")
    code = treewright(command)
    if not model.exists() or code not in (0, 130):
        return code
    report = write_report(folder / "report.txt", model, survey, predictions, totals)
    print(f"report written to {folder / 'report.txt'}\n")
    print(report[report.index("Known totals") :], end="")
    if not hasattr(TableModel.read(str(model)).estimator, "totals_"):
        print(
            "\nThe people who answered are mostly employed, and this model learns from them alone:\n"
            "it ignores the known totals, so its counts for everybody else are off by the differences above."
        )
    return code


def write_report(path: Path, model: Path, survey: Path, predictions: Path, totals: Path) -> str:
    """Write the report with the known totals beside the predicted counts, and return its text."""
    people, known = read_table(survey), read_table(totals)
    by_area = {area: {label: int(known[label][i]) for label in ("no", "yes")} for i, area in enumerate(known["area"])}
    text = fit_report(
        TableModel.read(str(model)).estimator,
        people["employed"],
        read_table(predictions)["prediction"],
        title="Who is employed? A made-up survey",
        target="employed",
        totals=by_area,
        groups=people["area"],
    )
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    sys.exit(demo(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")))
