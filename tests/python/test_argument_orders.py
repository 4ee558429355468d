"""Functions that NumPy and SINGA call in different ways: `where`, and `sum mean max min`."""

import numpy as np
import pytest
from recorded import replays, same
from singa_rs import autograd, module, opt
from singa_rs.tensor import Placeholder, Tensor, from_numpy

FLAGS = [True, False, True]
X, Y = np.array([1.0, 2.0, 3.0]), np.array([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])


def double(array):
    return from_numpy(np.asarray(array), dtype="float64")


def mask(flags=FLAGS):
    return from_numpy(np.array(flags))


# ---- names of operands ---------------------------------------------------------------------------

A, B = np.array([1.5, -2.0]), np.array([0.5, -2.0])
#: By function: the names that SINGA and NumPy, PyTorch or ONNX have for its operands.
NAMES = {
    "abs": ("a", "x"), "exp": ("a", "x"), "sign": ("a", "x"), "less": ("xy", "ab"),
    "greater": ("xy", "ab"), "equal": ("xy", "ab"), "mul": ("xy", "ab"), "add": ("ab",),
    "sub": ("ab",), "div": ("ab",), "pow": ("ab",), "_and": ("ab",), "_or": ("ab",),
    "_xor": ("ab",), "_not": ("x",), "tanh": ("x",), "sqrt": ("x",), "log": ("x",),
}  # fmt: skip


@pytest.mark.parametrize(("name", "names"), [(k, n) for k, all in NAMES.items() for n in all])
def test_operands_by_name(name, names):
    function, given = getattr(autograd, name), [double(A), double(B)][: len(names)]
    want = function(*given).tolist()
    by_name = dict(zip(names, given, strict=True))
    assert np.array_equal(function(**by_name).tolist(), want, equal_nan=True)


def test_an_operand_under_both_names_is_refused():
    with pytest.raises(TypeError, match="less: got both x and a"):
        autograd.less(x=double(A), a=double(A), b=double(B))
    with pytest.raises(TypeError, match="less"):
        autograd.less(double(A), x=double(B))
    assert autograd.ctensor2numpy(x=double(A)).tolist() == A.tolist()


# ---- where --------------------------------------------------------------------------------------

ORDERS = {
    "NumPy's": lambda x, y: autograd.where(mask(), x, y),
    "NumPy's, two by name": lambda x, y: autograd.where(mask(), x=x, y=y),
    "SINGA's, a tensor": lambda x, y: autograd.where(x, y, mask()),
    "SINGA's, an array": lambda x, y: autograd.where(x, y, np.array(FLAGS)),
    "SINGA's, a list": lambda x, y: autograd.where(x, y, FLAGS),
    "SINGA's, nested": lambda x, y: autograd.where(x, y, [FLAGS, FLAGS]),
    "by name, floats": lambda x, y: autograd.where(x, y, condition=np.array([1.0, 0.0, 0.5])),
    "by name, integers": lambda x, y: autograd.where(x, y=y, condition=[1, 0, 1]),
    "all by name": lambda x, y: autograd.where(condition=mask(), y=y, x=x),
}


@pytest.mark.parametrize("order", ORDERS)
def test_where_in_every_order(order):
    autograd.training = True
    x, y = double(X), double(Y)
    x.stores_grad = y.stores_grad = True
    got = ORDERS[order](x, y)
    np.testing.assert_array_equal(got.to_numpy(), np.where(FLAGS, X, Y))
    found = autograd.gradients(got.sum())
    np.testing.assert_array_equal(found[x].to_numpy(), np.where(FLAGS, 2.0, 0))
    np.testing.assert_array_equal(found[y].to_numpy(), np.where(FLAGS, 0, np.ones((2, 3))))


def test_where_of_bools():
    """With bools everywhere the order is NumPy's, unless a name says otherwise."""
    a, b, c = mask(), mask([False, True, True]), mask([True, True, False])
    flags = [np.array(t.tolist()) for t in (a, b, c)]
    assert autograd.where(a, b, c).tolist() == np.where(*flags).tolist()
    assert autograd.where(*flags).tolist() == np.where(*flags).tolist()
    want = np.where(flags[2], flags[0], flags[1]).tolist()
    assert autograd.where(a, b, condition=c).tolist() == want
    assert autograd.where(x=a, y=b, condition=c).tolist() == want


def test_where_takes_arrays_and_numbers():
    x = double(X)
    want = np.where(FLAGS, X, 2.5).tolist()
    assert autograd.where(mask(), x, 2.5).tolist() == want
    assert autograd.where(x, 2.5, FLAGS).tolist() == want
    assert autograd.where(mask(), X, np.array(2.5)).tolist() == want
    assert autograd.where(np.array(FLAGS), x, 2.5).tolist() == want
    assert autograd.where(x, 2.5, True).tolist() == X.tolist()


@pytest.mark.parametrize(
    "operands",
    [
        (FLAGS, X, X),
        (double(X), double(X), double([1.0, 0.0, 1.0])),
        (double(X), double(X), np.array([1.0, 0.0, 1.0])),
        (double(X), double(X), [1, 0, 1]),
        (double(X), double(X), 1),
    ],
)
def test_where_without_a_condition_is_refused(operands):
    want = "where: got no condition, want a bool tensor or array first"
    with pytest.raises(TypeError, match=want):
        autograd.where(*operands)


