"""Views against NumPy's: random slices, permutations, reshapes, expansions, one after another."""

import pickle

import numpy as np
import pytest
from harness import to_handle
from hypothesis import given, settings
from hypothesis import strategies as st
from singa_rs import ShapeError, _core, autograd
from singa_rs.tensor import Tensor

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
DTYPES = st.sampled_from(["float64", "float16", "int8"])


@st.composite
def steps(draw, extent):
    """One axis's (start, count, step), anything that stays inside."""
    if extent == 0:
        return 0, 0, 1
    start = draw(st.integers(0, extent - 1))
    step = draw(st.integers(1, 3)) * draw(st.sampled_from([1, -1]))
    room = (extent - 1 - start) // step if step > 0 else start // -step
    return start, draw(st.integers(0, room + 1)), step


def sliced(array, ranges):
    """NumPy's elements at those places."""
    for axis, (start, count, step) in enumerate(ranges):
        array = np.take(array, [start + i * step for i in range(count)], axis)
    return array


@st.composite
def programs(draw):
    """An array and a handle, both after the same random views."""
    shape = draw(SHAPES)
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 127
    handle = to_handle(array, draw(DTYPES))
    for kind in draw(
        st.lists(st.sampled_from(["slice", "permute", "reshape", "expand"]), max_size=4)
    ):
        if kind == "slice":
            ranges = [draw(steps(n)) for n in array.shape]
            array, handle = sliced(array, ranges), handle.view_slice(ranges)
        elif kind == "permute":
            axes = draw(st.permutations(range(array.ndim)))
            signed = [a - array.ndim if draw(st.booleans()) else a for a in axes]
            array, handle = array.transpose(axes), handle.view_permute(signed)
        elif kind == "reshape":
            new = draw(factors(array.size))
            view = handle.view_reshape(new)
            if view is None:
                view = _core.Op("copy")(handle).view_reshape(new)
            array, handle = array.reshape(new), view
        else:
            new = (
                draw(st.integers(0, 2)),
                *(draw(st.integers(0, 3)) if n == 1 else n for n in array.shape),
            )
            array, handle = np.broadcast_to(array, new), handle.view_expand(new)
    return array, handle


@st.composite
def factors(draw, size):
    """A shape of `size` elements."""
    if size == 0:
        return tuple(draw(st.permutations([0, 3, 2])))
    shape = []
    while size > 1:
        divisor = draw(st.sampled_from([d for d in range(2, size + 1) if size % d == 0]))
        shape.append(divisor)
        size //= divisor
        if draw(st.booleans()):
            shape.append(1)
    return tuple(shape)


@settings(deadline=None, max_examples=300)
@given(programs())
def test_views_read_like_numpys(program):
    array, handle = program
    assert handle.shape == array.shape
    np.testing.assert_array_equal(handle.to_numpy(), array)


@settings(deadline=None, max_examples=200)
@given(programs())
def test_operations_take_any_view(program):
    array, handle = program
    doubled = _core.Op("binary", f="add")(handle, handle)
    np.testing.assert_array_equal(
        doubled.to_numpy(), (array + array).astype(doubled.to_numpy().dtype)
    )
    total = _core.Op("reduce", f="sum", axes=(), keepdims=False)(handle)
    if handle.dtype.name == "float64":
        assert total.item() == array.sum()


