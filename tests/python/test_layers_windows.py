"""Layers: convolution and pooling against NumPy."""

import numpy as np
import pytest
from cases import references as ref
from chains import names
from layer_calls import call, close, normal
from singa_rs import autograd, layer
from singa_rs.tensor import Tensor


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


SET = {"stride": 2, "padding": 1, "pad_mode": "SAME_UPPER", "kernel_size": 5, "dilation": 2}
MADE = [layer.Conv1d, layer.Conv2d, layer.ConvTranspose2d, layer.SeparableConv2d, layer.MaxPool2d]
MADE += [layer.MaxPool1d, layer.AvgPool2d, layer.Pooling2d, layer.LPPool2d]
#: Settings that no argument of a constructor has.
UNKNOWN = {layer.SeparableConv2d: ("pad_mode", "dilation")}
UNKNOWN |= dict.fromkeys((layer.AvgPool2d, layer.Pooling2d, layer.LPPool2d), ("dilation",))
CASES = [(cls, name) for cls in MADE for name in SET if name not in UNKNOWN.get(cls, ())]


@pytest.mark.parametrize(("cls", "name"), CASES)
@pytest.mark.parametrize("is_late", [False, True])
def test_a_setting_that_is_assigned_is_that_of_the_window(cls, name, is_late):
    x = Tensor(data=normal(2, 4, *(8,) * (1 if "1d" in cls.__name__ else 2)))
    is_conv, before = "Conv" in cls.__name__, (2,) if cls is layer.LPPool2d else ()
    before, given = (4,) if is_conv else before, {"kernel_size": 3, "stride": 1}
    one = cls(*before, **given)
    if is_late:
        one(x)
    if is_late and name == "kernel_size" and is_conv:
        with pytest.raises(ValueError, match="kernel_size: got 5"):
            one.kernel_size = 5
        return
    setattr(one, name, SET[name])
    assert one(x).shape == cls(*before, **{**given, name: SET[name]})(x).shape
    assert one(x).shape != cls(*before, **given)(x).shape


def test_settings_of_layers_that_are_called_late():
    x = Tensor(data=normal(2, 4, 8, 8))
    one = layer.SeparableConv2d(3, 3)
    assert (one.kernel_size, one.stride) == (3, 1)
    one.nb_kernels, one.bias = 5, True
    assert one(x).shape == (2, 5, 6, 6) and one.point_conv.b.shape == (5,)
    one = layer.Conv2d(3, 3, bias=False)
    assert one.activation == "NOTSET"
    one.activation = "RELU"
    assert one(x).numpy().min() == 0 and one.b is None
    for one in (layer.Linear(3, bias=False), layer.Gemm(3, bias=False)):
        assert one(Tensor(data=normal(2, 3))).shape == (2, 3) and one.b is None
    with pytest.raises(ValueError, match="MaxPool2d: stride"):
        layer.MaxPool2d(2).stride = 0


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


def held(one, x):
    """The result of a layer that has a bias of its own."""
    call(one, x)
    one.set_params({"b": normal(*one.b.shape)})
    return call(one, x), one.W.to_numpy(), one.b.to_numpy()


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_conv_of_any_rank(axes):
    x = normal(2, 4, *(6, 5, 4)[:axes])
    one = getattr(layer, f"Conv{axes}d")(6, 3, stride=2, padding=1, group=2)
    y, w, b = held(one, x)
    assert w.shape == (6, 2, *(3,) * axes)
    how = {"stride": (2,) * axes, "padding": (1,) * 2 * axes, "dilation": (1,) * axes}
    close(y, ref.conv(x, w, b, **how, groups=2))
    one = getattr(layer, f"Conv{axes}d")(4, 6, 4, padding="same", bias=False, activation="RELU")
    y, pads = call(one, x), (1,) * axes + (2,) * axes
    plain = {"stride": (1,) * axes, "padding": pads, "dilation": (1,) * axes, "groups": 1}
    close(y, np.maximum(ref.conv(x, one.W.to_numpy(), **plain), 0))
    one = getattr(layer, f"Conv{axes}d")(2, 3, pad_mode="VALID")
    assert call(one, x).shape == (2, 2, *(n - 2 for n in x.shape[2:]))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_conv_transpose(axes):
    x = normal(2, 4, *(5, 4, 3)[:axes])
    make = getattr(layer, f"ConvTranspose{axes}d")
    y, w, b = held(make(6, 3, stride=2, padding=1, output_padding=1, group=2), x)
    assert w.shape == (4, 3, *(3,) * axes)
    assert y.shape == (2, 6, *(2 * n for n in x.shape[2:]))
    how = {"stride": (2,) * axes, "padding": (1,) * 2 * axes, "dilation": (1,) * axes}
    close(y, ref.conv_transpose(x, w, b, **how, output_padding=(1,) * axes, groups=2))
    one = make(4, 5, 3, 2, pad_mode="SAME_LOWER", bias=False, activation="TANH")
    y, pads = call(one, x), (1,) * axes + (0,) * axes
    how = {**how, "padding": pads, "output_padding": (0,) * axes, "groups": 1}
    close(y, np.tanh(ref.conv_transpose(x, one.W.to_numpy(), **how)))


