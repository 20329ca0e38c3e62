"""Facts of made fits for tests of reports: real labels within totals, and trees by hand."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from treewright import OCTHClassifier, TotalsClassifier
from treewright.estimation.accuracy import AccuracyEstimate
from treewright.optimize.record import FitRecord, named_trace
from treewright.report import About, Explanation, labels_facts
from treewright.tree import Tree

SCRIPT = "<script>document.title='obeyed'</script>"
BREAKS = "</title></style></svg></pre><b>bold</b>"
QUOTES = "\"><img src=x onerror=document.title='obeyed'> 'single' &amp;"
TURNED = "\u202eturned\u202c\x1b[31m\nline"
LONG = "a very long name " * 60
WIDE = "W" * 300
HOSTILE = [SCRIPT, BREAKS, QUOTES, TURNED, LONG, WIDE]


def record(status="local", reason="no node can be improved"):
    """How a fit ended."""
    return FitRecord(status, reason, 1.25, 3.0, None, named_trace([], "seconds"))


def complete_tree(depth, n_features, n_classes):
    """A tree with a leaf for each way, on single features in turn; thresholds halve [0, 1]."""
    n_branches = 2**depth - 1
    weights, threshold = np.zeros((n_branches, n_features)), np.zeros(n_branches)
    for k in range(n_branches):
        level = int(np.log2(k + 1))
        weights[k, level % n_features] = 1.0
        threshold[k] = 0.25 + 0.5 * ((k + 1) % 2)
    counts = np.eye(n_classes)[np.arange(2 * n_branches + 1) % n_classes] * 2.0
    return Tree.from_heap(np.ones(n_branches, bool), weights, threshold, counts, counts.argmax(axis=1))


def tree_model(tree, classes, names, ended=None):
    """A model that was fitted, as far as a report can tell."""
    model = OCTHClassifier()
    model.tree_, model.classes_ = tree, np.asarray(classes, dtype=object)
    model.n_features_in_, model.feature_names_in_ = tree.n_features, np.array(names, dtype=object)
    model.record_ = ended or record()
    return model


def job(classes, groups, *, n=600, depth=4, names=("age", "income"), words=None, **more):
    """Facts of labels within totals: exact ones, intervals in the second group, none in the third."""
    rng = np.random.default_rng(0)
    X = rng.random((n, len(names)))
    group = np.array(groups, dtype=object)[np.arange(n) % len(groups)]
    truth = np.array(classes, dtype=object)[rng.integers(0, len(classes), n)]
    known = rng.random(n) < 0.2
    known[: 2 * len(classes)] = True
    truth[: 2 * len(classes)] = list(classes) * 2
    y = np.where(known, truth, None)
    totals = {}
    for g, name in enumerate(groups):
        times = {c: int(np.sum(~known & (group == name) & (truth == c))) for c in classes}
        if g % len(groups) == 1:
            totals[name] = {c: (max(0, t - 2), t + 2) for c, t in times.items()}
        elif g != 2:
            totals[name] = times
    model = TotalsClassifier(LogisticRegression(), random_state=0).fit(X, y, totals=totals, groups=group)
    tree = tree_model(complete_tree(depth, len(names), len(classes)), model.classes_, names)
    estimate = AccuracyEstimate(0.61, 0.52, 0.7, 0.95, int(known.sum()), dict.fromkeys(classes, 0.61))
    told = {"title": "Labels of register.csv", "target": "status", "group_name": "area", "model_file": "m.zip"}
    facts = labels_facts(
        model,
        y,
        model.transduction_,
        About(groups=group, **told | more),
        estimate=estimate,
        explanation=Explanation.of(tree, X, words),
    )
    return facts, X, tree
