"""SINGA's raw tensors and the module of its C++ bindings."""

import numpy as np
import pytest
from singa_rs import DTypeError, autograd, device, layer, module, singa_wrap, tensor
from singa_rs.compat import singa_wrap as compat_wrap
from singa_rs.tensor import from_numpy


def test_raw_tensors_have_singas_methods():
    raw = singa_wrap.Tensor((2, 3))
    raw.SetFloatValue(2.0)
    assert raw.shape() == (2, 3) == raw.shape and raw.shape(1) == 3
    assert raw.GetFloatValue(2) == [2.0, 2.0] and raw.GetIntValue(1) == [2]
    assert raw.device() == device.get_default_device()
    assert (raw.Size(), raw.MemSize(), raw.nDim()) == (6, 24, 2)
    assert raw.data_type() == singa_wrap.kFloat32
    raw.CopyFloatDataFromHostPtr(np.arange(6.0))
    raw += 1.0
    assert raw.GetFloatValue(3) == [1, 2, 3]
    assert not raw.Clone().shares_block(raw) and raw.AsType("int").dtype == tensor.int32
    assert singa_wrap.Tensor([2], singa_wrap.kInt).dtype == tensor.int32
    assert singa_wrap.Tensor([2], device.create_cpu_device(), tensor.float16).dtype == 1


def test_data_is_raw_and_shares():
    x = from_numpy(np.ones((2, 3)))
    assert x.data.shape() == (2, 3) and x.data.shares_block(x)
    assert type(tensor.from_raw_tensor(x.data)) is tensor.Tensor
    assert tensor.from_raw_tensor(x.data).shape == (2, 3)