def test_transposed_weights_are_initialised_by_what_is_summed():
    x = normal(1, 64, 8)
    one = layer.ConvTranspose1d(8, 5, kernel_init="he_normal", group=2)
    call(one, x)
    assert abs(one.W.to_numpy().std() / np.sqrt(2 / (32 * 5)) - 1) < 0.1
    one = layer.ConvTranspose1d(8, 5, kernel_init="glorot_uniform")
    call(one, x)
    assert abs(one.W.to_numpy().std() / np.sqrt(2 / (5 * (64 + 8))) - 1) < 0.1
    one = layer.ConvTranspose1d(8, 5)
    call(one, x)
    assert abs(one.W.to_numpy().std() / np.sqrt(2 / (64 * 5 + 8)) - 1) < 0.1
    shapes = []
    one = layer.ConvTranspose1d(8, 5, kernel_init=lambda t: shapes.append(t.shape))
    call(one, x)
    assert shapes == [(64, 8, 5)]


def test_pools_with_more_arguments():
    x = normal(2, 3, 5, 6)
    window = {"kernel": (2, 2), "stride": (2, 2), "padding": (1, 0, 1, 0), "ceil_mode": True}
    one = layer.MaxPool2d(2, padding=(1, 0), ceil_mode=True)
    close(call(one, x), ref.max_pool(x, **window)[0])
    one = layer.MaxPool2d(2, padding=(1, 0), ceil_mode=True, dilation=2)
    close(call(one, x), ref.max_pool(x, **window, dilation=(2, 2))[0])
    one = layer.AvgPool2d(2, padding=(1, 0), ceil_mode=True, count_include_pad=True)
    close(call(one, x), ref.avg_pool(x, **window, count_include_pad=True))
    one = layer.AvgPool2d(2, padding=(1, 0), ceil_mode=True, divisor_override=3)
    close(call(one, x), ref.avg_pool(x, **window, count_include_pad=False, divisor=3))
    close(
        call(layer.LPPool2d(3, 2, padding=(1, 0), ceil_mode=True), x), ref.lp_pool(x, 3, **window)
    )


def test_pools_of_volumes_and_series():
    x = normal(2, 3, 4, 5, 6)
    window = {"kernel": (2, 3, 2), "stride": (2, 1, 2), "padding": (0, 1, 0) * 2}
    how = ((2, 3, 2), (2, 1, 2), (0, 1, 0))
    close(call(layer.MaxPool3d(*how), x), ref.max_pool(x, **window)[0])
    close(call(layer.AvgPool3d(*how), x), ref.avg_pool(x, **window, count_include_pad=False))
    close(call(layer.LPPool3d(2, *how), x), ref.lp_pool(x, 2, **window))
    close(call(layer.GlobalAvgPool3d(), x), x.mean((2, 3, 4), keepdims=True))
    line = x[:, :, 0, 0]
    window = {"kernel": (3,), "stride": (2,), "padding": (1, 0), "ceil_mode": True}
    close(
        call(layer.MaxPool1d(3, 2, (1, 0), ceil_mode=True), line), ref.max_pool(line, **window)[0]
    )
    one = layer.AvgPool1d(3, 2, (1, 0), ceil_mode=True, count_include_pad=True)
    close(call(one, line), ref.avg_pool(line, **window, count_include_pad=True))
    close(call(layer.GlobalAvgPool1d(), line), line.mean(2, keepdims=True))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling_puts_maxima_back(axes):
    x = normal(2, 3, *(7, 6, 4)[:axes])
    pool = getattr(layer, f"MaxPool{axes}d")(2, return_indices=True)
    y, indices = pool(Tensor(data=x))
    assert indices.dtype.name == "int64"
    flat = x.reshape(2, 3, -1)
    places = indices.to_numpy().reshape(2, 3, -1)
    np.testing.assert_array_equal(np.take_along_axis(flat, places, 2).ravel(), y.to_numpy().ravel())
    back = getattr(layer, f"MaxUnpool{axes}d")(2)(y, indices, x.shape[2:]).to_numpy()
    want = np.zeros_like(flat)
    np.put_along_axis(want, places, np.take_along_axis(flat, places, 2), 2)
    np.testing.assert_array_equal(back, want.reshape(x.shape))


def test_indices_with_padding_and_gaps():
    x = Tensor(data=normal(2, 3, 5, 7))
    how = {"kernel_size": (2, 3), "stride": (1, 2), "padding": (1, 2), "dilation": (2, 1)}
    y, indices = autograd.max_pool(x, **how, return_indices=True)
    flat = x.to_numpy().reshape(2, 3, -1)
    found = np.take_along_axis(flat, indices.to_numpy().reshape(2, 3, -1), 2)
    np.testing.assert_array_equal(found.ravel(), y.to_numpy().ravel())


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_no_images(axes):
    x = Tensor((0, 4, *(5,) * axes))
    w, b = Tensor((4, 4, *(2,) * axes)), Tensor((4,))
    assert autograd.conv(x, w, b).shape == (0, 4, *(4,) * axes)
    assert autograd.conv_transpose(x, w, b, 2).shape == (0, 4, *(10,) * axes)
    y, indices = autograd.max_pool(x, 2, return_indices=True)
    assert autograd.max_unpool(y, indices, 2).shape == (0, 4, *(4,) * axes)
    assert autograd.avg_pool(x, 2).shape == y.shape == autograd.lp_pool(x, 2, 2).shape
