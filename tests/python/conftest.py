"""Fixtures of all tests."""

import gc
import os
import random
import signal

# Before every run of a graph the arena is filled with NaN, and each plan is verified.
os.environ["SINGA_RS_CHECK"] = "1"
# A process started in the background by a shell ignores Ctrl-C, which some tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from quick_start import quick_start  # noqa: E402, F401
from singa_rs import _core, autograd  # noqa: E402
from singa_rs.data import draws  # noqa: E402
from singa_rs.module import modes  # noqa: E402

#: Families without kernels for GPUs: what their results are, or if there are any, is found out on
#: the host. Regions that begin with a product or a convolution are made for processors alone.
NOT_ON_GPUS = {"linalg", "solve", "triangular_solve"}


def pytest_collection_modifyitems(items):
    """With `SINGA_RS_DEVICE` the cases run on the device that it names."""
    if os.environ.get("SINGA_RS_DEVICE", "cpu") == "cpu":
        return
    for item in items:
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")
        if case and (case.family in NOT_ON_GPUS or "producer" in case.attrs):
            item.add_marker(pytest.mark.skip(reason="no kernel for GPUs"))


def pytest_collection_finish():
    """The collector leaves out what collecting has made, some million objects."""
    gc.collect()
    gc.freeze()


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
    random.seed(0)
    np.random.seed(0)
    draws.set_seed(0)
    draws.set_default(0)
    yield
    autograd.training, modes._Told.value = False, None
