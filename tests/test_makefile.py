"""`make` where the checkout cannot be written to: a private copy takes its place."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOBODY = 65534
PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
echo python "$@"
"""
"""What says what Python is asked for."""
pytestmark = pytest.mark.skipif(os.name != "posix" or shutil.which("make") is None, reason="there is no make")


@pytest.fixture
def readonly():
    """A small read-only checkout and a folder of another user for what passes; root may write anywhere."""
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)
    checkout, passing = base / "checkout", base / "passing"
    (checkout / "src").mkdir(parents=True)
    passing.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "src" / "module.py").write_text("")
    (checkout / "python").write_text(PYTHON)
    for path in (checkout / "src" / "module.py", *checkout.glob("*.*"), checkout / "Makefile"):
        path.chmod(0o444)
    (checkout / "python").chmod(0o555)
    for path in (checkout / "src", checkout):
        path.chmod(0o555)
    if os.getuid() == 0:
        os.chown(passing, NOBODY, NOBODY)
    yield checkout, passing
    for path in (checkout, checkout / "src"):
        path.chmod(0o755)
    shutil.rmtree(base)


def make(checkout, passing, *words):
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(passing)}
    command = ["make", f"PYTHON={checkout / 'python'}", *words]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, **user)


def test_a_private_copy_is_used_and_kept_up_to_date(readonly):
    checkout, passing = readonly
    done = make(checkout, passing, "demo")
    assert done.returncode == 0 and "python examples/demo.py demo-output" in done.stdout
    (copy,) = passing.iterdir()
    assert f"a copy is used, with .venv/ and demo-output/ in it: {copy}" in done.stdout
    assert copy.stat().st_mode & 0o777 == 0o700 and (copy / "src" / "module.py").stat().st_mode & 0o200
    assert sorted(path.name for path in checkout.iterdir()) == ["Makefile", "pyproject.toml", "python", "src"]

    (checkout / "src").chmod(0o755)
    (checkout / "src" / "module.py").rename(checkout / "src" / "renamed.py")
    (checkout / "src").chmod(0o555)
    assert make(checkout, passing, "test").returncode == 0
    assert [path.name for path in copy.glob("src/*")] == ["renamed.py"] and list(passing.iterdir()) == [copy]


def test_a_folder_of_that_name_that_is_not_ours_is_not_used(readonly):
    checkout, passing = readonly
    make(checkout, passing, "demo")
    (copy,) = passing.iterdir()
    shutil.rmtree(copy)
    copy.symlink_to(checkout.parent)
    done = make(checkout, passing, "demo")
    assert done.returncode != 0 and "set TMPDIR" in done.stdout


def test_a_checkout_that_can_be_written_to_is_used_itself(readonly):
    checkout, passing = readonly
    checkout.chmod(0o777)
    done = make(checkout, passing, "demo")
    assert done.returncode == 0 and "python examples/demo.py demo-output" in done.stdout
    assert (checkout / ".venv").is_dir() and list(passing.iterdir()) == []


def test_loops_are_compiled_when_one_is_new_or_changed(readonly):
    checkout, passing = readonly
    for folder in (checkout, checkout / "src"):
        folder.chmod(0o777)
    building = "python setup.py --quiet build_ext --inplace"
    assert building not in make(checkout, passing, "demo").stdout  # installing has built all there are
    loops = checkout / "src" / "loops.pyx"
    loops.write_text("")
    before = loops.stat().st_mtime - 60
    built = checkout / ".venv" / ".built"
    os.utime(built, (before, before))  # clocks of files tick: both may have been written at the same time
    done = make(checkout, passing, "demo")
    assert building in done.stdout and "pip install" not in done.stdout
    assert building not in make(checkout, passing, "demo").stdout
    os.utime(built, (before, before))
    loops.touch()
    assert building in make(checkout, passing, "test").stdout


def test_a_copy_has_no_loops_that_are_gone_and_none_that_were_compiled_elsewhere(readonly):
    checkout, passing = readonly
    names = ("old.pyx", "old.pyi", "old.pxd", "old.abi3.so")
    (checkout / "src").chmod(0o755)
    for name in names:
        (checkout / "src" / name).write_text("")
    (checkout / "src").chmod(0o555)
    make(checkout, passing, "demo")
    (copy,) = passing.iterdir()
    assert {path.name for path in copy.glob("src/old*")} == set(names[:3])
    (checkout / "src").chmod(0o755)
    for name in names:
        (checkout / "src" / name).unlink()
    (checkout / "src").chmod(0o555)
    make(checkout, passing, "demo")
    assert [path.name for path in copy.glob("src/*")] == ["module.py"]
