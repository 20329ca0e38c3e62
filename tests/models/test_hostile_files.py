"""Model files that no fit writes: each is refused in our words, or gives an answer; none is walked for ever."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from treewright import C2RFClassifier, TotalsClassifier
from treewright.estimators.fitted_trees import is_tree
from treewright.estimators.model import Model
from treewright.models.labeller_files import write_labeller
from treewright.optimize.settings import SearchSettings, TeacherSettings

MODELS = {
    "forest": lambda: TotalsClassifier(RandomForestClassifier(2, max_depth=3), random_state=0),
    "boosting": lambda: TotalsClassifier(HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2)),
    "votes": lambda: C2RFClassifier(ExtraTreesClassifier(3, max_depth=3), random_state=0),
    "auto": lambda: TotalsClassifier(random_state=0),
}
SOME = {"auto": 9}
"""Changed files; of others 20."""


@pytest.mark.parametrize("name", MODELS)
def test_changed_files_are_refused_or_answer(name, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(np.arange(60) < 30, (X[:, 0] > 0).astype(int), -1)
    settings = SearchSettings(teacher=TeacherSettings(n_trees=3, refined_trees=3, boosted_rounds=3))
    monkeypatch.setattr(Model, "_search_settings", settings)
    write_labeller(tmp_path / "m.zip", MODELS[name]().fit(X, y, totals={1: 15}), {})
    script = Path(__file__).parents[1] / "hostile_files.py"
    seeds = ["-1", str(SOME.get(name, 20))]
    command = [sys.executable, str(script), str(tmp_path / "m.zip"), str(tmp_path / "x.zip"), *seeds]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"it hangs in {(error.stdout or b'').decode().splitlines()[-1]}")
    assert found.returncode == 0, found.stdout[-200:] + found.stderr[-2000:]
    lines = found.stdout.splitlines()
    assert "lead back" in lines[0]
    assert sum(line.endswith("read") for line in lines) > 5  # much of a file does not matter to what it says


def test_what_a_tree_is():
    assert is_tree([1, 2, -1, -1, -1], [4, 3, -1, -1, -1], [False, False, True, True, True])
    assert is_tree([-1], [-1], [True])
    assert not is_tree([], [], [])
    for left, right in (([1, 0, -1], [2, 2, -1]), ([1, -1, -1], [1, -1, -1]), ([1, -1, -1], [3, -1, -1])):
        assert not is_tree(left, right, np.array(left) == -1)
