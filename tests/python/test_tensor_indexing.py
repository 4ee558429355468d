"""Reading and writing by index, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from singa_rs import autograd, module, tensor
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


def arrays(draw, shape, extent):
    """An index of one axis: integers of any type, an array or a list."""
    dtypes = ("int64", "int32", "int8", "uint8")
    dtype = draw(st.sampled_from(dtypes))
    low = 0 if dtype == "uint8" else -extent
    array = draw(hnp.arrays(dtype, shape, elements=st.integers(low, extent - 1)))
    return array.tolist() if draw(st.booleans()) and array.size else array


@st.composite
def keys(draw, shape):
    """Ints, slices, None, Ellipsis, arrays that broadcast together, masks, in any order."""
    made, axis, has_ellipsis = [], 0, False
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    shapes = [common[i:] for i in range(len(common) + 1)] + [(1,) * len(common)]
    while axis < len(shape) and draw(st.integers(0, 9)):
        n = shape[axis]
        kind = draw(st.integers(0, 7))
        if kind == 0:
            made.append(None)
            continue
        if kind == 1 and not has_ellipsis:
            made.append(...)
            has_ellipsis = True
            axis += draw(st.integers(0, len(shape) - axis))
            continue
        if kind == 2:
            made.append(draw(st.slices(n)))
        elif kind == 3 and n:
            made.append(draw(st.integers(-n, n - 1)))
        elif kind == 4:
            span = draw(st.integers(0, min(2, len(shape) - axis)))
            mask = draw(hnp.arrays(bool, shape[axis : axis + span]))
            made.append(mask if span else draw(st.sampled_from([True, False, np.True_])))
            axis += span - 1
        elif n:
            made.append(arrays(draw, draw(st.sampled_from(shapes)), n))
        else:
            made.append(slice(None))
        axis += 1
    return made[0] if len(made) == 1 and draw(st.booleans()) else tuple(made)


ANY_SHAPE = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def example(data):
    """An array, and a key that NumPy may or may not accept."""
    shape = data.draw(ANY_SHAPE)
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    return array, data.draw(keys(shape))


@settings(deadline=None, max_examples=600)
@given(st.data())
def test_any_keys(data):
    """NumPy's values and shape, or an error where NumPy raises one."""
    array, key = example(data)
    x = from_numpy(array, dtype="float64")
    try:
        want = array[key]
    except (IndexError, ValueError):
        with pytest.raises((IndexError, ValueError)):
            x[key]
        return
    try:
        got = x[key]
    except IndexError:
        assert want.size == 0  # where NumPy does not check every index
        return
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.to_numpy(), want)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_assignment_to_any_keys(data):
    array, key = example(data)
    x = from_numpy(array, dtype="float64")
    try:
        part = array[key]
    except (IndexError, ValueError):
        with pytest.raises((IndexError, ValueError)):
            x[key] = 1.0
        np.testing.assert_array_equal(x.to_numpy(), array)
        return
    shape = part.shape[data.draw(st.integers(0, part.ndim)) :]
    value = np.array(-1.0 - np.arange(np.prod(shape, dtype=int)).reshape(shape))
    given = data.draw(st.sampled_from([value, from_numpy(value, dtype="float64")]))
    array[key] = value
    try:
        x[key] = given
    except IndexError:
        assert part.size == 0
    np.testing.assert_array_equal(x.to_numpy(), array)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_gradients_of_any_keys(data):
    """An element's gradient is the sum of the weights at all places that show it."""
    array, key = example(data)
    try:
        part = array[key]
    except (IndexError, ValueError):
        return
    if part.size == 0:
        return
    weights = np.array(1.0 + np.arange(part.size).reshape(part.shape))
    x = from_numpy(array, dtype="float64")
    x.stores_grad = True
    with autograd._training_scope(True):
        loss = (x[key] * from_numpy(weights, dtype="float64")).sum()
        gradients = dict(autograd.backward(loss))
    want = np.zeros_like(array)
    np.add.at(want, key, weights)
    np.testing.assert_array_equal(gradients[x].to_numpy(), want)


def test_indices_of_a_recorded_step_may_be_an_argument():
    """They are looked up in each replay, and one out of range is refused before it."""

    class Rows(module.Module):
        def forward(self, x, places):
            return x[:, places] * 2.0

    x, places = from_numpy(XN), from_numpy(np.array([2, 0]))
    rows = Rows()
    rows.compile([x, places], is_train=False)
    for chosen in ([2, 0], [1, 1], [0, -1], [2, 2]):
        got = rows(x, from_numpy(np.array(chosen)))
        np.testing.assert_array_equal(got.to_numpy(), 2 * XN[:, chosen])
    with pytest.raises(ValueError, match="out of range"):
        rows(x, from_numpy(np.array([0, 3])))


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
    (1, slice(None), None, [0, 1, 1])[1:],
    ([0, 1], None, [2, 0]),
    ([[0], [1]], [0, 2]),
    (True, slice(None), [0, 1]),
    False,
    (np.array(1), [0, 2]),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_with_arrays(key):
    got, want = from_numpy(XN)[key], XN[key]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.to_numpy(), want)


def test_tensors_as_keys():
    x = from_numpy(XN)
    np.testing.assert_array_equal(x[from_numpy(np.array([1, 0]))].to_numpy(), XN[[1, 0]])
    np.testing.assert_array_equal(x[x > 2].to_numpy(), XN[XN > 2])


@pytest.mark.parametrize(
    "key",
    [2, -3, (0, 3), (0, 0, 0), [2], np.array([True, False, True]), (..., ...), ([0, 1], [0, 1, 2])],
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
