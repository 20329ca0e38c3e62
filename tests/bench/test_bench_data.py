"""Tables of a folder with a manifest."""

import gzip
import hashlib

import numpy as np
import pytest

import harness
from harness import FileSet, PaperSets
from treewright.exceptions import InvalidInputError

TABLE = (
    "a\tb\ttarget\n" + "\n".join(f"{a}\t{b}\t{t}" for a, b, t in [(1, 2, 7), (3, 4, 1), (3, 4, 1), (3, 4, 7)]) + "\n"
)


def folder_of(path, tables, hashed=True):
    lines = ["name\tpapers\tfile\tsha256\tnote"]
    for file, (name, papers, text) in tables.items():
        content = gzip.compress(text.encode()) if file.endswith(".gz") else text.encode()
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_bytes(content)
        lines.append(f'{name}\t{papers}\t{file}\t{hashlib.sha256(content).hexdigest() if hashed else ""}\tsaid "so')
    (path / "MANIFEST.tsv").write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(tmp_path):
    return folder_of(
        tmp_path,
        {
            "p/2_b.tsv.gz": ("b", "P;Q", TABLE),
            "p/1_a.tsv": ("a", "P", TABLE),
            "q/b.tsv": ("b", "R", TABLE.replace("7", "2")),
        },
    )


def loaded(source, folder):
    return {one.name: one.load(*one.paths, **one.parameters) for one in source.sets(folder)}


def test_tables_of_a_paper_by_the_order_of_their_files(folder):
    assert [one.name for one in PaperSets("P", harness.read_classes).sets(folder)] == ["a", "b"]
    assert [one.name for one in PaperSets("Q", harness.read_classes).sets(folder)] == ["b"]
    assert [one.name for one in PaperSets("P", harness.read_classes, ("b",)).sets(folder)] == ["b"]
    hashes = [one.parameters["sha256"] for one in PaperSets("P", harness.read_classes).sets(folder)]
    assert hashes == [
        [hashlib.sha256((folder / file).read_bytes()).hexdigest()] for file in ("p/1_a.tsv", "p/2_b.tsv.gz")
    ]


def test_classes_one_class_and_values(folder):
    data = loaded(PaperSets("P", harness.read_classes), folder)
    assert data["a"].X.tolist() == data["b"].X.tolist() == [[1, 2], [3, 4], [3, 4], [3, 4]]
    assert data["a"].y.tolist() == [1, 0, 0, 1] and data["a"].y.dtype.kind == "i"
    distinct = loaded(PaperSets("P", harness.read_classes, parameters={"distinct": True}), folder)["a"]
    assert (distinct.X.tolist(), distinct.y.tolist()) == ([[1, 2], [3, 4], [3, 4]], [1, 0, 1])
    # label 1 is class 1, and repeated rows are dropped
    one = loaded(PaperSets("P", harness.read_one_class), folder)["a"]
    assert (one.X.tolist(), one.y.tolist()) == ([[1, 2], [3, 4], [3, 4]], [0, 1, 0])
    kept = loaded(PaperSets("P", harness.read_one_class, parameters={"keep_duplicates": ["1_a"]}), folder)
    assert (kept["a"].y.tolist(), kept["b"].y.tolist()) == ([0, 1, 1, 0], [0, 1, 0])
    values = loaded(PaperSets("P", harness.read_values), folder)["a"]
    assert values.y.tolist() == [7.0, 1.0, 1.0, 7.0] and values.y.dtype.kind == "f"


def test_without_label_1_the_rarer_one_is_class_1(tmp_path):
    text = TABLE.replace("\t1\n", "\t5\n").replace("3\t4\t7", "8\t9\t5")
    folder = folder_of(tmp_path, {"a.tsv": ("a", "P", text)})
    assert loaded(PaperSets("P", harness.read_one_class), folder)["a"].y.tolist() == [1, 0, 0]


def test_of_more_rows_some_are_drawn_always_the_same(tmp_path):
    text = "a\ttarget\n" + "".join(f"{k}\t{k % 2}\n" for k in range(50))
    folder = folder_of(tmp_path, {"a.tsv": ("a", "P", text)})
    first, second = (
        loaded(PaperSets("P", harness.read_classes, parameters={"most_rows": 9}), folder)["a"] for _ in "12"
    )
    assert len(set(first.X[:, 0])) == 9 and np.array_equal(first.X, second.X)
    assert np.array_equal(first.y, first.X[:, 0] % 2)


def test_a_data_set_of_several_files(folder):
    (both,) = FileSet("both", ("p/1_a.tsv", "q/b.tsv"), lambda *paths, sha256: (paths, sha256), keep=True).sets(folder)
    assert both.paths == (folder / "p/1_a.tsv", folder / "q/b.tsv") and both.keep
    assert len(set(both.parameters["sha256"])) == 2


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (PaperSets("S", harness.read_classes), "no data set of the paper 'S'"),
        (PaperSets("P", harness.read_classes, ("c",)), "no 'c' for the paper 'P'"),
        (FileSet("x", ("p/3.tsv",), harness.read_classes), "no file 'p/3.tsv'"),
    ],
)
def test_what_the_manifest_lacks_is_told(folder, source, text):
    with pytest.raises(InvalidInputError, match=text):
        source.sets(folder)


def test_a_folder_must_be_named_and_have_a_manifest(tmp_path):
    with pytest.raises(InvalidInputError, match="--data"):
        PaperSets("P", harness.read_classes).sets(None)
    with pytest.raises(InvalidInputError, match=r"no MANIFEST\.tsv"):
        PaperSets("P", harness.read_classes).sets(tmp_path)
    (tmp_path / "MANIFEST.tsv").write_text("name\tsize\n")
    with pytest.raises(InvalidInputError, match="lacks the columns 'file', 'papers'"):
        PaperSets("P", harness.read_classes).sets(tmp_path)


def test_a_changed_file_or_other_tables_are_refused(folder, tmp_path):
    (folder / "p/1_a.tsv").write_text(TABLE.replace("3", "5"))
    with pytest.raises(InvalidInputError, match="sha256 differs"):
        loaded(PaperSets("P", harness.read_classes, ("a",)), folder)
    for text, why in ((TABLE.replace("target", "class"), "not 'target'"), (TABLE.replace("3", "x"), "not a table")):
        other = folder_of(tmp_path / why[:6], {"a.tsv": ("a", "P", text)}, hashed=False)
        with pytest.raises(InvalidInputError, match=why):
            loaded(PaperSets("P", harness.read_classes), other)
