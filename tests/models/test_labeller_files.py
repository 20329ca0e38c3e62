"""Files of labellers: nothing is lost, and nothing else is in them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from treewright import TotalsClassifier, load_model
from treewright.app.planning import ESTIMATORS
from treewright.exceptions import ModelFileError
from treewright.models.labeller_files import read_labeller, write_labeller


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_files_of_all_estimators(name, tmp_path):
    """All types of such fits are on the list, and nothing is lost."""
    wrapped = ESTIMATORS[name]()
    if name in FEWER:
        wrapped.set_params(**FEWER[name])
    check_file(wrapped, {"a": 8, "b": 12}, tmp_path / "m.zip")


def test_the_file_of_a_class_without_labels(tmp_path):
    check_file(LogisticRegression(), {"a": 8, "d": 5}, tmp_path / "m.zip")


FEWER = {"forest": {"n_estimators": 5}, "extra-trees": {"n_estimators": 5}, "boosting": {"max_iter": 3}}


def check_file(wrapped, totals, path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    y = np.where(np.arange(60) < 30, np.array(["a", "b", "c"])[(X[:, 0] * 3).astype(int)], None)
    model = TotalsClassifier(wrapped, random_state=0).fit(X, y, totals=totals, allow_new_classes=True)
    write_labeller(path, model, {})
    back, document = read_labeller(path)
    assert document["format"] == "treewright-labeller"
    new = rng.random((50, 2))
    assert np.array_equal(back.predict(new), model.predict(new))
    assert np.array_equal(back.predict_proba(new), model.predict_proba(new))
    assert np.array_equal(back.transduce(new, {"a": 30}), model.transduce(new, {"a": 30}))


def test_a_file_has_no_training_rows(tmp_path):
    """Ten times the rows without a label do not make ten times the file, where no kernel machine keeps them."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(3000) < 30, np.arange(3000) % 2, -1)
    model = TotalsClassifier(LogisticRegression()).fit(rng.random((3000, 2)), y, totals={1: 1000})
    write_labeller(tmp_path / "m.zip", model, {})
    assert (tmp_path / "m.zip").stat().st_size < 30_000


def test_there_is_no_such_labeller(tmp_path):
    (tmp_path / "m.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(tmp_path / "m.zip")
