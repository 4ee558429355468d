"""Writing into tensors: arrays, values, operators in place, random numbers."""

import numpy as np
import pytest
import singa_rs
from recorded import replays, same
from singa_rs import autograd, device, module, opt, tensor
from singa_rs.tensor import Tensor, from_numpy

XN = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def x():
    return from_numpy(XN.copy())


def test_copy_from_numpy_needs_equal_size_only():
    t = Tensor((2, 6))
    t.copy_from_numpy(np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(t.to_numpy(), np.arange(12).reshape(2, 6))
    with pytest.raises(singa_rs.ShapeError, match="copy_from_numpy"):
        t.copy_from_numpy(np.ones(3))
    with pytest.raises(TypeError, match="copy_from_numpy: got list"):
        t.copy_from_numpy([1.0])
    t.copy_from_numpy(np.ones(3, np.int32), offset=2)
    assert t.to_numpy().ravel()[:6].tolist() == [0, 1, 1, 1, 1, 5]
    with pytest.raises(singa_rs.ShapeError):
        t.copy_from_numpy(np.ones(3), offset=10)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int32", [0.5]),
        ("int32", [np.nan]),
        ("int32", [2.0**31]),
        ("uint8", [-1]),
        ("int8", [128]),
        ("bool", [2]),
        ("float16", [1e10]),
        ("float16", [70000]),
    ],
)
def test_values_must_survive(dtype, values):
    t = Tensor((1,), dtype=dtype)
    with pytest.raises(singa_rs.DTypeError):
        t.copy_from_numpy(np.array(values))
    assert t.to_numpy()[0] == 0


def test_values_that_survive():
    t = Tensor((3,), dtype="int32")
    t.copy_from_numpy(np.array([0.0, 1.0, -0.0]))
    t.copy_from(from_numpy(np.array([3.0, 4.0, 5.0])))
    assert t.tolist() == [3, 4, 5]
    h = Tensor((2,), dtype="float16")
    h.copy_from_numpy(np.array([np.inf, 0.1]))
    assert h.to_numpy()[1] == np.float16(0.1)


def test_copies_between_tensors(x):
    t = Tensor((3, 2))
    t.copy_from(x)
    np.testing.assert_array_equal(t.to_numpy().ravel(), XN.ravel())
    t.copy_data(x.T())
    np.testing.assert_array_equal(t.to_numpy(), XN.T)
    tensor.copy_data_to_from(t, x, 2, dst_offset=1, src_offset=4)
    assert t.to_numpy().ravel()[1:3].tolist() == [4, 5]
    with pytest.raises(singa_rs.ShapeError):
        tensor.copy_data_to_from(t, x, 9)
    view = t[:, 0]
    view.copy_from([7, 8, 9])
    assert t.to_numpy()[:, 0].tolist() == [7, 8, 9]


def test_set_value_returns_the_tensor(x):
    assert x.set_value(2) is x and x.to_numpy().min() == 2
    assert x.set_value(3, inplace=False) is not x and x.to_numpy().max() == 2
    with pytest.raises(singa_rs.DTypeError):
        Tensor((1,), dtype="int32").set_value(1.5)


def test_operators_in_place(x):
    same = x
    x += 1
    x *= 2
    x -= from_numpy(XN)
    x /= 2
    x **= 2
    assert x is same
    np.testing.assert_allclose(x.to_numpy(), (((XN + 1) * 2 - XN) / 2) ** 2)
    x += x.as_type("float64")
    assert x.dtype == tensor.float32


def test_operators_in_place_refuse(x):
    i = from_numpy(np.arange(3))
    with pytest.raises(singa_rs.DTypeError):
        i += 1.5
    small = tensor.ones(3)
    with pytest.raises(singa_rs.ShapeError):
        small += x
    with pytest.raises(singa_rs.ShapeError):
        x += tensor.ones(4)
    assert i.tolist() == [0, 1, 2] and small.tolist() == [1, 1, 1]


def test_rows_and_columns(x):
    row, column = from_numpy(np.array([1.0, 2, 3])), from_numpy(np.array([2.0, 3]))
    assert x.add_row(row).mult_column(column) is x
    np.testing.assert_allclose(x.to_numpy(), (XN + [1, 2, 3]) * [[2], [3]])
    x.div_column(column).div_row(row).mult_row(row).add_column(column)
    np.testing.assert_allclose(x.to_numpy(), XN + [1, 2, 3] + [[2], [3]])
    m = from_numpy(XN.copy())
    assert tensor.add_row(2.0, row, 0.5, m) is m
    np.testing.assert_allclose(m.to_numpy(), XN / 2 + [2, 4, 6])
    tensor.add_column(1.0, column, 0.0, m)
    np.testing.assert_allclose(m.to_numpy(), np.repeat([[2], [3]], 3, 1))
    assert tensor.axpy(2.0, from_numpy(XN), m) is m


