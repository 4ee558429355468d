"""Layers: shapes, names and values against NumPy, and wrong arguments."""

import math

import numpy as np
import pytest
from singa_rs import DTypeError, ShapeError, autograd, initializer, layer, tensor
from singa_rs.tensor import Tensor

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def call(one, *arrays):
    return one(*(Tensor(data=a) for a in arrays)).to_numpy()


def close(got, want, tolerance=1e-5):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def names(one):
    return list(one.get_params())


# ---- dense -------------------------------------------------------------------------------------


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


# ---- convolution and pooling -------------------------------------------------------------------


def windows(x, kernel, stride, pads, value=0.0, dilation=(1, 1)):
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    view = view[:, :, :: stride[0], :: stride[1]]
    return view[..., :: dilation[0], :: dilation[1]]


def conv(x, w, b, stride, pads, dilation=(1, 1), group=1):
    view = windows(x, w.shape[2:], stride, pads, dilation=dilation)
    parts = zip(np.split(view, group, axis=1), np.split(w, group, axis=0), strict=True)
    y = np.concatenate([np.einsum("nchwij,ocij->nohw", v, k) for v, k in parts], axis=1)
    return y if b is None else y + b[:, None, None]


CONVOLUTIONS = [
    (lambda: layer.Conv2d(6, 3), {}),
    (lambda: layer.Conv2d(4, 6, 3), {}),
    (lambda: layer.Conv2d(4, 6, 3, 2), {"stride": (2, 2)}),
    (lambda: layer.Conv2d(4, 6, 3, 2, 1), {"stride": (2, 2), "pads": (1, 1, 1, 1)}),
    (lambda: layer.Conv2d(6, (3, 2), stride=(1, 2)), {"stride": (1, 2)}),
    (lambda: layer.Conv2d(6, 3, padding=(1, 2)), {"pads": (1, 2, 1, 2)}),
    (lambda: layer.Conv2d(6, 3, padding=(0, 1, 2, 0)), {"pads": (0, 1, 2, 0)}),
    (lambda: layer.Conv2d(6, 2, pad_mode="SAME_UPPER"), {"pads": (0, 0, 1, 1)}),
    (lambda: layer.Conv2d(6, 2, pad_mode="SAME_LOWER"), {"pads": (1, 1, 0, 0)}),
    (
        lambda: layer.Conv2d(6, 3, stride=2, pad_mode="SAME_UPPER"),
        {"stride": (2, 2), "pads": (1, 0, 1, 1)},
    ),
    (lambda: layer.Conv2d(6, 3, dilation=2), {"dilation": (2, 2)}),
    (lambda: layer.Conv2d(6, 3, group=2, bias=False), {"group": 2}),
]


@pytest.mark.parametrize(("make", "how"), CONVOLUTIONS)
def test_conv(make, how):
    x, one = normal(2, 4, 7, 6), make()
    y = call(one, x)
    assert names(one) == (["W", "b"] if one.bias else ["W"])
    b = normal(6)
    if one.bias:
        one.set_params({"b": b})
        y = call(one, x)
    how = {"stride": (1, 1), "pads": (0, 0, 0, 0), **how}
    close(y, conv(x, one.W.to_numpy(), b if one.bias else None, **how))


def test_conv_activation():
    x, one = normal(1, 2, 4, 4), layer.Conv2d(3, 3, activation="RELU")
    y = call(one, x)
    assert y.min() == 0
    close(y, np.maximum(conv(x, one.W.to_numpy(), None, (1, 1), (0,) * 4), 0))


def test_same_padding_follows_the_image():
    one = layer.Conv2d(1, 3, stride=2, pad_mode="SAME_UPPER")
    assert call(one, normal(1, 1, 5, 8)).shape == (1, 1, 3, 4)
    assert call(one, normal(1, 1, 8, 5)).shape == (1, 1, 4, 3)


def test_separable_conv():
    x, one = normal(2, 3, 5, 5), layer.SeparableConv2d(4, 3, padding=1)
    y = call(one, x)
    assert sorted(names(one)) == ["depthwise_conv.W", "point_conv.W"]
    middle = conv(x, one.depthwise_conv.W.to_numpy(), None, (1, 1), (1,) * 4, group=3)
    close(y, conv(middle, one.point_conv.W.to_numpy(), None, (1, 1), (0,) * 4))


POOLS = [
    (lambda: layer.MaxPool2d(2), (2, 2), (2, 2), (0,) * 4, True),
    (lambda: layer.MaxPool2d(3, 2, 1), (3, 3), (2, 2), (1,) * 4, True),
    (lambda: layer.AvgPool2d(2), (2, 2), (2, 2), (0,) * 4, False),
    (lambda: layer.AvgPool2d((3, 2), (1, 2), (1, 0)), (3, 2), (1, 2), (1, 0, 1, 0), False),
    (lambda: layer.Pooling2d(3, is_max=False), (3, 3), (3, 3), (0,) * 4, False),
    (lambda: layer.MaxPool2d(2, 1, pad_mode="SAME_UPPER"), (2, 2), (1, 1), (0, 0, 1, 1), True),
    (lambda: layer.AvgPool2d(2, 1, pad_mode="SAME_LOWER"), (2, 2), (1, 1), (1, 1, 0, 0), False),
]


