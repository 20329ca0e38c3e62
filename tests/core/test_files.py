"""Files are written entirely or not at all, devices and pipes are written to, and a kill leaves nothing behind."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
from scipy import sparse

from treewright import OCTHClassifier
from treewright.cli import main
from treewright.core.files import passing_folder, replacing
from treewright.data.tables.files import read_table
from treewright.data.tables.writing import write_table
from treewright.graph.cache import FoundGraph, cached_graph
from treewright.tree.json_files import read_json, write_json

posix = pytest.mark.skipif(os.name != "posix", reason="devices, links and modes as on POSIX")


@pytest.fixture(scope="module")
def model():
    return OCTHClassifier(max_depth=1).fit([[0.0], [1.0]], ["a", "b"])


@pytest.fixture(params=["unnamed", "named", "without links"])
def system(request, monkeypatch):
    """Systems with files without names, without them, and without links to them."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    if request.param == "without links":

        def fail(*_, **__):
            raise OSError("no links here")

        monkeypatch.setattr(os, "link", fail)


def put(path, content):
    with replacing(path) as file:
        file.write(content)


def test_old_content_or_all_of_the_new(tmp_path, system):
    path = tmp_path / "a"
    put(path, b"old")
    with pytest.raises(RuntimeError), replacing(path) as file:
        file.write(b"half")
        file.flush()
        assert path.read_bytes() == b"old"
        raise RuntimeError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]
    put(path, b"new")
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["a"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_modes_are_kept_and_links_followed(tmp_path, system, mode):
    target, link, dangling = tmp_path / "target", tmp_path / "link", tmp_path / "dangling"
    put(target, b"1")
    (tmp_path / "plain").write_text("")
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode  # as any new file
    target.chmod(mode)
    link.symlink_to(target)
    put(link, b"2")
    assert link.is_symlink() and target.read_bytes() == b"2"
    assert stat.S_IMODE(target.stat().st_mode) == mode
    dangling.symlink_to(tmp_path / "new")
    put(dangling, b"3")
    assert dangling.is_symlink() and (tmp_path / "new").read_bytes() == b"3"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_root_keeps_the_owner(tmp_path, system):
    path = tmp_path / "a"
    path.write_text("old")
    os.chown(path, 12345, 54321)
    path.chmod(0o640)
    put(path, b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 54321, 0o640)


def device(path):
    """A null device of our own, so that nobody's is lost."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        with open(path, "wb") as file:
            file.write(b"x")
    except OSError:
        pytest.skip("no device can be made here")
    return path


@posix
def test_devices_are_written_to(tmp_path, model):
    null = device(tmp_path / "null")
    link = tmp_path / "link"
    link.symlink_to(null)
    for path in (null, link):
        model.save(path)
        write_json(path, {})
        put(path, b"any")
        assert stat.S_ISCHR(null.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "null"]


@posix
def test_pipes_are_written_to(tmp_path, model):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    model.save(pipe)
    reader.join(timeout=120)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "copy.json").write_bytes(read[0])
    assert OCTHClassifier.load(tmp_path / "copy.json").predict([[1.0]]).tolist() == ["b"]


@posix
def test_the_command_line_writes_to_devices(tmp_path, capsys):
    null = str(device(tmp_path / "null"))
    data = tmp_path / "data.csv"
    write_table(data, {"x": np.arange(8.0) ** 2, "y": np.repeat(["a", "b"], 4)})
    assert main(["fit", str(data), "--target", "y", "--out", null, "--report", null]) == 0
    assert stat.S_ISCHR(os.stat(null).st_mode)
    assert sorted(os.listdir(tmp_path)) == ["data.csv", "null"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files without names are Linux's")
def test_a_kill_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    put(path, b"old")
    code = (
        "import sys, time\nfrom treewright.core.files import replacing\n"
        f"with replacing({str(path)!r}) as file:\n"
        "    file.write(b'half')\n    file.flush()\n    print('now', flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"now\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert os.listdir(tmp_path) == ["a"] and path.read_bytes() == b"old"


WRITERS = {
    "json": lambda folder: write_json(folder / "m.json", {}),
    "csv": lambda folder: write_table(folder / "m.csv", {"a": [1]}),
    "parquet": lambda folder: write_table(folder / "m.parquet", {"a": [1]}),
    "graph": lambda folder: cached_graph(folder, np.zeros((2, 1)), lambda: FoundGraph(sparse.csr_array((2, 2)))),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_what_a_kill_has_left_is_removed(tmp_path, write):
    stale, recent, other = (tmp_path / f".{name}.tmp" for name in ("treewright-0123", "treewright-4567", "other-89"))
    for path in (stale, recent, other):
        path.write_text("half")
    long_ago = time.time() - 2 * 3600
    for path in (stale, other):
        os.utime(path, (long_ago, long_ago))
    write(tmp_path)
    assert not stale.exists()
    assert recent.exists()  # somebody may be writing it
    assert other.exists()  # not ours


def test_errors_name_the_file_of_the_user(tmp_path):
    missing = tmp_path / "no" / "m.json"
    with pytest.raises(FileNotFoundError) as caught:
        put(missing, b"")
    assert caught.value.filename == str(missing)
    with pytest.raises(IsADirectoryError) as caught:
        put(tmp_path, b"")
    assert caught.value.filename == str(tmp_path)
    assert os.listdir(tmp_path) == []


def test_two_writers_do_not_mix(tmp_path):
    path = tmp_path / "m.json"
    documents = [["a" * 100_000] * 3, ["b" * 100_000] * 3]

    def write(document):
        for _ in range(20):
            write_json(path, document)

    threads = [threading.Thread(target=write, args=(document,)) for document in documents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_json(path) in documents and os.listdir(tmp_path) == ["m.json"]


READER = """
import sys, time
from pathlib import Path
from treewright.data.tables.text_files import text_file
with text_file(Path(sys.argv[1])) as file:
    print(file.path, flush=True)
    time.sleep(600)
"""


@posix
def test_folders_of_processes_that_were_killed_are_removed_and_those_in_use_are_not(tmp_path, monkeypatch):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    table = tmp_path / "t.csv.gz"
    write_table(table, {"a": ["1", "2"], "b": ["x", "y"]})
    environment = os.environ | {"TMPDIR": str(temporary)}
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, str(table)], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    try:
        killed, living = (os.path.dirname(reader.stdout.readline().strip()) for reader in readers)
        assert sorted(os.listdir(temporary)) == sorted(map(os.path.basename, (killed, living)))
        readers[0].kill()
        readers[0].wait()
        assert os.path.exists(os.path.join(killed, "plain"))
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        with monkeypatch.context() as other:
            other.setattr(os, "geteuid", lambda: os.getuid() + 1)  # as somebody else would see them
            with passing_folder():
                assert os.path.exists(killed)
        mine = temporary / "treewright-notes"
        mine.mkdir()
        with passing_folder():
            assert not os.path.exists(killed)
        assert os.path.exists(os.path.join(living, "plain")) and mine.exists()
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
            reader.stdout.close()


def test_a_folder_without_a_lock_may_be_just_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fresh, left, link = (tmp_path / f".treewright-passing-{name}" for name in ("fresh", "left", "link"))
    for folder in (fresh, left):
        folder.mkdir()
    long_ago = time.time() - 2 * 3600
    os.utime(left, (long_ago, long_ago))
    link.symlink_to(tmp_path)
    with passing_folder() as folder:
        assert fresh.exists() and not left.exists() and link.exists()
        assert (folder / "a").parent == (folder / "b").parent
        assert sorted(os.listdir(tmp_path)) == sorted([fresh.name, link.name, (folder / "a").parent.name])
    assert sorted(os.listdir(tmp_path)) == sorted([fresh.name, link.name])


def test_tables_that_can_be_read_as_they_are_need_no_folder(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert read_table(tmp_path / "t.csv").n_rows == 1
