"""Functions of SINGA's bindings by which programs write operators of their own."""

import numpy as np
import pytest
from singa_rs import ShapeError, autograd, singa_wrap
from singa_rs.compat import singa
from singa_rs.compat import singa_wrap as compat_wrap
from singa_rs.tensor import from_numpy

RNG = np.random.default_rng(2)
X = np.array([[1.5, 0.5, 2.5], [0.25, 0.75, 4.0]], np.float32)
V, W = np.array([2, 4], np.float32), np.array([1, 2, 4], np.float32)


@pytest.mark.parametrize("name", "add sub mul div lt le gt ge eq".split())
def test_operators_have_one_meaning_in_every_module(name):
    dunder = f"__{name}__"
    given = vars(compat_wrap)[dunder]
    assert getattr(singa.singa_wrap, dunder) is given is getattr(singa_wrap, dunder)
    assert given(from_numpy(X).data, from_numpy(X).data).shape() == (2, 3)


WRITTEN = {
    "AddFloatWithRet": np.add, "SubFloatWithRet": np.subtract,
    "EltwiseMultFloatWithRet": np.multiply, "DivFloatWithRet": np.divide,
    "PowFloatWithRet": np.power, "PowWithRet": np.power,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_results_are_written_into_the_last_argument(name):
    given = 1.5 if "Float" in name else np.flip(X).copy()
    other = given if "Float" in name else from_numpy(given).data
    out = singa_wrap.Tensor((2, 3))
    assert getattr(singa_wrap, name)(from_numpy(X).data, other, out) is None
    np.testing.assert_allclose(out.to_numpy(), WRITTEN[name](X, given), rtol=1e-6)


def test_products_are_written_into_the_last_argument():
    out = singa_wrap.Tensor((2, 2))
    singa_wrap.MultWithRet(from_numpy(X).data, from_numpy(X.T.copy()).data, out)
    np.testing.assert_allclose(out.to_numpy(), X @ X.T, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "given", "want"),
    [
        ("SubColumn", (V,), X - V[:, None]),
        ("SubRow", (W,), X - W),
        ("AddColumnWithScale", (2.0, 0.5, V), 2 * V[:, None] + 0.5 * X),
        ("AddRowWithScale", (2.0, 0.5, W), 2 * W + 0.5 * X),
    ],
)
def test_vectors_change_matrices_in_place(name, given, want):
    out = from_numpy(X).data
    *scales, vector = given
    getattr(singa_wrap, name)(*scales, from_numpy(vector).data, out)
    np.testing.assert_allclose(out.to_numpy(), want, rtol=1e-6)


# ---- operators as SINGA writes them --------------------------------------------------------------


class CrossEntropyOfSoftMax(autograd.Operator):
    def __init__(self, t):
        super().__init__()
        self.t = t.data

    def forward(self, x):
        self.p = singa_wrap.SoftMax(x)
        loss = singa_wrap.SumAll(singa_wrap.CrossEntropyFwd(self.p, self.t))
        loss /= float(x.shape()[0])
        return loss

    def backward(self, dy=1.0):
        dx = singa_wrap.SoftmaxCrossEntropyBwd(self.p, self.t)
        dx /= float(self.p.shape()[0])
        return dx


class SoftMax(autograd.Operator):
    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, x):
        self.output = singa_wrap.SoftMax(x, self.axis)
        return self.output

    def backward(self, dy):
        return singa_wrap.SoftMaxBackward(dy, self.axis, self.output)


class Add(autograd.Operator):
    def forward(self, a, b):
        self.a_shape, self.b_shape = a.shape(), b.shape()
        made = singa_wrap.__add__(a, b)
        self.y_shape = made.shape()
        return made

    def backward(self, dy):
        found = []
        for shape in (self.a_shape, self.b_shape):
            found.append(singa.autograd.back_broadcast(self.y_shape, shape, dy))
            assert found[-1].shape() == shape
        return tuple(found)


