"""Graphs on disk: found again, made anew where anything differs, and never an error."""

import numpy as np
import pytest
from scipy import sparse

from treewright.graph import FoundGraph, GraphSettings, affinity, cache, cached_graph, neighbor_graph


@pytest.fixture
def searches(monkeypatch):
    """How often neighbours were looked for."""
    made, search = [], affinity.nearest_neighbors
    monkeypatch.setattr(affinity, "nearest_neighbors", lambda *a, **k: made.append(1) or search(*a, **k))
    return made


def points(dtype=np.float64):
    return np.random.default_rng(0).random((40, 3)).astype(dtype)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_second_time_the_graph_comes_from_disk(tmp_path, searches, kind):
    X = kind(points())
    first = neighbor_graph(X, 5, 3.0, cache=tmp_path / "new" / "folder")
    second = neighbor_graph(X, 5, 3.0, cache=str(tmp_path / "new" / "folder"))
    assert len(searches) == 1
    np.testing.assert_array_equal(first.toarray(), second.toarray())
    assert [path.suffix for path in (tmp_path / "new" / "folder").iterdir()] == [".npz"]


@pytest.mark.parametrize(
    "change",
    [
        {"n_neighbors": 6},
        {"perplexity": 2.0},
        {"mutual": True},
        {"method": "exact"},
        {"seed": 1},
        {"X": points() + 1e-12},
        {"X": points(np.float32)},
        {"X": points()[::-1]},
        {"X": points().reshape(60, 2)},
        {"X": sparse.csr_array(points())},
    ],
)
def test_other_points_or_parameters_are_another_graph(tmp_path, searches, change):
    settings = {"X": points(), "n_neighbors": 5, "perplexity": 3.0, "cache": tmp_path}
    neighbor_graph(**settings)
    other = neighbor_graph(**(settings | change))
    assert len(searches) == 2
    np.testing.assert_array_equal(other.toarray(), neighbor_graph(**(settings | change | {"cache": None})).toarray())


@pytest.mark.parametrize(
    "change", [("_VERSION", cache._VERSION - 1), ("_version", lambda package: "9.9" if package == "faiss-cpu" else "")]
)
def test_another_engine_is_another_graph(tmp_path, searches, monkeypatch, change):
    for _ in range(2):
        neighbor_graph(points(), cache=tmp_path)
    assert len(searches) == 1
    monkeypatch.setattr(cache, *change)
    neighbor_graph(points(), cache=tmp_path)
    assert len(searches) == 2 and len(list(tmp_path.iterdir())) == 2


def torn(path):
    path.write_bytes(path.read_bytes()[:-200])


def rewritten(**change):
    def damage(path):
        with np.load(path) as file:
            arrays = dict(file)
        arrays |= {name: make(arrays[name]) for name, make in change.items()}
        np.savez(path, **arrays)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        torn,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"no graph"),
        lambda path: np.save(path.open("wb"), np.zeros(3)),
        lambda path: np.savez(path, other=np.zeros(3)),
        rewritten(data=lambda a: a.astype(object)),  # would be unpickled
        rewritten(data=lambda a: -a),
        rewritten(data=lambda a: a * np.arange(1, len(a) + 1)),
        rewritten(indices=lambda a: a + 1000),
        rewritten(indptr=lambda a: a[:-3]),
    ],
)
def test_a_broken_file_is_made_anew_with_a_warning(tmp_path, searches, damage):
    first = neighbor_graph(points(), cache=tmp_path)
    (path,) = tmp_path.iterdir()
    damage(path)
    with pytest.warns(UserWarning, match="cannot be read"):
        second = neighbor_graph(points(), cache=tmp_path)
    np.testing.assert_array_equal(first.toarray(), second.toarray())
    third = neighbor_graph(points(), cache=tmp_path)
    assert len(searches) == 2
    np.testing.assert_array_equal(first.toarray(), third.toarray())


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    graph = sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.warns(UserWarning, match="cannot be written"):
        assert cached_graph(tmp_path / "file", np.zeros((2, 1)), lambda: FoundGraph(graph)).W is graph
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# ---------------------------------------------------------------------- the parameters of estimators


def test_settings_of_estimators_make_a_graph_and_keep_it(tmp_path, searches):
    X = points()
    np.testing.assert_array_equal(GraphSettings().search(X, 1, 0).W.toarray(), neighbor_graph(X).toarray())
    searches.clear()
    for _ in range(2):
        GraphSettings(graph_cache=tmp_path).search(X, 1, 0)
    assert len(searches) == 1


@pytest.mark.parametrize("n", [1, 2, 4])
def test_small_tables_have_all_rows_as_neighbours(n):
    W = GraphSettings().search(points()[:n], 1, 0).W.toarray()
    np.testing.assert_allclose(W, (np.ones((n, n)) - np.eye(n)) / max(1, n - 1))
