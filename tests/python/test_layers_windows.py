"""Layers: convolution and pooling against NumPy."""

import numpy as np
import pytest
from chains import names
from layer_calls import call, close, normal
from singa_rs import layer


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
