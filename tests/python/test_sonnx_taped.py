"""Exporting what has been computed: `to_onnx` follows the tape."""

import numpy as np
import pytest
from onnx_models import real, there
from singa_rs import autograd, layer, opt, sonnx, tensor
from singa_rs.errors import GraphError
from singa_rs.tensor import Tensor, to_numpy

A = autograd


def test_to_onnx_of_what_was_computed():
    parts = [layer.Conv2d(3, 3), layer.BatchNorm2d(), layer.ReLU(), layer.Dropout(0.5)]
    parts += [layer.Flatten(), layer.Linear(2)]
    x = Tensor(data=real(4, 3, 8, 8))

    def forward():
        y = x
        for one in parts:
            y = one(y)
        return y

    autograd.training = True
    try:
        made = sonnx.to_onnx([x, (1, 2), 3.0], [forward()])
    finally:
        autograd.training = False
    want = to_numpy(forward())
    np.testing.assert_allclose(there(made, [to_numpy(x)])[0], want, atol=1e-5)


TAPED = {
    "comparisons": (lambda a, b: [a < b, a >= b, A._and(a, b), A._not(a)], 2),
    "positions": (lambda a: [A.nonzero(a), A.shape(a), a > 0], 1),
    "chosen": (lambda a, b: [A.where(a > b, a, b)], 2),
    "scattered": (lambda a, b: [A.scatter_elements(a, np.array([[1, 0, 2]]), b[:1], 0)], 2),
    "products": (lambda a, b: [A.gemm(a, b, None, 0.5), A.gemm(a, b, b, 0.5, 2.0)], 2),
    "loss": (lambda a, b: [A.softmax_cross_entropy(a, A.softmax(b))], 2),
    "classes": (lambda a: [A.softmax_cross_entropy(a, np.array([0, 2, 1]))], 1),
}


