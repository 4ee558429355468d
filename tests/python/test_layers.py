"""Layers (dense, normalisation, activations, losses): values against NumPy."""

import math
import warnings

import numpy as np
import pytest
from chains import names
from layer_calls import call, close, normal
from singa_rs import DTypeError, ShapeError, autograd, layer, tensor
from singa_rs.tensor import Tensor


@pytest.mark.parametrize("make", [lambda: layer.Linear(4), lambda: layer.Linear(3, 4)])
def test_linear(make):
    x, dense = normal(2, 3), make()
    y = call(dense, x)
    assert (dense.in_features, dense.out_features) == (3, 4)
    assert names(dense) == ["W", "b"] and dense.W.shape == (3, 4) and dense.b.shape == (4,)
    close(y, x @ dense.W.to_numpy() + dense.b.to_numpy())


def test_linear_without_bias_and_with_activation():
    x, dense = normal(2, 3), layer.Linear(3, 4, False, activation="RELU")
    y = call(dense, x)
    assert names(dense) == ["W"]
    close(y, np.maximum(x @ dense.W.to_numpy(), 0))


def test_linear_over_more_axes():
    x, dense = normal(2, 5, 3), layer.Linear(4, bias_init="ones")
    close(call(dense, x), x @ dense.W.to_numpy() + 1)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_gemm(trans_a, trans_b):
    x = normal(3, 2) if trans_a else normal(2, 3)
    gemm = layer.Gemm(4, 0.5, 2.0, trans_a, trans_b, bias_init="ones")
    y = call(gemm, x)
    w = gemm.W.to_numpy()
    assert names(gemm) == ["W", "b"] and gemm.b.shape == (1, 4)
    assert w.shape == ((4, 3) if trans_b else (3, 4))
    close(y, 0.5 * (x.T if trans_a else x) @ (w.T if trans_b else w) + 2)


def test_embedding():
    x = np.int32([[0, 2], [1, 1]])
    table = layer.Embedding(3, 5)
    close(call(table, x), table.W.to_numpy()[x])
    close(call(table, x[0]), table.W.to_numpy()[x[0]])


def test_embedding_from_pretrained():
    w = normal(3, 5)
    table = layer.Embedding(3, 5)
    table.from_pretrained(W=w)
    close(call(table, np.int32([2, 0])), w[[2, 0]])
    assert not table.W.requires_grad
    with pytest.raises(ShapeError, match="Embedding"):
        table.from_pretrained(normal(5, 3))


CONVS = ["Conv1d", "Conv2d", "Conv3d", "SeparableConv2d"]
CONVS += ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


@pytest.mark.parametrize("name", CONVS)
def test_the_kernels_size_goes_by_name_in_both_forms_of_convolutions(name):
    make = getattr(layer, name)
    for one in (make(4, 8, kernel_size=3, stride=2), make(4, 8, 3, 2)):
        assert (one.in_channels, one.nb_kernels) == (4, 8)
        assert set(one.window.kernel) == {3} and set(one.window.stride) == {2}
    for one in (make(8, kernel_size=3), make(nb_kernels=8, kernel_size=3)):
        assert one.in_channels is None and one.nb_kernels == 8
    for args, named in (((8,), {}), ((4, 8, 3), {"kernel_size": 3})):
        with pytest.raises(TypeError, match=rf"{name}: got .*want {name}\(in, out, kernel"):
            make(*args, **named)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 2, 5)])
def test_batch_norm(shape):
    x = normal(*shape) * 2 + 1
    axes, view = (0, *range(2, len(shape))), (1, 3) + (1,) * (len(shape) - 2)
    one = layer.BatchNorm2d(3)
    with autograd._training_scope(True):
        y = call(one, x)
    mean, var = x.mean(axes), x.var(axes)
    close(y, (x - mean.reshape(view)) / np.sqrt(var.reshape(view) + 1e-5), 1e-4)
    n = x.size / 3
    running = 0.1 * mean, 0.9 + 0.1 * var * n / (n - 1)
    close(one.running_mean.to_numpy(), running[0])
    close(one.running_var.to_numpy(), running[1])
    y = call(one, x)
    close(y, (x - running[0].reshape(view)) / np.sqrt(running[1].reshape(view) + 1e-5), 1e-4)
    assert names(one) == ["scale", "bias"]
    assert list(one.get_states()) == ["scale", "bias", "running_mean", "running_var"]


