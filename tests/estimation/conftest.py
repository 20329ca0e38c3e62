"""Estimators are tested on processor time."""

import pytest


@pytest.fixture(autouse=True)
def _processor_clock(processor_clock):
    """For all tests of this folder."""
