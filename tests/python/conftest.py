"""Fixtures of all tests."""

import pytest
from singa_rs import _core


@pytest.fixture
def cpu():
    """The CPU, with its generators at seed 0."""
    device = _core.cpu()
    device.set_seed(0)
    return device
