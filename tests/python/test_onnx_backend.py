"""onnx's own suite for backends: every operator in the dtypes and modes that its specification
shows, models converted from PyTorch, and networks of the model zoo.

`onnx_failing.txt` lists the tests that fail, each with its reason: one that passes although it is
listed, or fails although it is not, fails here.
"""

import warnings
from pathlib import Path

import onnx
import pytest
from onnx.backend.test import BackendTest
from singa_rs import sonnx

#: The suites of older packages ask for what ONNX has corrected since.
pytestmark = pytest.mark.skipif(onnx.defs.onnx_opset_version() < 25, reason="an older suite")

LISTED = Path(__file__).parent / "onnx_failing.txt"


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


def failing():
    """The reasons of the tests that fail, by name."""
    lines = [one for one in LISTED.read_text().splitlines() if not one.startswith("#")]
    found = dict(line.split(": ", 1) for line in lines)
    assert len(found) == len(lines), "a test is listed twice"
    return found


SUITE, FAILING = suite(), failing()


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
