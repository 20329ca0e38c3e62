"""Objectives of fixed fits are equal to or better than those recorded before; see ``kept_fits.py``."""

from __future__ import annotations

import json

import numpy as np
import pytest

import treewright
from tests.kept_fits import FITS, RECORD

KEPT = json.loads(RECORD.read_text())


@pytest.mark.parametrize("name", list(FITS))
def test_no_objective_is_worse_than_recorded(name):
    before, now = KEPT["fits"][name], FITS[name]()
    room = 1e-6 * max(1.0, abs(before["objective"]))
    assert now.status != "time_limit", "the fit was ended by the clock and says nothing"
    assert now.objective <= before["objective"] + room
    if before["bound"] is not None:
        assert now.bound is not None and now.bound <= now.objective
        # What was proven stays true: nothing is below the old bound, and no new bound above the old solution.
        assert now.objective >= before["bound"] - room
        assert now.bound <= before["objective"] + room
    if before["status"] == "optimal":
        assert now.status == "optimal"


def test_every_estimator_has_a_kept_fit_and_nothing_else_is_recorded():
    assert set(KEPT["fits"]) == set(FITS)
    assert {"commit", "date"} <= set(KEPT["recorded"])
    prefixes = {
        "BinOCTClassifier": "binoct",
        "C2RFClassifier": "c2rf",
        "FairOCTClassifier": "fair_oct",
        "LapSVMClassifier": "lap_svm",
        "LapTAOClassifier": "laptao_classifier",
        "LapTAORegressor": "laptao_regressor",
        "OCTClassifier": "oct_exact",
        "OCTHClassifier": "oct_h",
        "OCTSVMClassifier": "octsvm",
        "RESVMClassifier": "resvm",
        "S2OCTClassifier": "s2oct",
        "SSCTClassifier": "ssct",
        "SVM1ODTClassifier": "svm1odt",
        "SelfTrainingRegressor": "self_training",
        "TAOClassifier": "tao_classifier",
        "TAORegressor": "tao_regressor",
        "TotalsClassifier": "totals",
    }
    estimators = [name for name in treewright.__all__ if hasattr(getattr(treewright, name), "fit")]
    for name in estimators:
        assert any(fit.startswith(prefixes[name]) for fit in FITS), name


def test_recorded_objectives_are_numbers_with_bounds_below():
    for name, fit in KEPT["fits"].items():
        assert np.isfinite(fit["objective"]), name
        assert fit["bound"] is None or fit["bound"] <= fit["objective"], name
