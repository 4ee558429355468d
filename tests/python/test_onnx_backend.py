"""onnx's own suite for backends: every operator in the dtypes and modes that its specification
shows, models converted from PyTorch, and networks of the model zoo.

`onnx_failing.txt` lists the tests that fail, each with its reason, and `onnx_failing_opset22.txt`
those that only the suite of the oldest package has: one that passes although it is listed, or fails
although it is not, fails here.
"""

import warnings
from pathlib import Path

import onnx
import pytest
from onnx.backend.test import BackendTest
from singa_rs import sonnx

NEWEST, OLDEST = onnx.defs.onnx_opset_version(), 22
#: The suites between have errors of their own.
pytestmark = pytest.mark.skipif(OLDEST < NEWEST < 25, reason="another suite")


def suite():
    """The suite's tests on the CPU, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the suite's own NumPy
        classes = BackendTest(sonnx.SingaBackend, __name__).test_cases.values()
    return {
        name.removesuffix("_cpu"): (case, name)
        for case in classes
        for name in dir(case)
        if name.startswith("test_") and name.endswith("_cpu")
    }


def listed(name):
    """The reasons of the tests in a file of those that fail, by name."""
    text = (Path(__file__).parent / name).read_text()
    lines = [one for one in text.splitlines() if not one.startswith("#")]
    found = dict(line.split(": ", 1) for line in lines)
    assert len(found) == len(lines), "a test is listed twice"
    return found


SUITE, FAILING = suite(), listed("onnx_failing.txt")
if NEWEST == OLDEST:
    here = {name: why for name, why in FAILING.items() if name in SUITE}
    FAILING = here | listed("onnx_failing_opset22.txt")


def marked(name):
    """A test that has to fail if it is listed."""
    why = FAILING.get(name)
    marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
    return pytest.param(name, marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [marked(name) for name in sorted(SUITE)])
def test_suite(name):
    case, method = SUITE[name]
    getattr(case(method), method)()


def test_the_list_names_tests():
    assert not set(FAILING) - set(SUITE)
