"""int16, uint16, uint32 and uint64: kept, moved and converted as in NumPy, never computed with."""

import numpy as np
import pytest
from singa_rs import DTypeError, autograd, module, tensor
from singa_rs.tensor import Tensor, from_numpy

STORED = ("int16", "uint16", "uint32", "uint64")
NUMBERS = (*STORED, "int8", "uint8", "int32", "int64", "float32", "float64", "float16", "bool")
each_stored = pytest.mark.parametrize("dtype", STORED)


def numbers(dtype):
    """Numbers that include the least and the greatest."""
    if dtype == "bool":
        return np.array([[True, False, True]])
    if "float" in dtype:
        return np.array([[0.5, -1.5, 3.0], [100.0, 2.0, -7.0]], dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([[low, high, 1], [high // 2 + 1, high - 1, 77]], dtype)


def made(dtype):
    return from_numpy(numbers(dtype), dtype=dtype)


@each_stored
def test_round_trips(dtype):
    array, t = numbers(dtype), made(dtype)
    assert t.dtype.name == dtype and t.dtype.is_int and t.dtype.is_storage
    assert not tensor.int32.is_storage
    np.testing.assert_array_equal(t.to_numpy(), array)
    assert t.to_numpy().dtype == dtype
    assert t.tolist() == array.tolist()
    assert t[0, 1].item() == int(array[0, 1])
    np.testing.assert_array_equal(np.from_dlpack(t), array)
    np.testing.assert_array_equal(tensor.from_dlpack(array.copy()).to_numpy(), array)
    assert str(int(array[0, 1])) in repr(t)


@pytest.mark.parametrize("source", NUMBERS)
@pytest.mark.parametrize("target", NUMBERS)
def test_casts_are_numpys(source, target):
    array = numbers(source)
    if "float" in source and "float" not in target:
        array = np.abs(np.nan_to_num(array))  # NumPy leaves negative to unsigned undefined
    with np.errstate(all="ignore"):
        want = array.astype(target)
    got = from_numpy(array, dtype=source).as_type(target)
    assert got.dtype.name == target
    np.testing.assert_array_equal(got.to_numpy(), want)


@pytest.mark.parametrize("value", [2**64 - 1, 2**63, 2**63 + 2**55 + 1, 2**63 + 2**55, 2**53 + 1])
def test_large_numbers_round_once_into_halves(value):
    t = from_numpy(np.array([value], np.uint64), dtype="uint64")
    size = 2 ** (value.bit_length() - 8)  # bfloat16 has 8 bits
    below = value // size
    over = value - below * size
    up = over * 2 > size or (over * 2 == size and below % 2)
    assert t.as_type("bfloat16").as_type("float64").item() == float((below + up) * size)
    assert np.isinf(t.as_type("float16").to_numpy()).all()


def test_floats_clamp():
    x = from_numpy(np.array([-1.0, 1e30, np.nan, 65535.9]), dtype="float64")
    assert x.as_type("uint64").tolist() == [0, 2**64 - 1, 0, 65535]
    assert x.as_type("uint16").tolist() == [0, 65535, 0, 65535]
    assert x.as_type("int16").tolist() == [-1, 32767, 0, 32767]


@each_stored
def test_moves(dtype):
    array, t = numbers(dtype), made(dtype)
    assert (t.clone().to_numpy() == array).all()
    np.testing.assert_array_equal(t.transpose((1, 0)).to_numpy(), array.T)
    np.testing.assert_array_equal(t[:, ::2].to_numpy(), array[:, ::2])
    np.testing.assert_array_equal(t.reshape((3, 2)).contiguous().to_numpy(), array.reshape(3, 2))
    np.testing.assert_array_equal(autograd.cat([t, t], 0).to_numpy(), np.concatenate([array] * 2))
    np.testing.assert_array_equal(autograd.gather(t, 1, [2, 0]).to_numpy(), array[:, [2, 0]])
    np.testing.assert_array_equal(
        autograd.take_along_axis(t, np.array([[1], [0]]), 1).to_numpy(),
        array[[0, 1], [1, 0]][:, None],
    )
    mask = np.array([[True, False, True], [False, True, False]])
    other = from_numpy(np.zeros((2, 3), dtype), dtype=dtype)
    np.testing.assert_array_equal(
        autograd.where(from_numpy(mask), t, other).to_numpy(),
        np.where(mask, array, 0).astype(dtype),
    )
    t[0] = 5
    assert t[0].tolist() == [5, 5, 5]
    t.copy_from(array)
    np.testing.assert_array_equal(t.to_numpy(), array)
    assert tensor.full((2,), 7, dtype=dtype).tolist() == [7, 7]
    assert tensor.arange(3, dtype=dtype).tolist() == [0, 1, 2]
    assert tensor.zeros((2,), dtype=dtype).tolist() == [0, 0]


@each_stored
@pytest.mark.parametrize(
    "compute",
    [
        lambda t: t + t,
        lambda t: t * 2,
        lambda t: t == t,
        lambda t: -t,
        lambda t: t.sum(),
        lambda t: t.max(),
        lambda t: autograd.sort(t, -1),
        lambda t: autograd.cumsum(t, 0),
        lambda t: t.reshape((3, 2)) @ t,
    ],
)
def test_arithmetic_is_refused_by_name(dtype, compute):
    with pytest.raises(DTypeError, match=rf"^\w+: got .*{dtype}.*convert first"):
        compute(made(dtype))


@each_stored
@pytest.mark.parametrize("other", ["int64", "uint8", "int32", "bool", *STORED])
def test_mixtures_are_refused(dtype, other):
    if dtype != other:
        with pytest.raises(DTypeError, match="convert first"):
            made(dtype)[:1] + made(other)[:1]


def test_values_that_do_not_fit_are_refused():
    for dtype, value in (("uint16", -1), ("uint64", -1), ("int16", 40000), ("uint32", 2**32)):
        with pytest.raises((DTypeError, ValueError), match=dtype):
            Tensor(data=[value], dtype=dtype)
        with pytest.raises((DTypeError, ValueError), match=dtype):
            tensor.full((1,), value, dtype=dtype)
    with pytest.raises(DTypeError, match="int64"):
        tensor.zeros((1,), dtype="int64").copy_from(np.array([2**64 - 1], np.uint64))


@each_stored
def test_indices_are_converted_first(dtype):
    x = tensor.zeros((3, 2))
    with pytest.raises(DTypeError, match="gather.*indices"):
        autograd.gather(x, 0, made(dtype)[0])


class Keeps(module.Module):
    """A step that keeps numbers, and moves and converts them."""

    def __init__(self, dtype):
        super().__init__()
        self.kept = made(dtype)

    def forward(self, x):
        both = autograd.cat([self.kept, x], 0)
        return both, both.as_type("float32") * 0.5


@each_stored
def test_recordings(dtype, tmp_path):
    m, x = Keeps(dtype), made(dtype)
    m.compile([x], is_train=False, use_graph=True)
    want = np.concatenate([numbers(dtype)] * 2)
    for _ in range(4):
        both, half = m.forward(x)
        np.testing.assert_array_equal(both.to_numpy(), want)
        np.testing.assert_array_equal(half.to_numpy(), want.astype(np.float32) * np.float32(0.5))
    m.save_states(str(tmp_path / "one.zip"))
    m.load_states(str(tmp_path / "one.zip"))