def test_random_fills_follow_the_seed():
    dev = device.get_default_device()

    def draw():
        dev.SetRandSeed(3)
        t = Tensor((1000,))
        first = t.gaussian(1.0, 2.0).to_numpy()
        second = tensor.uniform(-1.0, 2.0, t).to_numpy()
        third = tensor.bernoulli(0.25, t).to_numpy()
        return first, second, third

    first, second, third = draw()
    assert abs(first.mean() - 1) < 0.3 and abs(first.std() - 2) < 0.3
    assert second.min() >= -1 and second.max() < 2 and abs(second.mean() - 0.5) < 0.2
    assert set(third) == {0, 1} and abs(third.mean() - 0.25) < 0.1
    for one, other in zip(draw(), (first, second, third), strict=True):
        np.testing.assert_array_equal(one, other)


def test_initial_values_do_not_move_the_dropout_masks():
    dev, x = device.get_default_device(), tensor.ones(100)

    def mask(fill):
        dev.set_seed(5)
        if fill:
            Tensor((10,)).gaussian(0.0, 1.0)
        with autograd._training_scope(True):
            return autograd.dropout(x).to_numpy()

    np.testing.assert_array_equal(mask(False), mask(True))


# ---- a shape that is assigned -------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 2), [6], 6, (1, 6, 1), (-1,), (2, -1), (np.int64(3), 2)])
def test_an_assigned_shape(x, shape):
    memory = x.block_id
    x.shape = shape
    want = XN.reshape(shape)
    assert x.shape == want.shape and type(x.shape) is tuple and x.block_id == memory
    np.testing.assert_array_equal(x.to_numpy(), want)


def test_an_assigned_shape_that_does_not_fit(x):
    for shape in ((4, 2), (-1, 4), (-1, -1), (), (-2, -3), "23", None, (1.5, 4)):
        with pytest.raises((TypeError, ValueError), match="shape"):
            x.shape = shape
    turned = x.T()
    with pytest.raises(singa_rs.ShapeError, match="shape: got .* for strides"):
        turned.shape = (6,)
    assert x.shape == (2, 3) and turned.shape == (3, 2)


def test_a_placeholder_with_an_assigned_shape():
    placeholder = tensor.Placeholder((2, 3))
    placeholder.shape = (3, 2)
    with pytest.raises(singa_rs.ShapeError, match="shape"):
        placeholder.shape = (3, 3)
    placeholder.copy_from(XN.reshape(3, 2))
    np.testing.assert_array_equal(placeholder.to_numpy(), XN.reshape(3, 2))


def test_gradients_through_an_assigned_shape(x):
    autograd.training = True
    x.stores_grad = True
    weights = from_numpy(np.arange(6.0).reshape(3, 2))
    y = x * x
    y.stores_grad = True
    y.shape = (3, 2)
    found = autograd.gradients((y * y * weights).sum())
    w = weights.to_numpy()
    np.testing.assert_allclose(found[y].to_numpy(), 2 * XN.reshape(3, 2) ** 2 * w)
    np.testing.assert_allclose(found[x].to_numpy(), 4 * XN**3 * w.reshape(2, 3))
    row = x[1]
    row.shape = (3, 1)
    assert autograd.gradients((row * row).sum())[x].tolist() == [[0, 0, 0], [6, 8, 10]]


def test_a_recorded_tensor_with_views_keeps_its_shape(x):
    autograd.training = True
    y = x * 2.0
    part = y[0]
    for one in (y, part):
        with pytest.raises(singa_rs.GraphError, match="shape: got a recorded tensor with views"):
            one.shape = (-1, 1)
    del part, one
    y.shape = (3, 2)


class Reshapes(module.Module):
    """A step that reshapes its results and a parameter."""

    def __init__(self):
        super().__init__()
        self.w = from_numpy(np.linspace(-1, 1, 6).reshape(3, 2))
        self.w.stores_grad = True
        self.optimizer = opt.SGD(0.1, 0.9)

    def forward(self, x):
        y = x @ self.w
        y.shape = -1
        return y

    def train_one_batch(self, x):
        y = self.forward(x)
        self.optimizer((y * y).mean())
        return y


def test_an_assigned_shape_recorded():
    models = [Reshapes(), Reshapes()]
    for model, use_graph in zip(models, (True, False), strict=True):
        model.compile([tensor.Placeholder((2, 3))], use_graph=use_graph)
    for _ in range(4):
        same(*(model(from_numpy(XN)) for model in models))
        same(*(model.w for model in models))
    assert replays(models[0])
