"""The promises of estimators about fits of the same data again: by the same solver, in other order, names and units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.contracts.cases import SOLVERS
from tests.contracts.estimators import FITS, fits_of, predicted, run
from tests.contracts.promised import each, moved, plain, reordered
from tests.kept_fits import Stump

pytestmark = pytest.mark.usefixtures("shortest_searches")


# ---------------------------------------------------------------------- 7: repetition


def same(first: Any, second: Any, data: dict[str, Any]) -> None:
    """Check that two fits are the same model: tree, labels, objective, predictions."""
    assert getattr(first, "tree_", None) == getattr(second, "tree_", None)
    assert getattr(first, "status_", None) == getattr(second, "status_", None)
    for name in ("objective_", "bound_", "weights_", "dual_coef_", "transduction_"):
        if hasattr(first, name) and np.asarray(getattr(first, name)).dtype.kind in "if":
            assert np.array_equal(getattr(first, name), getattr(second, name)), name
    assert np.array_equal(predicted(first, data), predicted(second, data))


@each(7, given=[fit for fit in fits_of(7) if not fit.branches])
def test_7_the_same_fit_gives_the_same_model(fit):
    data = fit.data()
    same(plain(fit), run(fit, data), data)


@pytest.mark.parametrize("solver", SOLVERS)
@each(7, given=[fit for fit in FITS if fit.branches])
def test_7_the_same_solver_gives_the_same_model_and_all_the_same_objective(fit, solver):
    best = plain(fit)
    first = best if solver == best.solver else run(fit, solver=solver)
    assert first.status_ == "optimal"
    same(first, run(fit, solver=solver), fit.data())
    assert first.objective_ == pytest.approx(best.objective_, rel=2 * first.gap, abs=1e-6)


# ---------------------------------------------------------------------- 8: order, names, units


@each(8)
def test_8_the_order_of_rows_does_not_matter(fit):
    data = fit.data()
    order = np.random.default_rng(0).permutation(len(data["X"]))
    before, turned = plain(fit), run(fit, reordered(data, order))
    assert same_tree(before, turned)
    if hasattr(before, "objective_"):
        assert turned.objective_ == pytest.approx(before.objective_, rel=1e-9, abs=1e-9)
    assert alike(predicted(turned, data), predicted(before, data))
    if hasattr(before, "transduction_"):
        assert alike(turned.transduction_, before.transduction_[order])


def same_tree(first: Any, second: Any) -> bool:
    """Equal splits and labels, and values that are equal but for rounding; or no trees."""
    if not hasattr(first, "tree_"):
        return not hasattr(second, "tree_")
    one, two = first.tree_, second.tree_
    exact = ("left", "right", "weights", "threshold", "labels")
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in exact) and all(
        getattr(one, name) is None or np.allclose(getattr(one, name), getattr(two, name), rtol=1e-9, atol=1e-9)
        for name in ("values", "slopes")
    )


def alike(first: np.ndarray, second: np.ndarray) -> bool:
    """Equal labels, or numbers that are equal but for rounding."""
    return np.allclose(first, second, rtol=1e-9) if first.dtype.kind == "f" else np.array_equal(first, second)


@each(8)
def test_8_names_of_features_and_classes_do_not_matter(fit):
    data = fit.data()
    frame = pd.DataFrame(data["X"], columns=[f"column {j}" for j in range(data["X"].shape[1])])
    names = {-1: -1, 0: "u", 1: "v", 2: "w"} if "Classifier" in fit.kind else {}
    renamed = data | {"X": frame}
    if names:
        renamed["y"] = np.array([names[k] for k in data["y"].tolist()], dtype=object)
    if "totals" in data:
        of = data["totals"]
        renamed["totals"] = (
            {g: {names[k]: n for k, n in part.items()} for g, part in of.items()}
            if "groups" in data
            else {names[k]: n for k, n in of.items()}
        )
    before, named = plain(fit), run(fit, renamed)
    assert getattr(before, "tree_", None) == getattr(named, "tree_", None)
    assert predicted(named, renamed).tolist() == [names.get(k, k) for k in predicted(before, data).tolist()]


@each(
    8,
    "oct-h",
    "oct-h-priced",
    "oct",
    "oct-mip",
    "binoct",
    "fair-oct",
    "s2oct",
    "s2oct-groups",
    "s2oct-hard",
    "s2oct-few",
    "c2rf-paper",
)
def test_8_the_order_of_classes_does_not_matter_to_a_proven_objective(fit):
    data = fit.data()
    turn = {-1: -1, 0: 2, 1: 1, 2: 0} if 2 in data["y"] else {-1: -1, 0: 1, 1: 0}
    turned = data | {"y": np.array([turn[k] for k in data["y"].tolist()])}
    if "totals" in data:
        of = data["totals"]
        turned["totals"] = (
            {g: {turn[k]: n for k, n in part.items()} for g, part in of.items()}
            if "groups" in data
            else {turn[k]: n for k, n in of.items()}
        )
    settings = (
        {"estimator": [Opposite(m.feature, m.threshold) for m in fit.make().estimator]} if "c2rf" in fit.name else {}
    )
    before, other = plain(fit), run(fit, turned, **settings)
    assert before.status_ == other.status_ == "optimal"
    assert other.objective_ == pytest.approx(before.objective_, rel=2 * before.gap, abs=1e-6)


class Opposite(Stump):
    """The same votes where classes have changed their numbers."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[(X[:, self.feature] <= self.threshold).astype(int)]


