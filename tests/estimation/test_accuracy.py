"""Accuracy from labels left out: weights by totals, intervals that cover, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from treewright import C2RFClassifier, SSCTClassifier, TotalsClassifier, estimated_accuracy
from treewright.data.folds import Twins
from treewright.exceptions import InfeasibleTotalsError, InvalidInputError


class FirstColumn(ClassifierMixin, BaseEstimator):
    """Scores are the first feature, whatever is fitted: what is left out makes no difference to them."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


def biased(seed, n=1500, chances=(0.03, 0.3)):
    """A rare class that is hard to tell and makes up most of the labels, in three regions that differ."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    truth = (rng.random(n) < np.where(region == "a", 0.1, np.where(region == "b", 0.2, 0.4))).astype(int)
    X = rng.normal(size=(n, 2)) + 1.3 * truth[:, None]
    known = rng.random(n) < np.asarray(chances)[truth]
    return X, truth, known, np.where(known, truth, -1), region


def totals_of(truth, known, region=None):
    def count(inside):
        return {c: int(np.sum(truth[inside] == c)) for c in (0, 1)}

    return count(~known) if region is None else {g: count(~known & (region == g)) for g in np.unique(region).tolist()}


def test_without_totals_a_sample_that_depends_on_the_class_is_not_seen_and_that_is_told():
    """Easy cases of a frequent class, which answers more often: the estimate is too high, and totals put it right."""
    rng = np.random.default_rng(0)
    truth = (rng.random(6000) < 0.35).astype(int)
    X = rng.normal(size=(6000, 2)) + 1.2 * truth[:, None]
    known = rng.random(6000) < np.where(truth == 0, 0.3, 0.04)
    y, totals = np.where(known, truth, -1), {1: int(truth[~known].sum())}
    model = TotalsClassifier(LogisticRegression(), random_state=0)
    for more, covers, shares in (({}, False, "given"), ({"totals": totals}, True, "totals")):
        model.fit(X, y, **more)
        right = np.mean(model.transduction_[~known] == truth[~known])
        found = estimated_accuracy(model, X, y, **more)
        assert (found.low <= right <= found.high) == covers and found.shares == shares
        assert found.value > right or covers
    part = estimated_accuracy(model, X, y, totals={1: (totals[1] - 9, totals[1] + 9)})
    assert part.shares == "found"


def test_classes_count_by_their_totals():
    X, truth, known, y, _ = biased(0)
    totals = totals_of(truth, known)
    found = estimated_accuracy(TotalsClassifier(FirstColumn()), X, y, totals=totals)
    # a cut of the first column at the total, found without any label: each label is right or wrong by itself
    cut = np.sort(X[~known, 0])[-totals[1]]
    right = (X[:, 0] >= cut) == truth
    recall = {c: right[known & (truth == c)].mean() for c in (0, 1)}
    assert found.recall == pytest.approx(recall)
    own = {c: right[known & (truth == c)] for c in (0, 1)}
    assert found.counts == {c: (own[c].sum(), len(own[c])) for c in (0, 1)}
    assert found.value == pytest.approx(sum(totals[c] * recall[c] for c in (0, 1)) / sum(totals.values()))
    assert found.n_labels == known.sum() and found.low < found.value < found.high and found.level == 0.95
    naive, reached = right[known].mean(), right[~known].mean()
    assert abs(found.value - reached) < abs(naive - reached) / 2
    wide = estimated_accuracy(TotalsClassifier(FirstColumn()), X, y, totals=totals, level=0.99)
    assert wide.low < found.low and found.high < wide.high and wide.value == found.value


def test_classes_count_by_group_where_they_have_labels_enough():
    X, truth, known, y, region = biased(1, n=3000)
    totals = totals_of(truth, known, region)
    found = estimated_accuracy(TotalsClassifier(FirstColumn()), X, y, totals=totals, groups=region)
    value, m = 0.0, int(np.sum(~known))
    for c in (0, 1):
        labels = {g: known & (truth == c) & (region == g) for g in totals}
        right = {}
        for g in totals:
            cut = np.sort(X[~known & (region == g), 0])[-totals[g][1]]
            right[g] = ((X[:, 0] >= cut) == truth)[labels[g]]
        few = [g for g in totals if len(right[g]) < 20]
        if few and sum(len(right[g]) for g in few) < 20:
            few = list(totals)
        for g in set(totals) - set(few):
            value += totals[g][c] / m * right[g].mean()
        if few:
            value += sum(totals[g][c] for g in few) / m * np.concatenate([right[g] for g in few]).mean()
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_cover_the_truth(grouped):
    covered, naive = 0, 0
    for seed in range(12):
        X, truth, known, y, region = biased(seed)
        given = {"totals": totals_of(truth, known, region if grouped else None)} | (
            {"groups": region} if grouped else {}
        )
        model = TotalsClassifier(GaussianNB(), random_state=0)
        found = estimated_accuracy(model, X, y, n_splits=5, **given)
        model.fit(X, y, **given)
        reached = np.mean(model.transduction_[~known] == truth[~known])
        covered += found.low <= reached <= found.high
        plain = np.mean(GaussianNB().fit(X[known], y[known]).predict(X[known]) == y[known])
        naive += found.low <= plain <= found.high
    assert covered >= 10
    assert naive < covered  # what the labels say of themselves is something else


def test_many_unlabelled_rows_are_drawn_from_in_each_group():
    X, truth, known, y, region = biased(2, n=4000)
    totals = totals_of(truth, known, region)
    model = TotalsClassifier(GaussianNB(), random_state=0)
    all_ = estimated_accuracy(model, X, y, totals=totals, groups=region, n_splits=3)
    some = estimated_accuracy(model, X, y, totals=totals, groups=region, n_splits=3, max_unlabeled=2000)
    assert some.value == pytest.approx(all_.value, abs=0.03) and some.value != all_.value
    intervals = {g: {1: (part[1] - 3, part[1] + 3)} for g, part in totals.items()}
    loose = estimated_accuracy(model, X, y, totals=intervals, groups=region, n_splits=3, max_unlabeled=2000)
    assert loose.value == pytest.approx(all_.value, abs=0.05)
    sex = np.where(X[:, 1] > 0, "f", "m")
    margins = [totals, totals_of(truth, known, sex)]
    crossed = estimated_accuracy(model, X, y, totals=margins, groups=[region, sex], n_splits=2, max_unlabeled=2000)
    assert crossed.value == pytest.approx(all_.value, abs=0.05)


def test_frames_weights_other_models_and_strings():
    X, truth, known, _, _ = biased(3)
    y = np.where(known, np.array(["no", "yes"])[truth], None)
    totals = {"yes": int(truth[~known].sum())}
    frame = pd.DataFrame(X, columns=["u", "v"])
    plain = estimated_accuracy(TotalsClassifier(GaussianNB(), random_state=0), frame, y, totals=totals, n_splits=3)
    assert set(plain.recall) == {"no", "yes"} and 0.5 < plain.low < plain.high < 1
    weight = np.where(known, 1.0, np.nan)
    weight[np.flatnonzero(known)[:5]] = 0.0
    found = estimated_accuracy(TotalsClassifier(GaussianNB()), frame, y, weight, totals=totals, n_splits=3)
    assert found.n_labels == plain.n_labels - 5
    shares = {"no": 1 - truth.mean(), "yes": truth.mean()}
    model = C2RFClassifier(RandomForestClassifier(5, random_state=0), random_state=0, time_limit=5)
    assert estimated_accuracy(model, X, y, totals=shares, totals_of="all", n_splits=2).value > 0.5
    without = estimated_accuracy(TotalsClassifier(LogisticRegression()), X, y, n_splits=3)
    labels = known & (truth >= 0)
    assert without.value == pytest.approx(
        sum(without.recall[name] * np.mean(truth[labels] == c) for c, name in enumerate(["no", "yes"]))
    )


def test_a_class_without_labels_widens_the_interval():
    X, truth, known, y, _ = biased(4)
    asked = {0: int(np.sum(truth[~known] == 0)) - 100, 1: int(np.sum(truth[~known] == 1)), 2: 100}
    found = estimated_accuracy(TotalsClassifier(GaussianNB()), X, y, totals=asked, allow_new_classes=True, n_splits=2)
    assert found.high - found.low > 100 / np.sum(~known)


def test_what_is_refused():
    X, truth, known, y, _ = biased(5, n=300)
    model = TotalsClassifier(GaussianNB())
    with pytest.raises(InvalidInputError, match="SSCTClassifier does not know totals"):
        estimated_accuracy(SSCTClassifier(), X, y)
    with pytest.raises(InvalidInputError, match="prefit"):
        estimated_accuracy(C2RFClassifier(RandomForestClassifier(), prefit=True), X, y)
    with pytest.raises(InvalidInputError, match="n_splits is 1"):
        estimated_accuracy(model, X, y, n_splits=1)
    with pytest.raises(InvalidInputError, match="level is 95"):
        estimated_accuracy(model, X, y, level=95)
    with pytest.raises(InfeasibleTotalsError, match="only"):
        estimated_accuracy(model, X, y, totals={1: 1000})
    few = np.full(300, -1)
    few[:3] = [0, 0, 1]
    with pytest.raises(InvalidInputError, match="two rows of each"):
        estimated_accuracy(model, X, few, totals={1: 10})


# ---------------------------------------------------------------------- rows that are equal


def cells(seed, n=1200, width=4):
    """Points of two regions and three classes that overlap."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["a", "b"], n, p=[0.6, 0.4])
    truth = np.array([rng.choice(3, p=[0.5, 0.3, 0.2] if g == "a" else [0.3, 0.3, 0.4]) for g in region])
    X = rng.normal(size=(n, width)) + np.eye(3, width)[truth]
    return X, truth, region