def test_functions():
    a = from_numpy(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert singa_wrap.__add__(a, a).GetFloatValue(4) == [2, 4, 6, 8]
    assert singa_wrap.Mult(a, a).GetFloatValue(4) == [7, 10, 15, 22]
    assert singa_wrap.SumAll(a).shape() == (1,)
    assert singa_wrap.ConcatOn(singa_wrap.VecTensor([a, a]), 0).shape() == (4, 2)
    singa_wrap.Axpy(0.5, a, a)
    assert a.tolist() == [[1.5, 3.0], [4.5, 6.0]]
    assert not singa_wrap.USE_CUDA and singa_wrap.SINGA_VERSION > 1101


def test_operators_see_raw_tensors():
    class Double(autograd.Operator):
        def forward(self, x):
            assert x.shape() == (2,)
            return singa_wrap.__add__(x, x)

        def backward(self, dy):
            assert dy.shape() == (2,)
            return singa_wrap.__mul__(dy, 2.0)

    w = from_numpy(np.ones(2))
    w.stores_grad = True
    with autograd._training_scope(True):
        y = Double()(w)[0]
        assert type(y) is tensor.Tensor
        found = autograd.gradients(y.sum())
    assert found[w].tolist() == [2, 2] and type(found[w]) is tensor.Tensor


def test_layers_have_aliases():
    assert autograd.Linear is layer.Linear and autograd.MaxPool2d is layer.MaxPool2d


def test_conversions_of_raw_tensors_are_raw():
    raw = from_numpy(np.array([1.0, 2.0])).data
    for dtype in (singa_wrap.kInt, singa_wrap.kFloat16, singa_wrap.kFloat32):
        made = raw.AsType(dtype)
        assert made.nDim() == 1 and made.data_type() == dtype and made.GetIntValue(2) == [1, 2]
    raw.shape = (2, 1)
    assert raw.shape() == (2, 1)


def test_norms_repetitions_and_halves_of_raw_tensors():
    raw = from_numpy(np.array([[3.0, -4.0]])).data
    assert raw.L1() == 3.5 and raw.L2() == 2.5
    assert raw.Repeat([2], 1).tolist() == [[3, 3, -4, -4]] and raw.Repeat([2], 0).shape() == (2, 2)
    half = singa_wrap.Tensor((2,), singa_wrap.kFloat16)
    half.CopyHalfFloatDataFromHostPtr(np.array([0.5, 2], np.float16))
    assert half.GetHalfFloatValue(2) == [0.5, 2] and half.MemSize() == 4
    half.ResetLike(raw)
    assert half.shape() == (1, 2) and half.data_type() == singa_wrap.kFloat32
    raw *= 2.0
    raw -= raw
    assert raw.shape() == (1, 2) and raw.GetFloatValue(2) == [0, 0]


# ---- gradients -----------------------------------------------------------------------------------


def by_hand(function, *tensors, dy):
    """The gradients that the creator of a result gives for a raw gradient."""
    with autograd._training_scope(True):
        return function(*tensors).creator.backward(dy)


def test_what_gets_a_raw_tensor_answers_raw_ones():
    a, b = from_numpy(np.ones((2, 3))), from_numpy(np.full((3,), 2.0))
    dy = from_numpy(np.ones((2, 3)))
    for given in by_hand(autograd.mul, a, b, dy=dy.data):
        assert given.shape() == given.shape and given.AsType("int").shape(0)
        given.ToHost()
    da, db = by_hand(autograd.mul, a, b, dy=dy.data)
    assert da.GetFloatValue(2) == [2, 2] and db.GetFloatValue(3) == [2, 2, 2]
    plain = by_hand(autograd.mul, a, b, dy=dy)
    assert [type(one) for one in plain] == [tensor.Tensor] * 2
    assert [one.tolist() for one in plain] == [da.tolist(), db.tolist()]


def test_losses_answer_a_raw_gradient_without_one_being_given():
    x, t = from_numpy(np.array([[1.0, 2.0]])), from_numpy(np.array([[0.0, 4.0]]))
    with autograd._training_scope(True):
        dx = autograd.mse_loss(x, t).creator.backward()
    assert dx.shape() == (1, 2) and dx.GetFloatValue(2) == [1, -2]


def test_the_indices_of_an_embedding_have_a_gradient_of_zeros():
    x, w = from_numpy(np.array([[2, 0, 2]])), from_numpy(np.ones((4, 2)))
    dx, dw = by_hand(autograd.embedding, x, w, dy=from_numpy(np.ones((1, 3, 2))).data)
    assert dx.shape() == (1, 3) and dx.GetFloatValue(3) == [0, 0, 0]
    assert dw.tolist() == [[1, 1], [0, 0], [2, 2], [0, 0]] and dw.shape() == (4, 2)


# ---- data that is assigned -----------------------------------------------------------------------


def test_an_empty_tensor_takes_all_from_a_raw_one():
    raw = from_numpy(np.arange(6).reshape(2, 3)).data
    made = tensor.Tensor()
    made.data = raw
    made.shape = (3, 2)
    made.device = raw.device()
    made.dtype = raw.data_type()
    assert made.dtype == tensor.int32 and made.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert isinstance(made, tensor.Tensor) and made.shares_block(raw)
    with pytest.raises(DTypeError, match="float32 for a tensor of int32; to_type"):
        made.dtype = tensor.float32
    assert (made + 1).tolist() == [[1, 2], [3, 4], [5, 6]]


class OfRaw(module.Module):
    """Takes its input apart as SINGA's programs do."""

    def forward(self, x):
        made = tensor.Tensor()
        made.data = x.data
        made.shape = (3, 2)
        made.dtype = made.data.data_type()
        handle = singa_wrap.PoolingHandle(made.reshape((1, 1, 3, 2)).data, (2, 2), (1, 1), (0, 0))
        pooled = singa_wrap.CpuPoolingForward(handle, made.reshape((1, 1, 3, 2)))
        return made, pooled, singa_wrap.SliceOn(made.data, 1, 3, 0)


def test_raw_tensors_in_recorded_steps():
    net, eager = OfRaw(), OfRaw()
    net.compile([tensor.Placeholder((2, 3))], is_train=False)
    eager.eval()
    for step in range(5):
        x = from_numpy(np.arange(6.0).reshape(2, 3) * (step - 2))
        for got, want in zip(net(x), eager(x), strict=True):
            assert got.tolist() == want.tolist() and type(got) is type(want)
    assert len(net.graphs) == 1


def test_assigned_data_leaves_other_tensors_as_they_are():
    w = from_numpy(np.ones(2))
    w.data += from_numpy(np.ones(2)).data
    assert type(w) is tensor.Tensor and w.tolist() == [2, 2]


# ---- functions -----------------------------------------------------------------------------------

X = np.array([[-1.5, 0.5, 2.5], [0.25, 0.75, -0.5]], np.float32)
UNARY = {
    "Abs": np.abs, "Ceil": np.ceil, "Cos": np.cos, "Cosh": np.cosh, "Atan": np.arctan,
    "Asinh": np.arcsinh, "Exp": np.exp, "Floor": np.floor, "ReLU": lambda x: np.maximum(x, 0),
    "Round": lambda x: np.trunc(x + np.copysign(0.5, x)), "RoundE": np.round,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Sign": np.sign, "Sin": np.sin,
    "Sinh": np.sinh, "Square": np.square, "Tan": np.tan, "Tanh": np.tanh, "Contiguous": np.array,
    "DefaultTranspose": np.transpose,
}  # fmt: skip
#: For arguments within their domains.
INSIDE = {
    "Acos": np.arccos, "Asin": np.arcsin, "Atanh": np.arctanh, "Log": np.log, "Sqrt": np.sqrt,
}  # fmt: skip


@pytest.mark.parametrize("name", [*UNARY, *INSIDE, "Acosh"])
def test_functions_of_one_tensor(name):
    x = X if name in UNARY else np.abs(X) / 4 + 0.1 if name in INSIDE else np.abs(X) + 1
    want = {**UNARY, **INSIDE, "Acosh": np.arccosh}[name](x)
    made = getattr(singa_wrap, name)(from_numpy(x).data)
    assert made.shape() == want.shape
    np.testing.assert_allclose(made.to_numpy(), want, rtol=1e-5, atol=1e-6)


WITH_NUMBERS = {
    "AddFloat": np.add, "SubFloat": np.subtract, "MultFloat": np.multiply, "DivFloat": np.divide,
    "PowFloat": np.power, "LTFloat": np.less, "LEFloat": np.less_equal, "GTFloat": np.greater,
    "GEFloat": np.greater_equal, "EQFloat": np.equal,
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_functions_of_a_tensor_and_a_number(name):
    x = np.abs(X)
    made = getattr(singa_wrap, name)(from_numpy(x).data, 0.5)
    want = WITH_NUMBERS[name](x, np.float32(0.5)).astype(np.float32)
    np.testing.assert_allclose(made.to_numpy(), want, rtol=1e-6)
    assert made.data_type() == singa_wrap.kFloat32


def test_comparisons_of_tensors_give_numbers():
    a, b = from_numpy(X).data, from_numpy(X[::-1].copy()).data
    pairs = {"__lt__": np.less, "__le__": np.less_equal, "__gt__": np.greater}
    for name, reference in {**pairs, "__ge__": np.greater_equal, "__eq__": np.equal}.items():
        made = getattr(compat_wrap, name)(a, b)
        assert made.tolist() == reference(X, X[::-1]).astype(float).tolist()
        assert made.data_type() == singa_wrap.kFloat32


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2])
def test_softmax_goes_over_all_axes_from_one_on(axis):
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2) / 5 + 1000
    axes = tuple(range(axis % 3, 3))
    e = np.exp(x - x.max())
    made = singa_wrap.SoftMax(from_numpy(x).data, axis)
    np.testing.assert_allclose(made.to_numpy(), e / e.sum(axes, keepdims=True), rtol=1e-5)


