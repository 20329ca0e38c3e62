"""Labels within totals as a report: what was asked, what was reached, how sure it is, and a tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike

from treewright.estimation.accuracy import AccuracyEstimate
from treewright.report.facts import About, labels_facts
from treewright.report.text import rendered_facts
from treewright.report.trees import Explanation

__all__ = ["Explanation", "labels_report"]


def labels_report(
    labeller: Any,
    y: ArrayLike,
    labels: ArrayLike,
    *,
    title: str = "",
    target: str = "",
    estimate: AccuracyEstimate | None = None,
    no_estimate: str = "it was not asked for",
    explanation: Explanation | None = None,
    groups: ArrayLike | None = None,
    group_name: str = "",
    model_file: str = "",
    making: Iterable[tuple[str, str]] = (),
    totals_of: str = "unlabeled",
    form: str = "text",
) -> str:
    """Write labels within totals as text or as a page for people.

    Parameters
    ----------
    labeller : TotalsClassifier
        The fitted classifier.
    y : array-like of shape (n_rows,)
        Labels of all rows as given, NaN or None where there is none.
    labels : array-like of shape (n_rows,)
        Labels of all rows as found.
    title, target, group_name, model_file, making, totals_of, form
        As for :func:`treewright.report.fit_report`.
    estimate : AccuracyEstimate or None
        How accurate labels are likely to be, see :func:`treewright.estimated_accuracy`.
    no_estimate : str
        Why there is none.
    explanation : Explanation or None
        A tree that explains the labels.
    groups : array-like of shape (n_rows,) or None
        Group of each row, to say which groups lack labels and which are the least sure.

    Returns
    -------
    str
        The report, ending in a line end.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from treewright import TotalsClassifier
    >>> X, y = np.arange(6.0)[:, None], np.array(["no", None, None, None, None, "yes"], dtype=object)
    >>> model = TotalsClassifier(LogisticRegression()).fit(X, y, totals={"yes": 1})
    >>> text = labels_report(model, y, model.transduction_, title="Labels", target="employed")
    >>> print(text[: text.index("How accurate")])
    Labels
    ======
    <BLANKLINE>
    Asked and reached
      target: employed
      6 rows: 2 with a label, 4 without
      class  asked  reached  difference
      no         3        3           0
      yes        1        1           0
      all 2 totals are met to the row
    <BLANKLINE>
    <BLANKLINE>
    """
    about = About(title, target, groups, group_name, model_file, making, totals_of)
    facts = labels_facts(
        labeller, y, labels, about, estimate=estimate, no_estimate=no_estimate, explanation=explanation
    )
    return rendered_facts(facts, form)
