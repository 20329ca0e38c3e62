"""Model files of version 1, which an earlier treewright wrote; beside each stands what it said of the model."""

import json
from pathlib import Path

import numpy as np
import pytest

from treewright import load_model
from treewright.exceptions import ModelFileError

FILES = sorted((Path(__file__).parent / "old_files").glob("*.json"))
THIRD = {"oct_h": "bound", "oct_h_local": "bound", "s2oct": "bound", "tao": "loss", "tao_regressor": "loss"}
THIRD |= {"ssct": "n_leaves", "laptao": "residual", "laptao_regressor": "residual"}
NEW_NAMES = {
    "s2oct": {"bound": "max_coefficient", "margin": "margin_rule", "n_trees": "n_estimators"},
    "ssct": {"w": "supervision"},
    "laptao": {"tree": "estimator", "multiplier": "multiplier_rule"},
    "laptao_regressor": {"tree": "estimator", "multiplier": "multiplier_rule"},
}
SPLITS = {"oblique": None, "axis": 1}
HISTORY = ["seconds", "mu", "label_loss", "smoothness", "price", "residual", "moved"]


def written(path, tmp_path, **changes):
    found = json.loads(path.read_text())
    document = found["document"]
    (tmp_path / "model.json").write_text(json.dumps(document | {"fit": document["fit"] | changes}))
    return tmp_path / "model.json", document, found["expect"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_files_are_read(path, tmp_path):
    file, document, expect = written(path, tmp_path)
    assert document["version"] == 1
    model = load_model(file)
    assert type(model).__name__ == document["estimator"]
    assert model.predict(np.array(expect["rows"])).tolist() == expect["predictions"]
    status = "unproven" if path.stem == "oct_h_local" else expect["status"]
    assert (model.status_, model.objective_, model.solve_time_) == (status, expect["objective"], expect["solve_time"])
    assert hasattr(model, "bound_") == ("bound" in expect)
    for name in ("bound", "n_iter", "alpha", "best_iter"):
        assert getattr(model, f"{name}_", None) == expect.get(name)
    columns = ["seconds", "objective", THIRD[path.stem]]
    assert [list(row) for row in model.trace_[columns].tolist()] == expect["trace"]
    if "history" in expect:
        assert [list(row) for row in model.trace_[HISTORY].tolist()] == expect["history"]
        words = {"rounds": "all rounds are done", "settled": "the model did not change any more"}
        assert model.reason_ == words[expect["stop_reason"]]
    given = {NEW_NAMES.get(path.stem, {}).get(name, name): value for name, value in document["parameters"].items()}
    if "splits" in given:
        given["max_split_features"] = SPLITS[given.pop("splits")]
    assert {name: model.get_params()[name] for name in given} == given
    model.save(tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["version"] == 2 and again["tree"] == document["tree"]
    assert np.array_equal(load_model(tmp_path / "again.json").trace_, model.trace_)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("oct_h", {"status": "infeasible"}),
        ("oct_h", {"bound": 100.0}),
        ("oct_h", {"trace": [[0.0, 1.0]]}),
        ("oct_h", {"trace": None}),
        ("tao", {"solve_time": -1.0}),
        ("laptao", {"stop_reason": "tired"}),
        ("laptao", {"history": []}),
        ("laptao", {"history": [[1.0]]}),
        ("laptao", {"history": 7}),
    ],
)
def test_damaged_old_files_are_refused(name, changes, tmp_path):
    file, document, _ = written(FILES[0].parent / f"{name}.json", tmp_path, **changes)
    with pytest.raises(ModelFileError, match="model.json"):
        load_model(file)
    for key in document["fit"]:
        lost = document | {"fit": {k: v for k, v in document["fit"].items() if k != key}}
        file.write_text(json.dumps(lost))
        with pytest.raises(ModelFileError, match="model.json"):
            load_model(file)


@pytest.mark.parametrize("kind", ["oblique", "axis"])
@pytest.mark.parametrize("name", ["tao", "tao_regressor", "laptao", "laptao_regressor"])
def test_kinds_of_splits_became_numbers_of_features(name, kind, tmp_path):
    """In files of version 2 too, which had both words in turn."""
    document = json.loads((FILES[0].parent / f"{name}.json").read_text())["document"]
    (tmp_path / "model.json").write_text(json.dumps(document))
    load_model(tmp_path / "model.json").save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["version"] == 2 and document["parameters"].pop("max_split_features") is None
    document["parameters"]["splits"] = kind
    (tmp_path / "model.json").write_text(json.dumps(document))
    assert load_model(tmp_path / "model.json").max_split_features == SPLITS[kind]
    for damage in ("round", 1, ["axis"]):
        document["parameters"]["splits"] = damage
        (tmp_path / "model.json").write_text(json.dumps(document))
        with pytest.raises(ModelFileError, match="splits"):
            load_model(tmp_path / "model.json")


def test_other_estimators_never_had_kinds_of_splits(tmp_path):
    document = json.loads((FILES[0].parent / "ssct.json").read_text())["document"]
    document["parameters"]["splits"] = "axis"
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="unknown or unusable parameters"):
        load_model(tmp_path / "model.json")