@pytest.mark.parametrize(("make", "kernel", "stride", "pads", "is_max"), POOLS)
def test_pool(make, kernel, stride, pads, is_max):
    x = normal(2, 3, 7, 6)
    if is_max:
        want = windows(x, kernel, stride, pads, -np.inf).max((-2, -1))
    else:
        want = np.nanmean(windows(x, kernel, stride, pads, np.nan), (-2, -1))
    close(call(make(), x), want)


def test_pool_1d():
    x = normal(2, 3, 7)
    want = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)[:, :, ::2]
    close(call(layer.MaxPool1d(3, 2), x), want.max(-1))
    close(call(layer.AvgPool1d(3, 2), x), want.mean(-1))
    close(call(layer.MaxPool1d(3, 2), x[:, :, None]), want.max(-1)[:, :, None])


def test_global_average():
    x = normal(2, 3, 4, 5)
    close(call(layer.GlobalAvgPool2d(), x), x.mean((2, 3), keepdims=True))


# ---- normalisation -----------------------------------------------------------------------------


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


# ---- activations, shape, losses ----------------------------------------------------------------


def erf(x):
    return np.vectorize(math.erf)(x)


ACTIVATIONS = [
    (layer.ReLU(), lambda x: np.maximum(x, 0)),
    (layer.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    (layer.Tanh(), np.tanh),
    (layer.GELU(), lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2)))),
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


# ---- wrong arguments ---------------------------------------------------------------------------

BAD = [
    (TypeError, "out_features", lambda: layer.Linear("4")),
    (ValueError, "out_features", lambda: layer.Linear(0)),
    (ValueError, "in_features", lambda: layer.Linear(-1, 4)),
    (TypeError, "Linear", lambda: layer.Linear(3, 4, True, 5)),
    (ValueError, "activation", lambda: layer.Linear(4, activation="NOPE")),
    (TypeError, "activation", lambda: layer.Linear(4, activation=3)),
    (ValueError, "kernel_init", lambda: layer.Linear(4, kernel_init="nope")),
    (TypeError, "bias_init", lambda: layer.Conv2d(4, 3, bias_init=3)),
    (ValueError, "nb_kernels", lambda: layer.Gemm(0)),
    (TypeError, "alpha", lambda: layer.Gemm(3, alpha="x")),
    (ValueError, "nb_kernels", lambda: layer.Conv2d(0, 3)),
    (ValueError, "kernel_size", lambda: layer.Conv2d(4, 0)),
    (ValueError, "kernel_size", lambda: layer.Conv2d(4, (1, 2, 3))),
    (TypeError, "kernel_size", lambda: layer.Conv2d(4, 3.0)),
    (ValueError, "stride", lambda: layer.Conv2d(4, 3, stride=0)),
    (ValueError, "padding", lambda: layer.Conv2d(4, 3, padding=-1)),
    (ValueError, "padding", lambda: layer.Conv2d(4, 3, padding=1, pad_mode="SAME_UPPER")),
    (ValueError, "dilation", lambda: layer.Conv2d(4, 3, dilation=0)),
    (ValueError, "pad_mode", lambda: layer.Conv2d(4, 3, pad_mode="SAME")),
    (ValueError, "group", lambda: layer.Conv2d(4, 3, group=3)),
    (ValueError, "group", lambda: layer.Conv2d(3, 4, 3, group=2)),
    (TypeError, "Conv2d", lambda: layer.Conv2d(3, 4, 3, 1, 0, 1)),
    (TypeError, "groups", lambda: layer.Conv2d(4, 3, groups=2)),
    (ValueError, "kernel_size", lambda: layer.SeparableConv2d(4, 0)),
    (ValueError, "MaxPool2d: stride", lambda: layer.MaxPool2d(2, 0)),
    (ValueError, "AvgPool1d: kernel_size", lambda: layer.AvgPool1d(0)),
    (ValueError, "channels", lambda: layer.BatchNorm2d(0)),
    (ValueError, "momentum", lambda: layer.BatchNorm2d(momentum=1.5)),
    (ValueError, "eps", lambda: layer.BatchNorm2d(eps=-1)),
    (ValueError, "ratio", lambda: layer.Dropout(1.5)),
    (TypeError, "ratio", lambda: layer.Dropout("0.5")),
    (ValueError, "input_dim", lambda: layer.Embedding(0, 4)),
    (ValueError, "initializer", lambda: layer.Embedding(3, 4, "nope")),
    (TypeError, "axis", lambda: layer.Cat("0")),
    (TypeError, "M", lambda: layer.RankingLoss("x")),
    (TypeError, "Sequential", lambda: layer.Sequential(3)),
    (TypeError, "register_layers", lambda: layer.ReLU().register_layers(3)),
]