def counted(truth, region):
    return {g: {c: int(np.sum(truth[region == g] == c)) for c in range(3)} for g in ("a", "b")}


def as_array(X):
    return X


def as_frame(X):
    """Text and gaps beside numbers; one of them tells the points apart, so that rows are as equal as before."""
    frame = pd.DataFrame(X, columns=list("uvwx"))
    frame["side"] = np.where(X[:, 0] > 0, "left", None)
    frame["gap"] = np.where(X[:, 1] > 0, X[:, 1], np.nan)
    return frame


def forest_of(kind):
    forest = RandomForestClassifier(10, random_state=0)
    if kind is as_frame:
        numbers = ColumnTransformer([("numbers", "passthrough", list("uvwx"))])
        return TotalsClassifier(make_pipeline(numbers, forest), random_state=0)
    return TotalsClassifier(forest, random_state=0)


def copied(seed):
    """Rows of which the labelled ones stand there three times, what is known of them, and the truth of the others."""
    X, truth, region = cells(seed)
    known, hidden = np.arange(120), np.arange(120, len(X))
    rows = np.concatenate([np.repeat(known, 3), hidden])
    y = np.where(np.arange(len(rows)) < 360, truth[rows], -1)
    return X[rows], y, {"totals": counted(truth[hidden], region[hidden]), "groups": region[rows]}, truth[hidden]