def test_batch_norm_momentum_is_the_weight_of_the_new_batch():
    x = normal(5, 2)
    for one in (layer.BatchNorm2d(2, 0.7), layer.BatchNorm2d(momentum=0.7)):
        with autograd._training_scope(True):
            call(one, x)
        close(one.running_mean.to_numpy(), 0.7 * x.mean(0))


def erf(x):
    return np.vectorize(math.erf)(x)


ACTIVATIONS = [
    (layer.ReLU(), lambda x: np.maximum(x, 0)),
    (layer.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    (layer.Tanh(), np.tanh),
    (layer.GELU(), lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2)))),
    (
        layer.GELU("tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    (layer.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    (layer.Hardswish(), lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    (layer.SiLU(), lambda x: x / (1 + np.exp(-x))),
    (layer.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    (layer.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * (np.exp(x) - 1))),
    (layer.SELU(), lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * (np.exp(x) - 1))),
    (layer.HardSigmoid(0.3, 0.4), lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    (layer.SoftPlus(), lambda x: np.log1p(np.exp(x))),
    (layer.SoftSign(), lambda x: x / (1 + np.abs(x))),
    (layer.SoftMax(), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
]


@pytest.mark.parametrize(("one", "want"), ACTIVATIONS, ids=lambda one: type(one).__name__)
def test_activation(one, want):
    x = normal(3, 4) * 2
    close(call(one, x), want(x.astype(np.float64)))
    assert one.get_params() == {} and one.get_states() == {}


@pytest.mark.parametrize("name", ["relu", "RELU", "TANH", "Gelu"])
def test_activation_by_name(name):
    dense = layer.Linear(2, activation=name)
    x = normal(2, 2)
    plain = Tensor(data=x @ call_weights(dense, x))
    close(call(dense, x), getattr(autograd, name.lower())(plain).to_numpy())


def call_weights(dense, x):
    call(dense, x)
    return dense.W.to_numpy()


def test_shapes():
    x = normal(2, 3, 4)
    close(call(layer.Flatten(), x), x.reshape(2, 12))
    close(call(layer.Flatten(2), x), x.reshape(6, 4))
    close(layer.Reshape()(Tensor(data=x), (4, -1)).to_numpy(), x.reshape(4, 6))
    close(call(layer.Reshape((0, 12)), x), x.reshape(2, 12))
    close(call(layer.Add(), x, x[0]), x + x[0])
    close(layer.Cat(1)([Tensor(data=x), Tensor(data=x)]).to_numpy(), np.concatenate([x, x], axis=1))
    with pytest.raises(ValueError, match="Reshape"):
        layer.Reshape()(Tensor(data=x))


def test_dropout():
    x = np.ones((100, 100), np.float32)
    one = layer.Dropout(0.2)
    close(call(one, x), x)
    with autograd._training_scope(True):
        y = call(one, x)
        again = call(one, x)
    assert set(np.unique(y)) == {np.float32(0), np.float32(1.25)}
    assert abs((y == 0).mean() - 0.2) < 0.02 and (y != again).any()


def test_losses():
    x, t = normal(4, 3), np.int32([0, 2, 1, 1])
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    onehot = np.eye(3, dtype=np.float32)[t]
    close(call(layer.SoftMaxCrossEntropy(), x, t), [-np.log(p[range(4), t]).mean()])
    close(call(layer.SoftMaxCrossEntropy(), x, onehot), [-np.log(p[range(4), t]).mean()])
    close(call(layer.MeanSquareError(), x, onehot), [((x - onehot) ** 2).mean()])
    close(call(layer.CrossEntropy(), p, onehot), [-np.log(p[range(4), t]).mean()], 1e-2)
    terms = onehot * np.log(p) + (1 - onehot) * np.log(1 - p)
    close(call(layer.BinaryCrossEntropy(), p, onehot), [-terms.sum() / 4], 1e-2)
    pos, neg = normal(5), normal(5)
    close(call(layer.RankingLoss(0.3), pos, neg), [np.maximum(0, 0.3 - pos + neg).mean()])


REFUSED = {
    "shape": lambda: Tensor(data=np.ones(4), dtype="float64"),
    "dtype": lambda: Tensor((3,)),
    "expanded": lambda: Tensor((1,), dtype="float64").expand((3,)),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("which", [0, 1])
def test_batch_norm_that_is_refused_moves_no_average(which, name):
    """Neither the other running average, nor part of the refused one."""
    running = [Tensor(data=np.full(3, 2.0), dtype="float64") for _ in range(2)]
    running[which] = REFUSED[name]()
    before = [t.to_numpy() for t in running]
    x, one = (Tensor(data=normal(*s), dtype="float64") for s in [(5, 3), (3,)])
    with (
        autograd._training_scope(True),
        pytest.raises((ShapeError, DTypeError), match="running_|expanded"),
    ):
        autograd.batchnorm_2d(autograd.BatchNormHandle(), x, one, one, *running)
    for t, was in zip(running, before, strict=True):
        np.testing.assert_array_equal(t.to_numpy(), was)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, -1])
def test_batch_norm_of_numbers_out_of_range(value):
    for name in ("momentum", "eps"):
        with pytest.raises(ValueError, match=f"batchnorm_2d: {name}"):
            autograd.BatchNormHandle(**{name: value})
    with pytest.raises(ValueError, match="momentum"):
        autograd.BatchNormHandle(1.5)
    assert autograd.BatchNormHandle(0).momentum == 0 and autograd.BatchNormHandle(1).momentum == 1


LOSSES = {
    "mse_loss": lambda x, t: ((x - t) ** 2).mean(),
    "cross_entropy": lambda x, t: -(t * np.log(x + 1e-4)).sum() / len(x),
    "binary_cross_entropy": lambda x, t: (
        -(t * np.log(x + 1e-4) + (1 - t) * np.log(1 - x + 1e-4)).sum() / len(x)
    ),
    "ranking_loss": lambda x, t: np.maximum(0, 0.2 - x + t).mean(),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_many_rows(name, dtype):
    """Their terms add up to more than float16 can hold, or bfloat16 can count."""
    rng, scale = np.random.default_rng(3), 300.0 if name == "mse_loss" else 1.0
    x, t = (scale * rng.uniform(0.05, 0.95, (2000, 100)).astype(np.float16) for _ in range(2))
    x[0, 0] = scale
    given = [Tensor(data=a, dtype="float32").as_type(dtype) for a in (x, t)]
    got = getattr(autograd, name)(*given)
    want = LOSSES[name](*(one.as_type("float64").to_numpy() for one in given))
    assert got.shape == (1,) and got.dtype == given[0].dtype
    error = {"float16": 1e-3, "bfloat16": 1e-2}.get(dtype, 1e-5)
    np.testing.assert_allclose(got.as_type("float64").to_numpy(), [want], rtol=error)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_losses_keep_the_dtype(dtype):
    for name in LOSSES:
        x = Tensor(data=np.full((4, 3), 0.5), dtype=dtype)
        x.stores_grad = True
        with autograd._training_scope(True):
            grad = autograd.gradients(getattr(autograd, name)(x, Tensor((4, 3), dtype=dtype)))[x]
        assert grad.dtype == x.dtype


# ---- 16-bit floats -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("name", "shape"), [("BatchNorm1d", (6, 3)), ("BatchNorm2d", (6, 3, 4, 4))]
)
def test_batch_normalisation_of_16_bit_floats(name, shape, dtype):
    """Its parameters and averages are of float32, in which it computes."""
    one, other = (getattr(layer, name)(3) for _ in range(2))
    x = Tensor(data=np.random.default_rng(0).standard_normal(shape), dtype=dtype)
    x.stores_grad = True
    with autograd._training_scope(True):
        y, wide = one(x), other(x.detach().as_type("float32"))
        grads = autograd.gradients(y.sum())
    assert y.dtype == x.dtype and grads[x].dtype == x.dtype
    assert {p.dtype.name for p in one.get_states().values()} == {"float32"}
    np.testing.assert_array_equal(y.to_numpy(), wide.as_type(dtype).to_numpy())
    for got, want in zip(one.get_states().values(), other.get_states().values(), strict=True):
        np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), rtol=1e-6)
    assert one(x).dtype == x.dtype


def test_a_plain_tensor_in_the_place_of_a_parameter_is_told():
    one = layer.Linear(2)
    one(tensor.zeros((1, 3)))
    given = tensor.zeros((3, 2))
    with pytest.warns(
        RuntimeWarning, match=r"Linear\.W: a tensor that stores no gradient .*copy_from"
    ):
        one.W = given
    given.stores_grad = True
    one.b, other = one.b, tensor.zeros((3, 2))
    other.stores_grad = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.W = other
        one.initialize(tensor.zeros((1, 3)))
