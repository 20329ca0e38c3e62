"""The first fit of a model compiles all that its later fits need, whatever their table."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import treewright as tw
from treewright.core import compiled

_RNG = np.random.default_rng(0)
X = _RNG.random((60, 4))
Y, THREE = np.arange(60) % 2, np.arange(60) % 3
FEW, FEW_OF_THREE = np.where(np.arange(60) < 30, Y, -1), np.where(np.arange(60) < 30, THREE, -1)
MIXED = np.where(X > 0.95, np.nan, np.floor(3 * X))
WEIGHT = 0.5 + _RNG.random(60)
ONCE = {"random_state": 0, "time_limit": 1.0}


def fits_of_trees(make, mixed=False, weighted=True, classes=True):
    """Tables of other sizes, types, classes, weights and gaps."""
    make().fit(X[:16, :2], Y[:16])
    make().fit(np.asfortranarray(X.astype(np.float32)), Y)
    if weighted:
        make().fit(X, Y, sample_weight=WEIGHT)
    if classes:
        make().fit(X, THREE)
    if mixed:
        make(categorical_features=[0, 1]).fit(MIXED, Y)


def fits_of_some_labels(make, mixed=False, sparsely=False, **more):
    make(**more).fit(X[:40, :2], FEW[:40])
    make(**more).fit(np.asfortranarray(X), FEW_OF_THREE)
    make(**more).fit(X, FEW, sample_weight=WEIGHT)
    if mixed:
        make(categorical_features=[0, 1], **more).fit(MIXED, FEW)
    if sparsely:
        make(**more).fit(sparse.csr_array(np.where(X > 0.5, X, 0.0)), FEW)


def maker(kind, **fixed):
    return lambda **more: kind(**{**fixed, **more})


SHALLOW = {"max_depth": 2, **ONCE}
FITS = {
    "octsvm": (tw.OCTSVMClassifier, lambda: fits_of_trees(maker(tw.OCTSVMClassifier, **SHALLOW), classes=False)),
    "resvm": (tw.RESVMClassifier, lambda: fits_of_trees(maker(tw.RESVMClassifier, **ONCE), classes=False)),
    "svm1odt": (tw.SVM1ODTClassifier, lambda: fits_of_trees(maker(tw.SVM1ODTClassifier, **SHALLOW), mixed=True)),
    "selected": (
        tw.SVM1ODTClassifier,
        lambda: fits_of_trees(maker(tw.SVM1ODTClassifier, **{**SHALLOW, "selection": "hull"}), classes=False),
    ),
    "laptao": (
        tw.LapTAOClassifier,
        lambda: fits_of_some_labels(maker(tw.LapTAOClassifier, max_depth=2, random_state=0), mixed=True, sparsely=True),
    ),
    "ssct": (tw.SSCTClassifier, lambda: fits_of_some_labels(maker(tw.SSCTClassifier, max_depth=2, random_state=0))),
    "lap-svm": (tw.LapSVMClassifier, lambda: fits_of_some_labels(maker(tw.LapSVMClassifier, random_state=0))),
}


@pytest.mark.parametrize("name", FITS)
def test_later_fits_of_a_model_compile_nothing(name, searches_alone):
    kind, fits = FITS[name]
    compiled.prepare(kind._loops)
    loops = [loop for some in compiled._LOOPS.values() for loop, _ in some]
    for loop in loops:
        loop._reset_overloads()
        loop.overloads.clear()
    declared = {(loop, form) for module in kind._loops for loop, form in compiled._forms(module)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits()
    used = {(loop, form) for loop in loops for form in loop.overloads}
    unforeseen = [(loop.py_func.__module__, loop.py_func.__name__, form) for loop, form in used - declared]
    assert not unforeseen
    assert used  # it has been looked at
