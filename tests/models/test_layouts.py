"""Fits to tables of all layouts: loops that are compiled ahead take one kind of array, and get it whatever is given."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import treewright as tw

_RNG = np.random.default_rng(0)
X = _RNG.random((60, 4))
Y, THREE = np.arange(60) % 2, np.arange(60) % 3
FEW, FEW_OF_THREE = np.where(np.arange(60) < 30, Y, -1), np.where(np.arange(60) < 30, THREE, -1)
MIXED = np.where(X > 0.95, np.nan, np.floor(3 * X))
REGION = np.arange(60) % 3
WEIGHT = 0.5 + _RNG.random(60)
ONCE = {"random_state": 0, "time_limit": 1.0}


def fits_of_trees(make, mixed=False, weighted=True, classes=True, sparsely=False):
    """Tables of other sizes, types, classes, weights and gaps."""
    make().fit(X[:16, :2], Y[:16])
    make().fit(np.asfortranarray(X.astype(np.float32)), Y)
    if weighted:
        make().fit(X, Y, sample_weight=WEIGHT)
    if classes:
        make().fit(X, THREE)
    if mixed:
        make(categorical_features=[0, 1]).fit(MIXED, Y)
    if sparsely:
        make().fit(sparse.csr_array(np.where(X > 0.5, X, 0.0)), Y)


def fits_of_some_labels(make, mixed=False, sparsely=False, totals=False, **more):
    make(**more).fit(X[:40, :2], FEW[:40])
    make(**more).fit(np.asfortranarray(X), FEW_OF_THREE)
    make(**more).fit(X, FEW, sample_weight=WEIGHT)
    if mixed:
        make(categorical_features=[0, 1], **more).fit(MIXED, FEW)
    if sparsely:
        make(**more).fit(sparse.csr_array(np.where(X > 0.5, X, 0.0)), FEW)
    if totals:
        make(**more).fit(X, FEW_OF_THREE, totals={0: 10, 1: 10, 2: 10})
        make(**more).fit(X, FEW, totals={group: {0: 5, 1: (4, 6)} for group in range(3)}, groups=REGION)


def maker(kind, **fixed):
    return lambda **more: kind(**{**fixed, **more})


SHALLOW = {"max_depth": 2, **ONCE}
FITS = {
    "binoct": (tw.BinOCTClassifier, lambda: fits_of_trees(maker(tw.BinOCTClassifier, **SHALLOW))),
    "oct": (tw.OCTClassifier, lambda: fits_of_trees(maker(tw.OCTClassifier, **SHALLOW), mixed=True)),
    "oct-h": (tw.OCTHClassifier, lambda: fits_of_trees(maker(tw.OCTHClassifier, **SHALLOW))),
    "octsvm": (tw.OCTSVMClassifier, lambda: fits_of_trees(maker(tw.OCTSVMClassifier, **SHALLOW), classes=False)),
    "resvm": (tw.RESVMClassifier, lambda: fits_of_trees(maker(tw.RESVMClassifier, **ONCE), classes=False)),
    "svm1odt": (tw.SVM1ODTClassifier, lambda: fits_of_trees(maker(tw.SVM1ODTClassifier, **SHALLOW), mixed=True)),
    "selected": (
        tw.SVM1ODTClassifier,
        lambda: fits_of_trees(maker(tw.SVM1ODTClassifier, **{**SHALLOW, "selection": "hull"}), classes=False),
    ),
    "tao": (
        tw.TAOClassifier,
        lambda: fits_of_trees(maker(tw.TAOClassifier, max_depth=2, random_state=0), mixed=True, sparsely=True),
    ),
    "taught": (
        tw.TAOClassifier,
        lambda: fits_of_some_labels(maker(tw.TAOClassifier, max_depth=2, random_state=0, unlabeled=-1), teacher="auto"),
    ),
    "laptao": (
        tw.LapTAOClassifier,
        lambda: fits_of_some_labels(maker(tw.LapTAOClassifier, max_depth=2, random_state=0), mixed=True, sparsely=True),
    ),
    "ssct": (tw.SSCTClassifier, lambda: fits_of_some_labels(maker(tw.SSCTClassifier, max_depth=2, random_state=0))),
    "lap-svm": (tw.LapSVMClassifier, lambda: fits_of_some_labels(maker(tw.LapSVMClassifier, random_state=0))),
    "s2oct": (tw.S2OCTClassifier, lambda: fits_of_some_labels(maker(tw.S2OCTClassifier, **SHALLOW), totals=True)),
    "s2oct-axis": (
        tw.S2OCTClassifier,
        lambda: fits_of_some_labels(maker(tw.S2OCTClassifier, **SHALLOW), totals=True, max_split_features=1),
    ),
    "c2rf": (tw.C2RFClassifier, lambda: fits_of_some_labels(maker(tw.C2RFClassifier, **ONCE), totals=True)),
    "totals": (
        tw.TotalsClassifier,
        lambda: fits_of_some_labels(maker(tw.TotalsClassifier, random_state=0), totals=True),
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_tables_of_all_layouts_are_taken(name, searches_alone):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FITS[name][1]()


@pytest.mark.parametrize("kind", [tw.TAOClassifier, tw.OCTClassifier, tw.OCTHClassifier, tw.SVM1ODTClassifier])
def test_layouts_change_no_tree(kind, searches_alone):
    whole, model = np.floor(8 * X), kind(max_depth=2, random_state=0)
    tree = model.fit(whole, Y).tree_
    for same in (
        np.asfortranarray(whole),
        whole.astype(np.float32),
        whole.astype(np.int32),
        np.repeat(whole, 2, 1)[:, ::2],
    ):
        assert model.fit(same, Y).tree_ == tree