@pytest.mark.parametrize(("error", "argument", "make"), BAD)
def test_wrong_arguments(error, argument, make):
    with pytest.raises(error, match=argument):
        make()


WRONG_INPUTS = [
    (ShapeError, lambda: layer.Linear(3, 4), normal(2, 5)),
    (ShapeError, lambda: layer.Linear(4), normal(5)),
    (DTypeError, lambda: layer.Linear(4), np.int32([[1, 2]])),
    (ShapeError, lambda: layer.Conv2d(2, 4, 3), normal(1, 3, 5, 5)),
    (ShapeError, lambda: layer.Conv2d(4, 3), normal(3, 5, 5)),
    (ShapeError, lambda: layer.Conv2d(4, 3), normal(1, 3, 2, 5)),
    (ShapeError, lambda: layer.MaxPool2d(3), normal(1, 3, 2, 5)),
    (ShapeError, lambda: layer.MaxPool1d(3), normal(3, 5)),
    (ShapeError, lambda: layer.BatchNorm2d(3), normal(2, 4)),
    (ShapeError, lambda: layer.BatchNorm2d(), normal(2, 4, 4)),
    (DTypeError, lambda: layer.BatchNorm2d(), np.int32([[1, 2]])),
    (ShapeError, lambda: layer.GlobalAvgPool2d(), normal(2, 4)),
]


@pytest.mark.parametrize(("error", "make", "x"), WRONG_INPUTS)
def test_wrong_inputs(error, make, x):
    one = make()
    with pytest.raises(error, match=type(one).__name__):
        one(Tensor(data=x))
    assert one.get_states() == {}


def test_input_of_another_width_later():
    dense = layer.Linear(4)
    call(dense, normal(2, 3))
    with pytest.raises(ShapeError, match="Linear"):
        call(dense, normal(2, 5))


# ---- initialisers ------------------------------------------------------------------------------

SPREADS = [
    ("lecun_uniform", (400, 300), 1 / 400),
    ("lecun_normal", (400, 300), 1 / 400),
    ("glorot_uniform", (400, 300), 2 / 700),
    ("glorot_normal", (400, 300), 2 / 700),
    ("he_uniform", (400, 300), 2 / 400),
    ("he_normal", (400, 300), 2 / 400),
    ("he_normal", (64, 32, 5, 5), 2 / (32 * 25)),
    ("glorot_uniform", (64, 32, 5, 5), 2 / (96 * 25)),
    ("xavier", (400, 300), 2 / 700),
    ("glorot", (400, 300), 2 / 700),
    ("msra", (400, 300), 2 / 400),
    ("uniform", (400, 300), 2 / 700),
    ("gaussian", (400, 300), 4 / 700),
]


@pytest.mark.parametrize(("name", "shape", "variance"), SPREADS)
def test_initializer_spread(name, shape, variance):
    t = Tensor(shape)
    assert getattr(initializer, name)(t) is t
    values = t.to_numpy()
    assert abs(values.mean()) < 0.05 * variance**0.5
    assert abs(values.var() / variance - 1) < 0.05
    limit = np.abs(values).max() / variance**0.5
    is_uniform = name.endswith("uniform") or name == "xavier"
    assert (1.7 < limit <= 3**0.5 + 1e-5) if is_uniform else limit > 3


def test_gaussian_of_given_fans():
    t = Tensor((300, 300))
    initializer.gaussian(t, 100, 300)
    assert abs(t.to_numpy().var() / 0.01 - 1) < 0.05
    initializer.gaussian(t, 100)
    assert abs(t.to_numpy().var() / 0.02 - 1) < 0.05


def test_eye_and_orthogonal():
    t = Tensor((3, 4))
    initializer.eye(t)
    close(t.to_numpy(), np.eye(3, 4))
    for shape in ((4, 7), (7, 4), (4, 2, 3, 3)):
        t = Tensor(shape)
        initializer.orthogonal(t, 2.0)
        q = t.to_numpy().reshape(shape[0], -1)
        gram = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        close(gram, 4 * np.eye(len(gram)))
    for function in (initializer.eye, initializer.orthogonal):
        with pytest.raises(ValueError, match=function.__name__):
            function(Tensor((3,)))


def test_initializer_by_callable_and_name():
    dense = layer.Linear(4, kernel_init=lambda t: t.set_value(0.5), bias_init="ones")
    close(call(dense, np.ones((1, 2), np.float32)), np.full((1, 4), 2.0))


def test_initial_values_depend_on_the_seed_only():
    def weights(draws):
        Tensor((1,)).device.set_seed(7)
        dense = layer.Linear(5)
        with autograd._training_scope(True):
            for _ in range(draws):
                autograd.dropout(Tensor((4, 4)), 0.5)
        call(dense, np.zeros((1, 3), np.float32))
        return dense.W.to_numpy()

    np.testing.assert_array_equal(weights(0), weights(3))


def test_dtype_follows_the_input():
    dense = layer.Linear(3)
    dense(Tensor((2, 4), dtype=tensor.float64))
    assert dense.W.dtype == tensor.float64 and dense.b.dtype == tensor.float64
