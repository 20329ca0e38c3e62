"""Files of plain data: what is refused, what is kept."""

from __future__ import annotations

import os

import numpy as np
import pytest
from tests.examples import looped
from tree_strategies import random_tree

from treewright.exceptions import ModelFileError
from treewright.tree import read_json, tree_from_dict, tree_to_dict, write_json
from treewright.tree.json_files import parse_json

REFUSED = {
    "empty": (b"", "empty"),
    "blank": (b" \n\t ", "empty"),
    "nan": (b'{"a": NaN}', "NaN is not a JSON number"),
    "infinity": (b'{"a": Infinity}', "Infinity is not a JSON number"),
    "minus infinity": (b"[-Infinity]", "-Infinity is not a JSON number"),
    "overflow": (b"[1e999]", "number '1e999' is too large"),
    "long overflow": (b"[1" + b"0" * 5000 + b".0]", r"number '10+'\.\.\. is too large"),
    "long integer": (b"[1" + b"0" * 5000 + b"]", "too many digits"),
    "key twice": (b'{"a": {"b": 1, "c": 2, "b": 1}}', "key 'b' occurs twice"),
    "truncated": (b'{"a":\n [1, 2', "not JSON, or truncated: .* at line 2 column"),
    "two documents": (b"{} {}", "not JSON.* Extra data"),
    "comma": (b"[1,]", "not JSON"),
    "single quotes": (b"{'a': 1}", "not JSON"),
    "latin-1": ('{"a": "é"}'.encode("latin-1"), "not UTF-8: .* at byte 7"),
    "utf-16": ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf{}", "not JSON"),
    "control character": (b'["\x00"]', "not JSON"),
    "deep": (b"[" * 200_000 + b"]" * 200_000, "nested too deep"),
    "deep and open": (b'{"a":' * 200_000, "nested too deep"),
    "pickle": (b"\x80\x04\x95", "not UTF-8"),
}


@looped("case", REFUSED)
def test_read_json_refuses(case, tmp_path):
    content, message = REFUSED[case]
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        read_json(path)
    assert str(path) in str(caught.value)
    with pytest.raises(ModelFileError, match=message):
        parse_json(content)


def test_read_json_reads_what_write_json_writes(tmp_path):
    data = {"naïve ☃": [1, 2.5, -0.0, 1e-300, True, None, "\u2028"], "nested": {"": []}}
    for path in (tmp_path / "a.json", str(tmp_path / "b.json")):
        write_json(path, data)
        assert read_json(path) == data
    assert "naïve ☃".encode() in (tmp_path / "a.json").read_bytes()


def test_missing_files_stay_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        write_json(tmp_path / "none" / "model.json", {})


def test_what_is_no_regular_file(tmp_path):
    with pytest.raises(ModelFileError, match="a folder"):
        read_json(tmp_path)
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_json(os.devnull)
    (tmp_path / "file").write_text("{}")
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_json(tmp_path / "file" / "below")
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_json("with\0zero")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not a regular file"):
            read_json(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(ModelFileError, match="cannot be read: Permission denied"):
        read_json(path)


def test_size_limits(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(b"[1, 2]")
    assert read_json(path, max_bytes=6) == [1, 2]
    with pytest.raises(ModelFileError, match="6 bytes are too many, at most 5"):
        read_json(path, max_bytes=5)
    with pytest.raises(ModelFileError, match="7 bytes are too many, at most 6"):
        write_json(path, [1, 3], max_bytes=6)
    assert read_json(path) == [1, 2]


@pytest.mark.parametrize("data", [float("nan"), [float("inf")], {"a": "\ud800"}])
def test_write_json_refuses_values_that_json_has_not(data, tmp_path):
    path = tmp_path / "model.json"
    write_json(path, "old")
    with pytest.raises(ModelFileError, match="cannot be written as JSON"):
        write_json(path, data)
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    loop = []
    loop.append(loop)
    with pytest.raises(ModelFileError, match="Circular"):
        write_json(path, loop)
    assert read_json(path) == "old"
    assert os.listdir(tmp_path) == ["model.json"]


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    write_json(path, "old")

    def fail(*_):
        raise OSError("disk full")

    for function in ("os.replace", "os.fsync"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
            patch.setattr(function, fail)
            write_json(path, "new")
        assert read_json(path) == "old"
        assert os.listdir(tmp_path) == ["model.json"]
    with pytest.raises(OSError):
        write_json(tmp_path, "a folder")


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as on POSIX")
def test_links_and_permissions_are_kept(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    write_json(target, 1)
    plain = tmp_path / "plain"
    plain.write_text("")
    assert target.stat().st_mode == plain.stat().st_mode  # as any new file, not private
    target.chmod(0o640)
    link.symlink_to(target)
    write_json(link, 2)
    assert link.is_symlink()
    assert read_json(target) == 2
    assert target.stat().st_mode & 0o777 == 0o640


def test_files_of_trees(tmp_path):
    tree = random_tree(np.random.default_rng(0), 20)
    write_json(tmp_path / "tree.json", tree_to_dict(tree))
    assert tree_from_dict(read_json(tmp_path / "tree.json")) == tree
