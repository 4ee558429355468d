"""Reading and writing by index, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from singa_rs import tensor
from singa_rs.tensor import from_numpy

XN = np.arange(6, dtype=np.float32).reshape(2, 3)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_basic_keys(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    got = from_numpy(array)[key]
    assert got.shape == array[key].shape
    np.testing.assert_array_equal(got.to_numpy(), array[key])


KEYS = [
    [1, 0],
    [],
    np.array([[0, 1], [1, 1]]),
    (slice(None), [2, 0]),
    (slice(None, None, -1), [2, -1]),
    np.array([True, False]),
    XN > 2,
    (0, [1, 2]),
    (None, [1]),
    (slice(None), np.array([True, False, True])),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_with_one_array(key):
    got, want = from_numpy(XN)[key], XN[key]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.to_numpy(), want)


def test_tensors_as_keys():
    x = from_numpy(XN)
    np.testing.assert_array_equal(x[from_numpy(np.array([1, 0]))].to_numpy(), XN[[1, 0]])
    np.testing.assert_array_equal(x[x > 2].to_numpy(), XN[XN > 2])


@pytest.mark.parametrize(
    "key", [2, -3, (0, 3), (0, 0, 0), [2], np.array([True, False, True]), (..., ...), ([0], [1])]
)
def test_keys_out_of_range(key):
    with pytest.raises(IndexError):
        from_numpy(XN)[key]


@pytest.mark.parametrize("key", ["a", 1.5, {}])
def test_keys_of_other_types(key):
    with pytest.raises(TypeError):
        from_numpy(XN)[key]


def test_slices_are_views():
    x = from_numpy(XN.copy())
    row = x[0, ::-1]
    row += 10
    np.testing.assert_array_equal(x.to_numpy()[0], XN[0] + 10)
    assert row.shares_block(x)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (0, 5.0),
        ((slice(None), 1), [7, 8]),
        (slice(None, None, -1), np.arange(6).reshape(2, 3)),
        ((slice(None), slice(0, 0)), 1),
        (..., 1),
        ([1], 2),
        (XN > 3, 0),
        ((0, [0, 2]), np.array([5.0, 6.0])),
        ((slice(None), None, 0), np.array([[1.0], [2.0]])),
    ],
)
def test_assignment(key, value):
    want, got = XN.copy(), from_numpy(XN.copy())
    want[key] = value
    got[key] = value
    np.testing.assert_array_equal(got.to_numpy(), want)


def test_assigning_tensors():
    x = from_numpy(XN.copy())
    x[0] = x[1]
    np.testing.assert_array_equal(x.to_numpy()[0], XN[1])
    x[:, :1] = tensor.ones((1, 1))
    np.testing.assert_array_equal(x.to_numpy()[:, 0], [1, 1])


def test_assigning_what_does_not_fit():
    x, i = from_numpy(XN.copy()), from_numpy(np.arange(3))
    with pytest.raises(ValueError):
        x[0] = np.ones(4)
    with pytest.raises(ValueError):
        x[0] = tensor.ones((2, 3))
    with pytest.raises(TypeError):
        i[0] = 1.5
    i[0] = 7.0
    assert i.tolist() == [7, 1, 2]
