"""The operators of bits, as NumPy's."""

import operator

import numpy as np
import pytest
from singa_rs import DTypeError, autograd
from singa_rs.tensor import from_numpy

DTYPES = ("int64", "int32", "int8", "uint8", "bool")
OPERATORS = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
SHIFTS = {"<<": operator.lshift, ">>": operator.rshift}
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def drawn(dtype, seed, shape=(4, 5)):
    if dtype == "bool":
        return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)
    ends = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(ends.min, ends.max, shape, dtype, endpoint=True)


def same(got, want):
    assert got.dtype.name == want.dtype.name
    np.testing.assert_array_equal(got.to_numpy(), want)


@each_dtype
@pytest.mark.parametrize("sign", OPERATORS)
def test_of_two_tensors_and_of_numbers(sign, dtype):
    f, a, b = OPERATORS[sign], drawn(dtype, 1), drawn(dtype, 2, (5,))
    x, y = from_numpy(a, dtype=dtype), from_numpy(b, dtype=dtype)
    same(f(x, y), f(a, b))
    one = True if dtype == "bool" else 6
    same(f(x, one), f(a, np.array(one, dtype)))
    same(f(one, x), f(np.array(one, dtype), a))


@each_dtype
def test_inversion(dtype):
    a = drawn(dtype, 3)
    same(~from_numpy(a, dtype=dtype), ~a)
    same(autograd.bitwise_not(from_numpy(a, dtype=dtype)), ~a)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("sign", SHIFTS)
def test_shifts(sign, dtype):
    f, a = SHIFTS[sign], drawn(dtype, 4, (70,))
    by = np.arange(70).astype(dtype)
    same(f(from_numpy(a, dtype=dtype), from_numpy(by, dtype=dtype)), f(a, by))
    same(f(from_numpy(a, dtype=dtype), 3), f(a, np.array(3, dtype)))
    same(f(2, from_numpy(by % 8, dtype=dtype)), f(np.array(2, dtype), by % 8))


def test_mixtures_are_promoted():
    a, b = drawn("int8", 5), drawn("int32", 6)
    same(from_numpy(a, dtype="int8") & from_numpy(b, dtype="int32"), a & b)
    masks = drawn("bool", 7)
    same(from_numpy(masks) | from_numpy(b, dtype="int32"), masks | b)
    assert (from_numpy(masks) << from_numpy(masks)).dtype.name == "int32"  # counted, as by +


@pytest.mark.parametrize("f", [*OPERATORS.values(), *SHIFTS.values()])
def test_floats_are_refused(f):
    x = from_numpy(np.ones(3, np.float32))
    for other in (x, 1.5):
        with pytest.raises(DTypeError, match="integer"):
            f(x, other)
    with pytest.raises(DTypeError, match="bitwise_not: got dtype float32"):
        operator.invert(x)
