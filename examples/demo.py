"""The demo of ``make demo``: from a survey and known totals to labels, a tree and a report, in less than a minute.

Usage: python examples/demo.py [FOLDER], by default ``demo-output``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from make_survey import make_survey, write_survey

from treewright.app.table_model import TableModel
from treewright.cli import main as treewright
from treewright.data.tables.files import read_table

FEATURES = "region,area,age,education,household,income"
TIME_LIMIT = 40


def demo(folder: Path) -> int:
    """Make the data and fit; the command line says the rest. Return its exit code."""
    survey, totals = write_survey(folder)
    print(
        f"{survey}: a made-up register of people. Few were asked whether they are employed, and the employed\n"
        f"answered far more often. {totals}: how many of all others are employed, by area.\n"
    )
    command = ["fit", str(survey), "--target", "employed", "--totals", str(totals), "--groups", "area"]
    command += ["--features", FEATURES, "--estimator", "forest"]
    command += ["--time-limit", str(TIME_LIMIT), "--random-state", "0"]
    command += ["--out", str(folder / "model.zip"), "--predictions", str(folder / "predictions.csv")]
    command += ["--report", str(folder / "report.txt"), "--report", str(folder / "report.html")]
    print("$ treewright " + " ".join(command) + "\n", flush=True)
    code = treewright(command)
    if code == 0:
        answers, _, truth = make_survey()
        hidden = np.equal(answers["employed"], None)
        found = read_table(folder / "predictions.csv")
        right = np.asarray(found["prediction"])[hidden] == truth[hidden]
        model = TableModel.read(folder / "model.zip").tree_model
        by_tree = model.classes_[model.tree_.labels[np.asarray(found["leaf"], dtype=int)]][hidden] == truth[hidden]
        print(
            f"\nThis survey is made up, so the truth is known: of the {hidden.sum()} people without an answer "
            f"{right.mean():.1%} are\nlabelled rightly; the tree by itself is right on {by_tree.mean():.1%}. Totals "
            "are counts: that they are\nreached does not make each prediction right.\n\n"
            f"The report to show around is one file for any browser: {folder / 'report.html'}"
        )
    return code


if __name__ == "__main__":
    sys.exit(demo(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")))