@settings(deadline=None, max_examples=200)
@given(st.data(), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_writing_a_view_writes_nothing_else(data, shape):
    array = np.zeros(shape)
    handle = to_handle(array, "float64")
    ranges = [data.draw(steps(n)) for n in shape]
    view = handle.view_slice(ranges)
    values = np.arange(1.0, 1 + np.prod(view.shape)).reshape(view.shape)
    version = handle.version
    view.copy_from_numpy(values)
    index = np.ix_(*[[start + i * step for i in range(count)] for start, count, step in ranges])
    array[index] = values
    np.testing.assert_array_equal(handle.to_numpy(), array)
    assert handle.shares_block(view) and (handle.version > version or values.size == 0)


def test_transposed_as_numpy_and_singa_write_it():
    array = np.arange(24.0).reshape(2, 3, 4)
    t = Tensor(data=array, dtype="float64")
    for made, want in (
        (t.T, array.T),
        (t.T(), array.T),
        (t.T(1, 0, 2), array.transpose(1, 0, 2)),
        (t[0] @ t[1].T, array[0] @ array[1].T),
        (t.mT, array.swapaxes(1, 2)),
        (t[0, 0].T, array[0, 0]),
    ):
        np.testing.assert_array_equal(made.to_numpy(), want)
    assert type(t.T + 1) is Tensor and type(t.T.clone()) is Tensor and t.T.shares_block(t)
    assert pickle.loads(pickle.dumps(t.T)).tolist() == t.T.tolist()
    with pytest.raises(ShapeError, match="mT: got shape"):
        t[0, 0].mT  # noqa: B018


def test_gradients_of_transposed_tensors():
    x = Tensor(data=np.arange(6.0).reshape(2, 3), dtype="float64")
    x.stores_grad = True
    with autograd._training_scope(True):
        y = x * 1
        y.T[0] *= 3
        found = autograd.gradients((y.T @ Tensor(data=[[1.0], [2.0]], dtype="float64")).sum())[x]
    assert found.tolist() == [[3, 1, 1], [6, 2, 2]]


def test_sizes():
    t = Tensor((2, 3))
    assert (t.size, t.size(), t.size(0), t.size(-1)) == (6, 6, 2, 3) and np.size(t.size) == 1
    for wrong, error in ((2, ValueError), (-3, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="size"):
            t.size(wrong)


LAYOUTS = {
    "row-major": lambda x: x,
    "transposed": lambda x: x.T,
    "rows": lambda x: x[1:],
    "columns of the transpose": lambda x: x.T[:, 1:],
    "every second row": lambda x: x[::2],
    "columns": lambda x: x[:, :3],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("offset", [0, 1, -1])
def test_diagonals_are_views_of_matrices_that_follow_one_another(layout, offset):
    array = np.arange(16.0).reshape(4, 4)
    x = Tensor(data=array, dtype="float64")
    seen, want = LAYOUTS[layout](x).diagonal(offset), LAYOUTS[layout](array).diagonal(offset)
    np.testing.assert_array_equal(seen.to_numpy(), want)
    is_view = layout not in ("every second row", "columns")
    assert seen.shares_block(x) == is_view
    seen.fill_(-1.0)
    assert (x.to_numpy() == -1).sum() == want.size * is_view


@pytest.mark.parametrize(
    ("take", "is_view"),
    [
        (lambda x: x, True),
        (lambda x: x[1:], True),
        (lambda x: x[1:2, 1:3], True),
        (lambda x: x[:, ::2], False),
        (lambda x: x[0, ::2], False),
        (lambda x: x.T, False),
    ],
)
def test_only_row_major_tensors_ravel_to_views(take, is_view):
    x, array = Tensor(data=np.ones((2, 4)), dtype="float64"), np.ones((2, 4))
    assert np.shares_memory(take(array).ravel(), array) == is_view
    for ravel in (autograd.ravel, Tensor.ravel):
        seen = ravel(take(x))
        assert seen.shares_block(x) == is_view
        assert seen.shape == (take(x).numel,)
    seen.fill_(0.0)
    assert (x.to_numpy() == 1).all() != is_view


def test_the_diagonal_of_a_matrix_is_a_copy():
    autograd.training = True
    x = Tensor(data=np.ones((2, 2)), dtype="float64", stores_grad=True)
    y = x.diag()
    y *= 5.0
    assert x.tolist() == [[1, 1], [1, 1]]
    assert autograd.gradients((y * y).sum(), xs=x).tolist() == [[50, 0], [0, 50]]
    x.diagonal().mul_(2.0)
    assert x.tolist() == [[2, 1], [1, 2]]
    autograd.training = False


def test_windows_are_a_copy():
    x = Tensor(data=np.arange(4.0))
    windows = x.unfold(0, 2, 2)
    windows *= 0.0
    x += 10.0
    assert x.tolist() == [10, 11, 12, 13] and windows.tolist() == [[0, 0], [0, 0]]