def test_copies_of_labelled_rows_make_no_estimate_too_high(monkeypatch):
    """Copies of a label, itself among them, would tell it when it is left out."""
    covered, trusting = 0, 0
    for seed in range(6):
        X, y, given, truth = copied(seed)
        model = forest_of(as_array)
        found = estimated_accuracy(model, X, y, n_splits=5, **given)
        assert found.n_labels == 360 and found.n_splits == 5
        reached = np.mean(model.fit(X, y, **given).transduction_[360:] == truth)
        covered += found.low <= reached <= found.high
        with monkeypatch.context() as patch:  # without keeping copies together
            patch.setattr(Twins, "kept_together", lambda self, weight, rng: np.zeros(len(self.met), dtype=bool))
            free = estimated_accuracy(model, X, y, n_splits=5, **given)
        trusting += free.low <= reached <= free.high
    assert covered >= 5 and trusting == 0


@pytest.mark.parametrize("kind", [as_frame, csr_array])
def test_copies_are_seen_in_all_kinds_of_tables(kind, monkeypatch):
    X, y, given, truth = copied(0)
    model = forest_of(kind)
    found = estimated_accuracy(model, kind(X), y, n_splits=5, **given)
    reached = np.mean(model.fit(kind(X), y, **given).transduction_[360:] == truth)
    monkeypatch.setattr(Twins, "kept_together", lambda self, weight, rng: np.zeros(len(self.met), dtype=bool))
    free = estimated_accuracy(model, kind(X), y, n_splits=5, **given)
    assert found.low <= reached < 0.75 < free.low


