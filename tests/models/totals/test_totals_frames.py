"""`TotalsClassifier()` on frames with text, dates and gaps: the default preprocessing of the command line."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from treewright import TotalsClassifier, estimated_accuracy
from treewright.data.tables.encoder import TableEncoder
from treewright.data.tables.files import Table
from treewright.exceptions import InvalidInputError
from treewright.models.labeller_files import read_labeller, write_labeller

N = 90
RNG = np.random.default_rng(0)
AGE = RNG.normal(40.0, 12.0, N).round()
JOB = RNG.choice(["baker", "clerk", "smith"], N).astype(object)
BORN = [datetime.date(1980, 1, 1) + datetime.timedelta(days=int(d)) for d in RNG.integers(0, 9000, N)]
MEMBER = RNG.random(N) < 0.4
TRUTH = np.where(AGE + 15 * (JOB == "smith") + RNG.normal(0, 4, N) > 46, "yes", "no").astype(object)
KNOWN = np.arange(N) < 36
Y = np.where(KNOWN, TRUTH, None)
TOTALS = {"yes": int(np.sum(TRUTH[~KNOWN] == "yes"))}
GAP = np.arange(N) % 9 == 4
pytestmark = pytest.mark.usefixtures("shortest_searches")


def columns():
    age = AGE.copy()
    age[GAP] = np.nan
    return {"age": age, "job": np.where(GAP[::-1], None, JOB), "born": BORN, "member": MEMBER}


def pandas_frame():
    frame = pd.DataFrame(columns())
    frame["born"] = pd.to_datetime(frame["born"])
    frame["job"] = frame["job"].astype("category")
    return frame


def polars_frame():
    return pl.DataFrame({name: pl.Series(name, list(values)) for name, values in columns().items()}).with_columns(
        pl.col("age").fill_nan(None)
    )


FRAMES = {"pandas": pandas_frame, "polars": polars_frame}


def quietly(function, *given, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*given, **more)


@pytest.fixture(scope="module")
def by_hand():
    """The same columns, encoded as the command line does it."""
    table = Table({**columns(), "member": ["true" if m else "false" for m in MEMBER]})
    encoder = quietly(TableEncoder.fit, table, table.columns, fill_gaps=True)
    return encoder, quietly(encoder.transform, table)[0]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_mixed_frame_is_labelled_as_its_numbers_are(kind, by_hand):
    frame = FRAMES[kind]()
    with pytest.warns(UserWarning, match=r"missing values are filled in: 'age' \(10 of them, by \d+\)"):
        model = TotalsClassifier(random_state=0).fit(frame, Y, totals=TOTALS)
    plain = TotalsClassifier(random_state=0).fit(by_hand[1], Y, totals=TOTALS)
    assert model.transduction_.tolist() == plain.transduction_.tolist()
    assert np.sum(model.transduction_[~KNOWN] == "yes") == TOTALS["yes"]
    assert np.array_equal(quietly(model.predict_proba, frame), plain.predict_proba(by_hand[1]))
    assert quietly(model.transduce, frame, {"yes": 30}).tolist() == plain.transduce(by_hand[1], {"yes": 30}).tolist()
    assert model.feature_names_in_.tolist() == list(columns()) and model.n_features_in_ == 4


def test_new_levels_are_told_and_other_tables_refused():
    model = quietly(TotalsClassifier(random_state=0).fit, pandas_frame(), Y, totals=TOTALS)
    new = pandas_frame().assign(job="tailor")
    with pytest.warns(UserWarning, match=r"'job' has levels that the model has not seen: 'tailor' \(90 rows\)"):
        model.predict(new)
    with pytest.raises(InvalidInputError, match="fitted to a frame with text, dates or gaps; give a frame"):
        model.predict(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(new.rename(columns={"job": "work"}))


def test_a_frame_of_numbers_is_as_it_was():
    frame = pd.DataFrame({"age": AGE, "member": MEMBER})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = TotalsClassifier(random_state=0).fit(frame, Y, totals=TOTALS)
    plain = TotalsClassifier(random_state=0).fit(frame.to_numpy(dtype=float), Y, totals=TOTALS)
    assert model.transduction_.tolist() == plain.transduction_.tolist()
    mixed = quietly(clone(model).fit, pandas_frame(), Y, totals=TOTALS)
    assert hasattr(mixed, "_encoder") and not hasattr(mixed.fit(frame, Y, totals=TOTALS), "_encoder")


def test_columns_that_cannot_be_used_are_named():
    frame = pandas_frame().assign(name=[*map(str, range(N - 1)), "none"])
    with pytest.raises(InvalidInputError, match="the text column 'name' has 90 different values .*because of 'none'"):
        TotalsClassifier().fit(frame, Y, totals=TOTALS)
    twice = pd.DataFrame(np.column_stack([JOB, JOB]), columns=["job", "job"])
    with pytest.raises(InvalidInputError, match="several columns of the same name"):
        TotalsClassifier().fit(twice, Y, totals=TOTALS)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("value", [datetime.timedelta(hours=3), datetime.time(8, 30)])
def test_times_and_durations_are_refused_and_not_taken_for_text(kind, value):
    """Dates become days; a duration of few values would be a category in silence."""
    columns = {"born": BORN, "job": [str(job) for job in JOB], "took": [value] * N}
    frame = pl.DataFrame(columns) if kind == "polars" else pd.DataFrame(columns)
    with pytest.raises(InvalidInputError, match="X has times or durations in column 'took'; .*length in hours"):
        TotalsClassifier().fit(frame, Y, totals=TOTALS)
    other = frame.drop("took") if kind == "polars" else frame.drop(columns="took")
    model = quietly(TotalsClassifier(random_state=0).fit, other, Y, totals=TOTALS)
    with pytest.raises(InvalidInputError, match="in column 'took'"):
        model.predict(frame)


def test_objects_that_are_numbers_are_numbers(by_hand):
    frame = pandas_frame().astype({"age": "Int64"}).astype({"age": object})
    model = quietly(TotalsClassifier(random_state=0).fit, frame, Y, totals=TOTALS)
    assert TableEncoder.from_dict(model._encoder) == by_hand[0]


def test_files_keep_what_became_of_the_columns(tmp_path):
    model = quietly(TotalsClassifier(random_state=0).fit, pandas_frame(), Y, totals=TOTALS)
    write_labeller(tmp_path / "m.zip", model, {})
    back, _ = read_labeller(tmp_path / "m.zip")
    assert np.array_equal(quietly(back.predict_proba, polars_frame()), quietly(model.predict_proba, pandas_frame()))


def test_accuracy_is_estimated_on_frames_too():
    found = estimated_accuracy(TotalsClassifier(random_state=0), pandas_frame(), Y, totals=TOTALS, n_splits=2)
    assert 0.5 < found.value <= 1 and found.n_labels == KNOWN.sum()
