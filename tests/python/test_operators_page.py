"""docs/operators.md lists every function as it is, and each says where it comes from."""

import operators
import pytest

FUNCTIONS = operators.operators()


def test_the_page_is_up_to_date():
    """After a change, `python tests/python/operators.py` writes it again."""
    assert operators.PAGE.read_text() == operators.page()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_cite_a_source(name):
    """The first paragraph names ONNX's, PyTorch's, NumPy's or SINGA's function, a paper, or what
    the function is a composition of."""
    assert operators.cited(FUNCTIONS[name])


@pytest.mark.parametrize("name", operators.PYTORCH)
def test_names_stand_in_one_place(name):
    assert name in FUNCTIONS, "the function is gone"
    assert "PyTorch" not in operators.cited(FUNCTIONS[name])
