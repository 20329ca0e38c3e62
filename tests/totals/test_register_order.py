"""Rows with tied scores: the order that their content gives them."""

import numpy as np
import pytest

from treewright.totals.register import _by_content


@pytest.mark.parametrize("different", [10**6, 50])
def test_rows_are_ordered_by_content_and_group(different):
    rng = np.random.default_rng(0)
    content, group = rng.integers(0, different, 3000).astype(np.uint64), rng.integers(0, 4, 3000)
    content = np.unique(content)[:2000] if different > 3000 else content
    group = group[: len(content)]
    shuffled = rng.permutation(len(content))
    content = content[shuffled]
    order = _by_content(content, group)
    expected = sorted(range(len(content)), key=lambda i: (content[i], group[i], i))
    assert order.tolist() == expected
