"""What numba compiles is kept wherever that can be, is told, and does not count to a time limit."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

import numba
import pytest

from treewright import warm_up
from treewright.cli import main
from treewright.core import compiled
from treewright.core.budget import Budget


def test_compiling_does_not_count(monkeypatch):
    budget = Budget(0.05)
    before = compiled.compiling_seconds()

    @numba.njit
    def loop(n):
        total = 0.0
        for i in range(n):
            total += i**0.5
        return total

    loop(3)
    spent = compiled.compiling_seconds() - before
    assert 0 < spent <= budget.elapsed
    left = budget.remaining
    assert left > 0.05 - (budget.elapsed - spent) - 1e-6
    loop(3)  # compiled by now
    assert compiled.compiling_seconds() - before == spent
    time.sleep(0.06)
    assert budget.over


def test_nested_and_running_compilations_count_once():
    clock = compiled._Clock()
    clock.on_start(None)
    clock.on_start(None)
    time.sleep(0.01)
    assert clock.total == 0.0 < clock.seconds()
    clock.on_end(None)
    clock.on_end(None)
    assert 0.01 <= clock.seconds() == clock.total < 5.0


LOOP = """
import sys, warnings
sys.path.insert(0, {folder!r})
warnings.simplefilter("always")
from treewright.core import compiled
import loops
print(compiled.compiling_seconds() > 0, loops.double(2.0), compiled.compiling_seconds() > 0)
"""
LOOPS = """
from treewright.core.compiled import njit

@njit("f8")
def double(x):
    return 2.0 * x
"""


def run_as_somebody(folder, **environment):
    """Use a loop of a module in `folder` as a user without a home whom modes of files bind; root they do not."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    kept |= {"HOME": str(folder / "nobody"), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    bound = []
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        if which("setpriv") is None:
            pytest.skip("root may write everywhere, and there is no setpriv")
        bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
    code = LOOP.format(folder=str(folder))
    return subprocess.run([*bound, sys.executable, "-c", code], env=kept, capture_output=True, text=True)


@pytest.fixture
def installed(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    yield tmp_path
    for folder in (tmp_path, tmp_path / "__pycache__"):
        if folder.is_dir():
            folder.chmod(0o755)  # for pytest to remove


def forbid_writing(folder):
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_a_user_without_a_home_gets_loops_that_are_not_kept_and_one_warning(installed):
    forbid_writing(installed)
    done = run_as_somebody(installed)
    assert done.stdout.split() == ["False", "4.0", "True"], done.stderr
    assert done.stderr.count("loops were compiled that cannot be kept") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr and "treewright warm-up" in done.stderr


def test_what_an_administrator_compiled_is_used_by_those_who_may_only_read(installed):
    code = LOOP.format(folder=str(installed))
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert list((installed / "__pycache__").glob("*.nbc"))
    forbid_writing(installed)
    done = run_as_somebody(installed)
    assert done.stdout.split() == ["False", "4.0", "False"] and not done.stderr


def test_a_cache_that_is_named_is_read_too_where_it_cannot_be_written(installed, tmp_path):
    cache = tmp_path / "cache"
    code = LOOP.format(folder=str(installed))
    named = {"NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env={**os.environ, **named})
    forbid_writing(installed)
    done = run_as_somebody(installed, **named)
    assert done.stdout.split() == ["False", "4.0", "False"] and not done.stderr


def test_files_that_cannot_be_read_are_made_anew(installed, tmp_path):
    code = LOOP.format(folder=str(installed))
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    forbid_writing(installed / "__pycache__")
    for path in (installed / "__pycache__").iterdir():
        path.chmod(0o000)
    installed.chmod(0o555)
    done = run_as_somebody(installed)
    assert done.stdout.split()[1] == "4.0", done.stderr


def test_no_folder_is_made_in_place_of_a_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as without a home and an entry for the user
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert compiled._files(run_as_somebody, compiled._InAHome) is None
    assert not list(tmp_path.iterdir())


def test_prepared_loops_are_compiled_once(installed, monkeypatch):
    code = f"""
import sys
sys.path.insert(0, {str(installed)!r})
from treewright.core import compiled, progress
import loops
compiled._LOOPS["treewright.loops"] = compiled._LOOPS["loops"]
sys.modules["treewright.loops"] = loops
with progress.reported(lambda event: event.part and print(event.stage, event.part)):
    print("compiled", compiled.prepare(["loops"]))
    print("compiled", compiled.prepare(["loops"]))
"""
    first, second = (
        set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split("\n"))
        for _ in range(2)
    )
    assert first == {"compiling for this machine, once, for some 1 s (1, 1)", "compiled 1", "compiled 0", ""}
    assert second == {"compiled 0", ""}


def test_words_for_types_are_those_of_numba():
    assert compiled._types_of("f8** i8 ro:i8* f8x4 b1*", {}) == (
        numba.float64[:, ::1],
        numba.int64,
        numba.types.Array(numba.int64, 1, "C", readonly=True),
        numba.types.UniTuple(numba.float64, 4),
        numba.boolean[::1],
    )


def test_every_module_with_loops_is_compiled_by_the_warm_up():
    source = Path(compiled.__file__).parent
    made = {path for path in source.rglob("*.py") if re.search(r'@njit\(\s*"', path.read_text())}
    warmed = []

    def prepare(modules):
        warmed.extend(modules)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "prepare", prepare)
        warm_up()
    assert made <= {source / (name.replace(".", "/") + ".py") for name in warmed}


def test_the_command_says_where_it_is_kept(capsys):
    assert main(["warm-up"]) == 0
    folder = capsys.readouterr().out.strip().rpartition("kept in ")[2]
    assert Path(folder).is_dir()
    assert main(["warm-up", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": folder, "seconds": 0.0}


def test_the_command_says_so_if_nothing_can_be_kept(capsys, monkeypatch):
    monkeypatch.setattr(compiled, "where_kept", lambda: None)
    assert main(["warm-up"]) == 2
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err
