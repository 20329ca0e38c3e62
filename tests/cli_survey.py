"""A small survey as a file, the command that fits it, and the line that a failure prints."""

import numpy as np

from treewright.data.tables.writing import write_table

ADDING_UP = {"--features", "--drop", "--na", "--set", "--report", "--margin"}
"""Options that docs/cli.md says may be given several times."""


def write_survey(folder):
    """A table with text, missing labels and an id; labels follow age and region."""
    rng = np.random.default_rng(0)
    n = 60
    age, region = rng.integers(18, 80, n), rng.choice(["north", "south"], n).astype(object)
    label = np.where((age < 50) | (region == "north"), "yes", "no").astype(object)
    label[rng.random(n) < 0.3] = None
    path = folder / "survey.csv"
    columns = {"id": [f"p{i}" for i in range(n)], "age": age, "region": region, "weight": rng.integers(1, 4, n)}
    write_table(path, {**columns, "employed": label})
    return path


def fit_arguments(survey, out, *more):
    command = ["fit", str(survey), "--target", "employed", "--drop", "id", "--model", "oct-h", "--out", str(out)]
    return changed([*command, "--random-state", "0", "--time-limit", "20"], *more)


def changed(command, *more):
    """A command with other options, which take the place of those of the same name that have one value."""
    kept = list(command)
    for option in more:
        if option in kept and option.startswith("--") and option not in ADDING_UP:
            at = kept.index(option)
            del kept[at : at + 2]
    return [*kept, *more]


def error_line(captured):
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("treewright: error: ")
    return lines[0]


def hard_arguments(folder, time_limit):
    """Random labels: the best tree is far from proven for a long time."""
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=300) for j in range(10)}
    write_table(folder / "hard.csv", {**columns, "y": rng.integers(0, 2, 300)})
    command = ["fit", str(folder / "hard.csv"), "--target", "y", "--out", str(folder / "m.json")]
    return [*command, "--max-depth", "3", "--time-limit", str(time_limit), "--random-state", "0"]
