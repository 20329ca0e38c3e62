"""A lazy frame of polars, which has no rows, is refused with what to do wherever rows or labels are expected."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests.estimators_list import all_quick
from tests.examples import looped

from treewright import (
    LabeledKFold,
    TAOClassifier,
    TotalsClassifier,
    estimated_accuracy,
    find_wrong_labels,
    labeled_scorer,
    select,
)
from treewright.exceptions import InvalidInputError

A = np.random.default_rng(0).normal(size=(40, 2))
Y = (A[:, 0] > 0).astype(int)
FEW = np.where(np.arange(40) < 20, Y, -1)
FRAME = pl.DataFrame({"a": A[:, 0], "b": A[:, 1]})
LAZY = FRAME.lazy()
COLUMN = pl.LazyFrame({"c": np.zeros(40, dtype=int)})
FITTED = {
    "tao": TAOClassifier(1, max_iter=1).fit(FRAME, Y),
    "totals": TotalsClassifier(LogisticRegression()).fit(FRAME, FEW),
    "auto": TotalsClassifier().fit(FRAME, FEW),
}


def refused(call, name="X"):
    with pytest.raises(InvalidInputError, match=rf"^{name} is a LazyFrame of polars.*collect\(\)"):
        call()


def test_every_fit_says_what_to_do_with_lazy_rows():
    for model in [*all_quick(), TAOClassifier(teacher=LogisticRegression())]:
        refused(lambda: model.fit(LAZY, Y))  # noqa: B023


def test_what_else_a_fit_is_given():
    fit = TotalsClassifier(LogisticRegression()).fit
    refused(lambda: fit(FRAME, COLUMN), "y")
    refused(lambda: fit(FRAME, FEW, sample_weight=COLUMN), "sample_weight")
    refused(lambda: fit(FRAME, FEW, totals={0: {1: 5}}, groups=COLUMN), "groups")
    refused(lambda: fit(FRAME, FEW, totals=COLUMN), "totals")


@looped("kind", FITTED)
@looped("method", ["predict", "predict_proba", "apply", "decision_path", "transduce"])
def test_new_rows(kind, method):
    if hasattr(FITTED[kind], method):
        refused(lambda: getattr(FITTED[kind], method)(LAZY))


def test_other_places():
    refused(lambda: find_wrong_labels(LAZY, Y))
    refused(lambda: select(LAZY, Y, FITTED["tao"].tree_))
    refused(lambda: estimated_accuracy(TotalsClassifier(LogisticRegression()), LAZY, FEW))
    refused(lambda: list(LabeledKFold().split(LAZY, FEW)))
    refused(lambda: labeled_scorer()(FITTED["tao"], LAZY, FEW))
    refused(lambda: FITTED["tao"].export_text(X=LAZY))


def test_text_is_refused_with_its_column():
    frame = FRAME.with_columns(kind=pl.Series(["x", "y"] * 20))
    for call in (lambda: find_wrong_labels(frame, Y), lambda: select(frame, Y, FITTED["tao"].tree_)):
        with pytest.raises(InvalidInputError, match=r"X has text in column 'kind' \(such as 'x'\)"):
            call()