def with_gradient(x, compute):
    """The value of a loss of an array, and its gradient."""
    leaf = from_numpy(x)
    leaf.stores_grad = True
    with autograd._training_scope(True):
        loss = compute(leaf)
        return loss.to_numpy(), autograd.gradients(loss)[leaf].to_numpy()


def alike(x, one, other):
    for got, want in zip(with_gradient(x, one), with_gradient(x, other), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "labels", [np.array([0, 3, 1]), np.array([[0], [3], [1]]), RNG.random((3, 4))]
)
def test_a_cross_entropy_by_hand_is_that_of_the_package(labels):
    x, t = RNG.standard_normal((3, 4)).astype(np.float32), from_numpy(labels)
    alike(
        x,
        lambda leaf: CrossEntropyOfSoftMax(t)(leaf)[0],
        lambda leaf: autograd.softmax_cross_entropy(leaf, t),
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_a_softmax_by_hand_is_that_of_the_package(axis):
    x, t = RNG.standard_normal((2, 3, 4)).astype(np.float32), from_numpy(RNG.random((2, 3, 4)))
    alike(
        x,
        lambda leaf: autograd.mse_loss(SoftMax(axis)(leaf)[0], t),
        lambda leaf: autograd.mse_loss(singa.autograd.softmax(leaf, axis), t),
    )


def test_a_sum_by_hand_is_that_of_the_package():
    b, t = from_numpy(W), from_numpy(np.zeros((2, 3)))
    for x in (X, np.ones((2, 1), np.float32)):
        alike(
            x,
            lambda leaf: autograd.mse_loss(Add()(leaf, b)[0], t),
            lambda leaf: autograd.mse_loss(autograd.add(leaf, b), t),
        )


def test_probabilities_of_zero_and_nan():
    p = from_numpy(np.array([[1, 0], [np.nan, 1]], np.float32)).data
    first, second = singa_wrap.CrossEntropyFwd(p, from_numpy(np.array([1, 0]))).tolist()
    assert first == pytest.approx(126 * np.log(2)) and np.isnan(second)


@pytest.mark.parametrize("name", ["CrossEntropyFwd", "SoftmaxCrossEntropyBwd"])
@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 2, 1], ValueError, "index 2 is out of range for size 2"),
        ([0, -1, 1], ValueError, "index -1 is out of range"),
        ([0, 0.5, 1], ValueError, "got 0.5, want an integer"),
        ([0, 1], ShapeError, r"got shapes \(3, 2\), \(2,\), want \(N, C\) and one class index"),
    ],
)
def test_labels_that_are_no_classes(name, labels, error, message):
    p = from_numpy(np.full((3, 2), 0.5, np.float32)).data
    with pytest.raises(error, match=f"{name}: .*{message}"):
        getattr(singa_wrap, name)(p, from_numpy(np.array(labels)).data)


def test_gradients_of_softmax_of_another_shape():
    y = singa_wrap.SoftMax(from_numpy(X).data)
    with pytest.raises(ShapeError, match=r"SoftMaxBackward: got shapes \(2,\), \(2, 3\)"):
        singa_wrap.SoftMaxBackward(from_numpy(V).data, 1, y)


def test_raw_tensors_and_their_vectors():
    t, tensor = from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3)), singa.tensor
    made = tensor.CTensor(t.data)
    assert made.shape() == (2, 3) and type(made) is compat_wrap.Tensor
    made.SetFloatValue(2.0)
    assert t.numpy().sum() == 12
    assert t.data.transpose() is False and t.T().data.transpose() is True
    assert tensor.CTensor(t.T().data).transpose() is True
    assert t.data.transpose((1, 0)).shape == tensor.transpose(t.data).shape == (3, 2)
    assert compat_wrap.DefaultTranspose(t.data).shape() == (3, 2)
    found = compat_wrap.VecTensor([t.data])
    found.push_back(t.data)
    assert found.size() == len(found) == 2
    assert tensor.Tensor((2,)).is_dummy() and not tensor.Tensor((2,), name="W").is_dummy()
