"""A small register as files, and the command that fits it."""

import numpy as np

from treewright.data.tables.writing import write_table

N, AREAS = 160, np.array(["north", "south"], dtype=object)


def made(seed):
    """Columns of a register, and the truth; two features and the area say something of it."""
    rng = np.random.default_rng(seed)
    area = rng.integers(0, 2, N)
    x, kind = rng.normal(size=(N, 2)), rng.choice(["a", "b", "c"], N).astype(object)
    truth = np.where(x @ [2.0, 1.0] + (kind == "a") + rng.logistic(size=N) > 0.5 + area, "yes", "no").astype(object)
    return {"x": x[:, 0], "v": x[:, 1], "kind": kind, "area": AREAS[area]}, truth


def totals_of(columns, truth, rows):
    found = {"area": AREAS}
    for label in ("yes", "no"):
        found[label] = [int(np.sum((truth == label) & rows & (columns["area"] == area))) for area in AREAS]
    return found


def register(folder):
    columns, truth = made(0)
    rng = np.random.default_rng(1)
    asked = rng.random(N) < np.where(truth == "yes", 0.4, 0.2)
    write_table(folder / "register.csv", {**columns, "z": np.where(asked, truth, None)})
    write_table(folder / "totals.csv", totals_of(columns, truth, ~asked))
    return columns, truth, asked


def command(folder, *more):
    fit = ["fit", str(folder / "register.csv"), "--target", "z", "--totals", str(folder / "totals.csv")]
    return [*fit, "--groups", "area", "--random-state", "0", "--out", str(folder / "m.zip"), *more]