EXACT_UNITS = [fit for fit in fits_of(8) if fit.name not in ("c2rf-paper", "totals", "totals-forest", "c2rf")]
"""Without stumps at given thresholds, and without estimators of scikit-learn, which know units."""


@each(8, given=EXACT_UNITS)
def test_8_units_of_features_do_not_matter(fit, monkeypatch):
    # Numbers are made short in the units of the data, in tens: which digits that leaves is the only thing that units
    # decide, and where nothing is claimed of an objective it may differ by them. No row changes sides by it.
    monkeypatch.setattr("treewright.models.s2oct.fit.rounded_tree", lambda tree, *rest: tree)
    data = fit.data()
    before = plain(fit)
    if fit.kind == "S2OCTClassifier":  # it scales features beyond [-100, 100] only: these are beyond it in both units
        data = moved(data, 256.0, 0.0)
        before = run(fit, data)
    # Powers of two and whole numbers, so that nothing is rounded.
    factor, shift = np.array([4.0, 2.0, 16.0, 1.0]), np.array([8.0, 1024.0, -16.0, 3.0])
    other = moved(data, factor, shift)
    scaled = run(fit, other)
    if hasattr(before, "objective_"):
        assert scaled.objective_ == pytest.approx(before.objective_, rel=1e-9, abs=1e-9)
    assert alike(predicted(scaled, other), predicted(before, data))


@each(8, "s2oct", "s2oct-taught", "s2oct-hard", "s2oct-few", "s2oct-groups", "s2oct-taught-groups")
def test_8_a_shift_of_features_does_not_matter(fit):
    data = fit.data()
    before, other = plain(fit), run(fit, moved(data, 1.0, [8.0, -1024.0]))
    assert other.objective_ == pytest.approx(before.objective_, rel=1e-9, abs=1e-9)
    assert np.array_equal(other.transduction_, before.transduction_)


@each(
    8,
    "oct-h",
    "oct-h-priced",
    "oct",
    "oct-mip",
    "binoct",
    "fair-oct",
    "s2oct",
    "s2oct-groups",
    "s2oct-hard",
    "s2oct-few",
)
def test_8_the_order_of_features_does_not_matter_to_a_proven_objective(fit):
    data = fit.data()
    before, turned = plain(fit), run(fit, data | {"X": data["X"][:, ::-1]})
    assert before.status_ == turned.status_ == "optimal"
    assert turned.objective_ == pytest.approx(before.objective_, rel=2 * before.gap, abs=1e-6)


@each(8, "s2oct-hard", "s2oct-few")
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**20])
def test_8_units_of_weights_do_not_matter(fit, factor):
    """Prices of errors and of missed totals in other units give the same trees."""
    data = fit.data()
    before = plain(fit)
    other = run(fit, data | {"sample_weight": data["sample_weight"] * factor}, penalty=before.penalty * factor)
    assert other.status_ == before.status_ == "optimal"
    assert other.objective_ / factor == pytest.approx(before.objective_, rel=2 * before.gap)
