"""Functions that NumPy or PyTorch have, too, give what they give for the same arguments in the same
order, or refuse them: another result would look right."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from namesakes import RULES, A, as_arrays, calls, copied, counted, namesakes, ours, same
from singa_rs import autograd, layer, tensor
from singa_rs.tensor import from_numpy
from torch_namesakes import DIFFER, ERRORS, TORCH

NAMESAKES = namesakes()
PAGE = Path(__file__).parents[2] / "docs" / "from-pytorch.md"


def result(function, args):
    """What a call gives as arrays, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return as_arrays(function(*args))
    except Exception as error:
        return error


def differs(label, one, theirs, args):
    mine = result(one, [ours(value) for value in args])
    if isinstance(mine, Exception):
        assert isinstance(mine, (TypeError, ValueError, RuntimeError, NotImplementedError)), mine
        return None
    want = result(theirs, [copied(value) for value in args])
    if isinstance(want, Exception) or same(mine, want):
        return None
    rule = RULES[label][0] if label in RULES else None
    for other in filter(None, (rule, counted)):
        given = [copied(value) for value in args]  # for what works in place
        if same(mine, result(lambda *args, other=other: other(theirs, args), given)):
            return None
    return f"{label}{args!r}: got {mine!r}, NumPy {want!r}"


@pytest.mark.parametrize("label", NAMESAKES)
def test_numpys_arguments_give_numpys_results(label):
    one, theirs, first = NAMESAKES[label]
    wrong = [differs(label, one, theirs, args) for args in calls(first)]
    wrong = [text for text in wrong if text]
    assert not wrong, f"{len(wrong)} calls, such as {wrong[0]}"


def test_the_names_are_found():
    assert len(NAMESAKES) > 250 and set(RULES) <= set(NAMESAKES)


# ---- PyTorch -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", TORCH)
def test_pytorchs_arguments_give_pytorchs_results(call):
    made = as_arrays(eval(call, _names()))  # noqa: S307 - the table's own text
    assert same(made, as_arrays(TORCH[call]))


@pytest.mark.parametrize("call", ERRORS)
def test_what_has_two_meanings_is_refused(call):
    with pytest.raises((TypeError, ValueError), match=ERRORS[call]):
        eval(call, _names())  # noqa: S307


@pytest.mark.parametrize("call", DIFFER)
def test_what_differs_from_pytorch_is_documented(call):
    want, theirs = DIFFER[call]
    made = as_arrays(eval(call, _names()))  # noqa: S307
    assert same(made, as_arrays(want)) and not same(made, as_arrays(theirs))
    assert f"`{call}`" in PAGE.read_text()


def _names():
    x = from_numpy(A, dtype="float64")
    given = {"tensor": tensor, "autograd": autograd, "layer": layer}
    return {"t": x, **given, "np": np, "of": ours}
