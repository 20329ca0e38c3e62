"""The measures of the architecture, on packages that are small enough to count by hand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import architecture

SCRIPT = Path(architecture.__file__)
MODEL = """
from {first} import first
from {second} import second
from treewright.clock import now

class C2RFClassifier:
    def __init__(self, time_limit=None):
        self.time_limit = time_limit

    def get_params(self):
        return vars(self)

    def fit(self, X, y, totals):
        assert self.time_limit == 2.0 and sum(totals.values()) == (y == -1).sum()
        return first(lambda: second(now))
"""
FIRST = "from {third} import third\n_A, B = 1, 2\nname = 3\n\ndef first(call):\n    call()\n    third()\n"
SECOND = "C: float = 0.5\n\ndef second(call):\n    D = 1\n    call()\n"
THIRD = "def third():\n    pass\n\ndef never():\n    pass\n"


def source(folder, model, first, second, third):
    """A package whose fit calls a file after another; each is named by its module."""
    texts = {
        model: MODEL.format(first=first, second=second),
        first: FIRST.format(third=third),
        second: SECOND,
        third: THIRD,
        "treewright.clock": "def now():\n    pass\n",
        "treewright.unused": "E = 1\n",
        "treewright.__init__": f"from {model} import C2RFClassifier\n",
    }
    for name, text in texts.items():
        path = folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sum(text.count("\n") for text in texts.values())


def test_two_sources_side_by_side(tmp_path):
    layers, models = tmp_path / "layers", tmp_path / "models"
    lines = source(layers, *(f"treewright.{name}" for name in ("face.c2rf", "search.c2rf", "tree.c2rf", "search.more")))
    source(models, *(f"treewright.models.{name}" for name in ("c2rf.face", "c2rf.first", "tao.first", "c2rf.third")))
    command = [sys.executable, str(SCRIPT), "--models", "C2RFClassifier"]
    ended = subprocess.run(
        [*command, "--source", str(layers), "--source", str(models)], capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in ended.stdout.splitlines()]
    assert rows[0] == ["", str(layers), str(models)]
    assert rows[2:] == [
        ["files of the source", "7", "7"],
        ["lines", str(lines), str(lines)],
        ["constants", "4", "4"],
        # face, search, tree, clock, search: five files, one return to search; in models, one to c2rf, left for tao
        ["C2RF: files passed / returns", "5 / 1", "5 / 1"],
    ]


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ([], 0),
        (["a/1", "a/2", "b/1", "a/3", "b/2", "c/1"], 2),
        (["a/1", "budget", "a/2", "b/1", "budget2"], 0),
        (["a/b/1", "a/c/1", "a/b/2"], 0),
        (["models/a/1", "models/b/1", "models/a/2", "tree/1", "models/a/3"], 2),
    ],
)
def test_returns(files, count):
    assert architecture.returns([f"{file}.py" for file in files]) == count


def test_what_cannot_be_measured_is_told(tmp_path):
    for options, words in ((["--models", "Oak"], "no model 'Oak'"), (["--source", str(tmp_path)], "could not be")):
        ended = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, env=os.environ)
        assert ended.returncode and words in ended.stderr


@pytest.mark.usefixtures("shortest_searches")
def test_a_fit_of_ours_is_watched():
    root = architecture.OURS / "treewright"
    fit = architecture.a_fit("C2RFClassifier")
    files = architecture.files_entered(fit, root)
    assert len(set(files)) == len(files) and all((root / file).is_file() for file in files)
    assert any("c2rf" in file for file in files) and not any("tao" in file for file in files)
    assert sys.getprofile() is None
