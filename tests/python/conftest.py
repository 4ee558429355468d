"""Fixtures of all tests."""

import os
import signal

# Before every run of a graph the arena is filled with NaN, and each plan is verified.
os.environ["SINGA_RS_CHECK"] = "1"
# A process started in the background by a shell ignores Ctrl-C, which some tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402
from singa_rs import _core, autograd, module  # noqa: E402


@pytest.fixture
def cpu():
    """The CPU, with its generators at seed 0."""
    device = _core.cpu()
    device.set_seed(0)
    return device


@pytest.fixture(autouse=True)
def _fresh():
    """Every test finds `autograd.training` as it is when the package is imported, and draws the
    same random numbers whatever ran before."""
    _core.cpu().set_seed(0)
    yield
    autograd.training, module.Module._told = False, None