@pytest.mark.parametrize("name", TAPED)
def test_to_onnx_of_operations_with_and_without_gradients(name):
    function, count = TAPED[name]
    xs = [Tensor(data=real(3, 3, seed=i)) for i in range(count)]
    autograd.training = True
    try:
        ys = function(*xs)
        made = sonnx.to_onnx(xs, ys)
        rep = sonnx.prepare(made)
        rep.is_graph = True
        found = rep.run(xs)
    finally:
        autograd.training = False
    for y, z, o in zip(ys, found, there(made, [to_numpy(x) for x in xs]), strict=True):
        np.testing.assert_allclose(to_numpy(z), to_numpy(y), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(o, to_numpy(y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_to_onnx_of_what_was_added_at_indices(dtype):
    x, updates = (Tensor(data=real(3, 4, seed=i), dtype=dtype) for i in range(2))
    autograd.training = True
    try:
        y = A.scatter_add(x, 1, np.array([[0, 1, 0, 3]]), updates)
        with pytest.warns(UserWarning, match="written as a constant"):  # the indices
            made = sonnx.to_onnx([x, updates], [y])
    finally:
        autograd.training = False
    found = there(made, [to_numpy(x), to_numpy(updates)])[0]
    np.testing.assert_array_equal(found, to_numpy(y))


def test_to_onnx_after_training():
    """SINGA's programs export what they have trained: with the weights as they are by then."""
    net, x = (
        layer.Sequential(layer.Linear(4), layer.ReLU(), layer.Linear(2)),
        Tensor(data=real(5, 3)),
    )
    sgd = opt.SGD(lr=0.1)
    autograd.training = True
    y = net(x)
    for p, g in autograd.backward(autograd.mse_loss(y, tensor.zeros((5, 2)))):
        sgd.apply(p.name, p, g)
    made = sonnx.to_onnx([x], [y])
    np.testing.assert_allclose(there(made, [to_numpy(x)])[0], to_numpy(net(x)), atol=1e-6)
    assert np.abs(to_numpy(net(x)) - to_numpy(y)).max() > 1e-3


def test_to_onnx_after_a_users_operation():
    class Double(autograd.Operator):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return dy * 2

    x = Tensor(data=real(3, 3))
    x.stores_grad = True
    autograd.training = True
    y = (Double()(x)[0] + 1.0).sum()
    list(autograd.backward(y))
    with pytest.raises(GraphError, match="an operation of the user"):
        sonnx.to_onnx([x], [y])


def test_to_onnx_after_backward_of_what_is_gone():
    w = Tensor(data=real(3, 3))
    w.stores_grad = True
    autograd.training = True
    y = (w * Tensor(data=real(3, 3, seed=1))).sum()
    list(autograd.backward(y))
    with pytest.raises(GraphError, match="is gone"):
        sonnx.to_onnx([], [y])


def test_to_onnx_has_running_averages_as_constants():
    """Also if they are among the inputs."""
    x = Tensor(data=real(4, 3, 5, 5))
    scale, bias, mean, var = (Tensor(data=np.abs(real(3, seed=i)) + 0.5) for i in range(4))
    autograd.training = True
    y = autograd.batchnorm_2d(autograd.BatchNormHandle(0.9), x, scale, bias, mean, var)
    made = sonnx.to_onnx([x, scale, bias, mean, var], [y])
    assert len(made.graph.input) == 3
    autograd.training = False
    want = autograd.batchnorm_2d(autograd.BatchNormHandle(0.9), x, scale, bias, mean, var)
    found = there(made, [to_numpy(one) for one in (x, scale, bias)])[0]
    np.testing.assert_allclose(found, to_numpy(want), atol=1e-5)


def test_to_onnx_of_what_is_gone():
    autograd.training = True
    try:
        x = Tensor(data=real(3, 3))
        y = (x * 2).detach() > 0
        with pytest.raises(GraphError, match="^to_onnx: .* is gone; use export"):
            sonnx.to_onnx([x], [y])
    finally:
        autograd.training = False


def test_to_onnx_of_a_write_into_a_part():
    autograd.training = True
    try:
        x = Tensor(data=real(3, 3))
        y = x * 2
        y[::2] = x[:2] - 1
        y.T[0] = x[0]
        made = sonnx.to_onnx([x], [y + 1])
        y[0] = 7.0
        with pytest.raises(NotImplementedError, match="a write of constants .* use export"):
            sonnx.to_onnx([x], [y])
    finally:
        autograd.training = False
    given = real(3, 3) + 1
    want = given * 2
    want[::2] = given[:2] - 1
    want[:, 0] = given[0]
    np.testing.assert_allclose(there(made, [given])[0], want + 1, rtol=1e-6)


def test_to_onnx_needs_a_tape():
    with pytest.raises(ValueError, match="no operation on the tape.*training must be True.*export"):
        sonnx.to_onnx([tensor.zeros((2,))], [tensor.zeros((2,))])
    with pytest.raises(TypeError, match="outputs: got float, want tensors"):
        sonnx.to_onnx([tensor.zeros((2,))], [1.0])


def test_a_bias_is_added_as_it_is():
    """So that a run that ends before the last node gives the products (SINGA's `last_layers`)."""
    net, x = layer.Sequential(layer.Linear(4), layer.ReLU(), layer.Linear(2)), real(5, 3)
    autograd.training = True
    try:
        made = sonnx.to_onnx([given := Tensor(data=x)], [net(given)])
    finally:
        autograd.training = False
    assert [one.op_type for one in made.graph.node] == ["MatMul", "Add", "Relu", "MatMul", "Add"]
    first, last = net[0], net[2]
    hidden = np.maximum(x @ to_numpy(first.W) + to_numpy(first.b), 0)
    rep = sonnx.prepare(made)
    np.testing.assert_allclose(
        rep.run([x], last_layers=-1)[0], hidden @ to_numpy(last.W), rtol=1e-5, atol=1e-6
    )


def test_axes_in_front_stay_where_the_result_has_them():
    x, b = (Tensor(data=real(*shape)) for shape in ((3,), (3,)))
    autograd.training = True
    try:
        ys = [
            x.reshape((1, 3)) + b,
            x.reshape((1, 1, 3)) * b.reshape((1, 3)),
            x.reshape((1, 3)) - b.reshape((1, 1, 3)),
            x.reshape((3, 1)) + b.reshape((1, 3)),
        ]
        made = sonnx.to_onnx([x, b], ys)
    finally:
        autograd.training = False
    for found, y in zip(there(made, [to_numpy(x), to_numpy(b)]), ys, strict=True):
        assert found.shape == y.shape
        np.testing.assert_array_equal(found, to_numpy(y))


def test_to_onnx_warns_of_constants():
    x = Tensor(data=real(3, 3))
    autograd.training = True
    try:
        y = x * Tensor(data=to_numpy(x))
        with pytest.warns(UserWarning, match="written as a constant"):
            sonnx.to_onnx([x], [y])
    finally:
        autograd.training = False


ALONE = {
    "indices": lambda: A.onehot(-1, Tensor(data=np.int32([2, 0, 1])), 3, (0.5, 2.0)),
    "floats": lambda: A.onehot(-1, Tensor(data=np.float32([2, 0, 1])), 3, (0.5, 2.0)),
    "an array": lambda: A.onehot(-1, np.array([2, 0, 1]), 3, (0.5, 2.0)),
    "sizes": lambda: A.constant_of_shape(Tensor(data=np.int32([3, 3])), 1.5),
}


@pytest.mark.filterwarnings("ignore:to_onnx")
@pytest.mark.parametrize("of", ALONE)
def test_indices_and_sizes_that_nothing_else_holds_are_constants(of):
    x = Tensor(data=real(3, 3))
    autograd.training = True
    try:
        y = x * ALONE[of]()
        made = sonnx.to_onnx([x], [y])
    finally:
        autograd.training = False
    np.testing.assert_array_equal(there(made, [to_numpy(x)])[0], to_numpy(y))