def test_functions_that_write_into_a_tensor():
    a, b, out = from_numpy(X).data, from_numpy(X * 2).data, singa_wrap.Tensor((2, 3))
    singa_wrap.Add(a, b, out)
    np.testing.assert_allclose(out.to_numpy(), X * 3)
    singa_wrap.EltwiseMult(a, b, out)
    np.testing.assert_allclose(out.to_numpy(), X * X * 2)
    row, column = singa_wrap.Tensor((3,)), singa_wrap.Tensor((2,))
    singa_wrap.SumRows(a, row)
    singa_wrap.SumColumns(a, column)
    np.testing.assert_allclose(row.to_numpy(), X.sum(0), rtol=1e-6)
    np.testing.assert_allclose(column.to_numpy(), X.sum(1), rtol=1e-6)
    singa_wrap.AddRow(row, a)
    singa_wrap.MultColumn(column, a)
    want = (X + X.sum(0)) * X.sum(1)[:, None]
    np.testing.assert_allclose(a.to_numpy(), want, rtol=1e-5)
    singa_wrap.MultWithScale(
        2.0, b, singa_wrap.DefaultTranspose(b), 0.0, square := singa_wrap.Tensor((2, 2))
    )
    np.testing.assert_allclose(square.to_numpy(), 8 * X @ X.T, rtol=1e-5)
    singa_wrap.CopyDataToFrom(row, a, 2, 3, 1)
    np.testing.assert_allclose(row.to_numpy()[1:], want.ravel()[3:5], rtol=1e-5)


def test_parts_are_copies():
    x = from_numpy(X)
    part = singa_wrap.SliceOn(x.data, 1, 3, 1)
    assert part.tolist() == X[:, 1:3].tolist()
    part += 1.0
    assert x.tolist() == X.tolist()
    assert singa_wrap.SliceOn(x.data, 0, 1, -2).shape() == (1, 3)
    with pytest.raises(ValueError, match="SliceOn: got 2 to 4 on an axis of 3"):
        singa_wrap.SliceOn(x.data, 2, 4, 1)


def test_sums_and_means():
    x = from_numpy(X).data
    assert singa_wrap.SumAsFloat(x) == X.sum()
    np.testing.assert_allclose(singa_wrap.Sum(x, 1).to_numpy(), X.sum(1), rtol=1e-6)
    np.testing.assert_allclose(singa_wrap.Average(x, 0).to_numpy(), X.mean(0), rtol=1e-6)
    dy = from_numpy(np.ones((2, 3))).data
    assert singa_wrap.ReLUBackward(dy, x).tolist() == (X > 0).astype(float).tolist()
    assert singa_wrap.Transpose(x, [1, 0]).shape() == (3, 2)
    assert singa_wrap.Product([2, 3]) == 6 and singa_wrap.SizeOf(singa_wrap.kFloat16) == 2


def test_random_numbers_fill_raw_tensors():
    x = singa_wrap.Tensor((1000,))
    singa_wrap.Uniform(2.0, 3.0, x)
    assert 2 <= x.to_numpy().min() < 2.1 and 2.9 < x.to_numpy().max() < 3
    singa_wrap.Bernoulli(0.5, x)
    assert set(x.tolist()) == {0, 1}
