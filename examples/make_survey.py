"""A survey-like data set, made up: a register of people, few of whom were asked whether they are employed.

Those who answered are not like the rest: the employed answered far more often. What is known besides is how
many of the others are employed, by area, as a statistical office would know it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from treewright.data.tables.writing import write_table

N_PEOPLE, N_ANSWERS = 1500, 120
REGIONS = ("north", "east", "south", "west")


def make_survey(seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    """Return the columns of the survey, those of the known totals, and the truth, which nobody knows in earnest.

    Parameters
    ----------
    seed : int
        Seed; the same seed gives the same data.

    Returns
    -------
    survey : dict of str to ndarray
        One row a person; ``employed`` is empty where nobody asked.
    totals : dict of str to ndarray
        One row an area: how many of the people without an answer are employed, and how many are not.
    truth : ndarray of str
        Whether each person is employed.
    """
    rng = np.random.default_rng(seed)
    region = rng.choice(len(REGIONS), N_PEOPLE, p=[0.2, 0.3, 0.35, 0.15])
    urban = rng.random(N_PEOPLE) < np.array([0.35, 0.8, 0.6, 0.3])[region]
    age = rng.integers(18, 76, N_PEOPLE)
    education = np.clip(np.round(rng.normal(11.5 + 1.5 * urban, 2.5)), 6, 20)
    household = 1 + rng.poisson(1.3, N_PEOPLE)
    # employment falls off at both ends of working life, rises with education, and differs between areas
    score = 1.0 - ((age - 42) / 13.0) ** 2 + 0.35 * (education - 12) + 0.7 * urban - 0.25 * (household - 2)
    employed = score + rng.logistic(scale=0.8, size=N_PEOPLE) > 0
    income = np.round(np.exp(rng.normal(6.9 + 0.06 * (education - 12) + 0.45 * employed, 0.35)), -1)

    odds = np.where(employed, 0.8, 0.2)  # who answers: mostly the employed
    asked = rng.choice(N_PEOPLE, N_ANSWERS, replace=False, p=odds / odds.sum())
    answer = np.full(N_PEOPLE, None, dtype=object)
    answer[asked] = np.where(employed[asked], "yes", "no")
    area = np.where(urban, "urban", "rural").astype(object)
    survey = {
        "person": np.arange(1, N_PEOPLE + 1),
        "region": np.array(REGIONS, dtype=object)[region],
        "area": area,
        "age": age,
        "education": education,
        "household": household,
        "income": income,
        "employed": answer,
    }
    others = np.equal(answer, None)
    names = ["rural", "urban"]
    totals = {
        "area": np.array(names, dtype=object),
        "yes": np.array([np.count_nonzero(others & (area == a) & employed) for a in names]),
        "no": np.array([np.count_nonzero(others & (area == a) & ~employed) for a in names]),
    }
    return survey, totals, np.where(employed, "yes", "no")


def write_survey(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """Write ``survey.csv`` and ``totals.csv`` to a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    survey, totals, _ = make_survey(seed)
    paths = folder / "survey.csv", folder / "totals.csv"
    write_table(paths[0], survey)
    write_table(paths[1], totals)
    return paths