def test_rows_of_few_kinds_make_no_estimate_too_low(monkeypatch):
    """Each of 48 kinds of rows has a class of its own, which only its twins tell."""
    found, apart, truths = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        kinds = np.array([[a, b, c] for a in range(4) for b in range(4) for c in range(3)], dtype=float)
        kind = rng.integers(0, len(kinds), 3000)
        truth = np.where(rng.random(3000) < 0.9, rng.integers(0, 3, len(kinds))[kind], rng.integers(0, 3, 3000))
        y = np.where(np.arange(3000) < 300, truth, -1)
        given = {"totals": {c: int(np.sum(truth[300:] == c)) for c in range(3)}}
        model = TotalsClassifier(RandomForestClassifier(10, random_state=0), random_state=0)
        found.append(estimated_accuracy(model, kinds[kind], y, n_splits=5, **given))
        truths.append(np.mean(model.fit(kinds[kind], y, **given).transduction_[300:] == truth[300:]))
        with monkeypatch.context() as patch:  # all twins left out together
            patch.setattr(Twins, "kept_together", lambda self, weight, rng: np.ones(len(self.met), dtype=bool))
            apart.append(estimated_accuracy(model, kinds[kind], y, n_splits=5, **given))
    assert sum(one.low <= true <= one.high for one, true in zip(found, truths, strict=True)) >= 5
    assert abs(np.mean([one.value for one in found]) - np.mean(truths)) < 0.03
    assert not any(one.low <= true <= one.high for one, true in zip(apart, truths, strict=True))


# ---------------------------------------------------------------------- little time


def test_little_time_leaves_out_fewer_labels_and_none_learns_from_fewer():
    """What was left out is as without a limit; the interval is that of these labels alone."""
    X, truth, known, y, _ = biased(3, n=9000)
    given = {"totals": totals_of(truth, known)}
    n, told = int(known.sum()), []
    short = estimated_accuracy(
        TotalsClassifier(FirstColumn()), X, y, **given, time_limit=0.0, progress=lambda part, of: told.append(of)
    )
    assert told == [10, 10] and (short.n_fits, short.n_splits, short.n_known, short.short) == (2, 10, n, True)
    assert 100 <= short.n_labels <= n / 5 + 2
    all_ = estimated_accuracy(TotalsClassifier(FirstColumn()), X, y, **given, time_limit=600.0)
    assert (all_.n_fits, all_.n_labels, all_.n_known, all_.short) == (10, n, n, False)
    # a fifth of the labels: an interval more than twice as wide (1 / sqrt(5), less what one label more and less do)
    assert 1.9 < (short.high - short.low) / (all_.high - all_.low) < 2.6
    some = estimated_accuracy(TotalsClassifier(FirstColumn()), X, y, **given, max_labels=short.n_labels)
    assert some._replace(short=True) == short._replace(short=True) and not some.short
    more = estimated_accuracy(TotalsClassifier(FirstColumn()), X, y, **given, max_labels=2 * n)
    assert more == all_  # all labels are enough, however many would be


def test_three_parts_of_few_labels_at_least():
    X, truth, known, y, _ = biased(4, n=600)
    found = estimated_accuracy(TotalsClassifier(FirstColumn()), X, y, totals=totals_of(truth, known), time_limit=0.0)
    assert known.sum() / 5 < 90 and found.n_fits == 3 and found.n_labels >= 3 * (known.sum() // 10)


def test_the_estimate_does_not_depend_on_the_time():
    """A model that learns from few labels: means over samples with and without time are the same but for chance."""
    ends = {0.0: [], 600.0: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 400)
        X = rng.normal(size=(400, 12)) + 0.5 * truth[:, None]
        y = np.where(np.arange(400) < 60, truth, -1)
        for limit, values in ends.items():
            model = TotalsClassifier(LogisticRegression(C=100.0))
            totals = {1: int(truth[60:].sum())}
            values.append(estimated_accuracy(model, X, y, totals=totals, time_limit=limit).value)
    difference = np.subtract(ends[0.0], ends[600.0])
    assert abs(difference.mean()) < 2.5 * difference.std(ddof=1) / np.sqrt(len(difference))


@pytest.mark.filterwarnings("error:The least populated class")
def test_rare_classes_are_left_out_first():
    """Three labels of a class in three of ten parts: two parts are enough for one of them."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 2000, p=[0.5, 0.4, 0.1])
    known = np.concatenate([np.flatnonzero(truth == k)[:m] for k, m in enumerate((300, 300, 3))])
    X, y = rng.normal(size=(2000, 2)) + truth[:, None], np.full(2000, -1)
    y[known] = truth[known]
    for seed in range(10):
        found = estimated_accuracy(TotalsClassifier(GaussianNB()), X, y, time_limit=0.0, random_state=seed)
        assert found.n_fits == 2 and set(found.recall) == {0, 1, 2}