@pytest.mark.parametrize(
    "operands, named",
    [
        ((X, X), {}),
        ((X, X, FLAGS, FLAGS), {}),
        ((X, X, FLAGS), {"condition": FLAGS}),
        ((X, X), {"mask": FLAGS}),
        ((mask(), X), {"x": X}),
        ((), {}),
    ],
)
def test_where_of_other_arguments_is_refused(operands, named):
    with pytest.raises(TypeError, match="where: got .* in order.*want x, y and condition"):
        autograd.where(*operands, **named)


# ---- sum, mean, max and min ---------------------------------------------------------------------

FUNCTIONS = {
    "sum": (np.sum, lambda *xs: np.sum(np.broadcast_arrays(*xs), 0)),
    "mean": (np.mean, lambda *xs: np.mean(np.broadcast_arrays(*xs), 0)),
    "max": (np.max, lambda *xs: np.max(np.broadcast_arrays(*xs), 0)),
    "min": (np.min, lambda *xs: np.min(np.broadcast_arrays(*xs), 0)),
}
each_function = pytest.mark.parametrize("name", FUNCTIONS)


@each_function
def test_one_tensor_is_reduced(name):
    function, (want, _) = getattr(autograd, name), FUNCTIONS[name]
    t = double(Y)
    assert function(t).shape == () and function(t).item() == want(Y)
    for axis in (0, 1, -1, np.int64(1)):
        np.testing.assert_array_equal(function(t, axis).to_numpy(), want(Y, axis))
        got = function(t, axis, keepdims=True)
        np.testing.assert_array_equal(got.to_numpy(), want(Y, axis, keepdims=True))
    for axis in (None, 1, (0, 1)):
        np.testing.assert_array_equal(function(t, axis=axis).to_numpy(), want(Y, axis))
    assert function(Y).item() == want(Y)


@each_function
def test_the_gradient_is_that_of_the_method(name):
    autograd.training = True
    for arguments in ((), (1,), (-2,)):
        t = double(Y)
        t.stores_grad = True
        y = getattr(autograd, name)(t, *arguments)
        weights = double(np.arange(1.0, y.numel + 1).reshape(y.shape))
        got = autograd.gradients((y * weights).sum())[t]
        want = autograd.gradients((getattr(t, name)(*arguments) * weights).sum())[t]
        np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())


@each_function
def test_several_are_joined_element_by_element(name):
    function, (_, want) = getattr(autograd, name), FUNCTIONS[name]
    a, b = double(X), double(Y)
    np.testing.assert_allclose(function(a, b).to_numpy(), want(X, Y))
    np.testing.assert_allclose(function(a, b, a).to_numpy(), want(X, Y, X))
    np.testing.assert_allclose(function(a, 5.5).to_numpy(), want(X, 5.5))
    zero = from_numpy(np.array(0))  # a tensor, and no axis
    np.testing.assert_allclose(function(a, zero).to_numpy(), want(X, 0))


@each_function
def test_an_axis_of_several_is_refused(name):
    function, a, b = getattr(autograd, name), double(X), double(Y)
    for operands, named in [
        ((a, b), {"axis": 0}),
        ((a, b), {"keepdims": True}),
        ((a, 0, b), {}),
        ((a, 0), {"axis": 0}),
    ]:
        with pytest.raises(TypeError, match=f"{name}: got .* want"):
            function(*operands, **named)
    for axis in (1, (0, 1), [1]):
        with pytest.raises(ValueError, match=name):
            function(a, axis)
    with pytest.raises(ValueError, match="no tensors"):
        function()


def test_operations_and_add_all_join_also_one():
    a = double(X)
    for made in (autograd.Sum()(a)[0], autograd.Max()(a)[0], autograd.add_all(a)):
        assert made.tolist() == X.tolist() and not made.shares_block(a)


# ---- recorded -----------------------------------------------------------------------------------


class Step(module.Module):
    """A step with both orders of each."""

    def __init__(self):
        super().__init__()
        self.w = from_numpy(np.linspace(-1, 1, 12).reshape(4, 3))
        self.w.stores_grad = True
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        y = x @ self.w
        return autograd.where(y > 0, y, y * 0.1) + autograd.where(y, 0.5, y < 0.2)

    def train_one_batch(self, x) -> tuple[Tensor, ...]:
        y = self.forward(x)
        rows = autograd.max(y, 1)
        loss = (
            autograd.sum(rows) + autograd.mean(y * y) + autograd.sum(autograd.min(y, y * y), 0)[0]
        )
        self.optimizer(loss)
        return y, rows, loss


def test_recorded():
    models = [Step(), Step()]
    for model, use_graph in zip(models, (True, False), strict=True):
        model.compile([Placeholder((5, 4))], use_graph=use_graph)
    for seed in range(4):
        x = from_numpy(np.random.default_rng(seed).normal(size=(5, 4)))
        same(*(model(x) for model in models))
        same(*(model.w for model in models))
    assert replays(models[0])
