"""onnxruntime's operators on quantised numbers: its integers, or those next to them where its sums
are rounded otherwise."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import one, real, replays, there
from singa_rs import sonnx

RNG = np.random.default_rng(0)


def whole(*shape, kind=np.uint8):
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max, shape, kind, endpoint=True)


def scale(value):
    return np.array(value, np.float32)


A_SCALE, B_SCALE, Y_SCALE = scale(0.07), scale(0.11), scale(0.19)


def zero(value, kind=np.uint8):
    return np.array(value, kind)


def theirs(op, xs, **attributes):
    proto = one(op, xs, domain="com.microsoft", **attributes)
    proto.opset_import.add(domain="com.microsoft", version=1)
    if "opset" in attributes:  # which is an attribute, too
        made = helper.make_attribute("opset", attributes["opset"])
        proto.graph.node[0].attribute.append(made)
    return proto


def agrees(op, *xs, **attributes):
    """Asserts that nearly all integers are onnxruntime's, and none is further than 1 off."""
    proto, given = theirs(op, xs, **attributes), [x for x in xs if x is not None]
    (got,), (want,) = sonnx.prepare(proto).run(given), there(proto, given)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    off = np.abs(got.astype(np.int64) - want)
    assert off.max() <= 1 and off.mean() < 0.02
    assert len(np.unique(want)) > min(8, want.size // 2)


IMAGES = {np.uint8: whole(2, 3, 8, 9), np.int8: whole(2, 3, 8, 9, kind=np.int8)}


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_element_by_element(kind):
    x, other = IMAGES[kind], whole(3, 1, 9, kind=kind)
    to = Y_SCALE, zero(9, kind)
    pair = x, A_SCALE, zero(3, kind), other, B_SCALE, zero(60, kind)
    agrees("QLinearAdd", *pair, *to)
    agrees("QLinearMul", *pair, scale(0.8), zero(9, kind))
    condition = RNG.random((2, 3, 8, 9)) < 0.5
    agrees("QLinearWhere", condition, *pair, *to)
    agrees(
        "QLinearConcat", *to, x, A_SCALE, zero(3, kind), x[:, :1], B_SCALE, zero(60, kind), axis=1
    )


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_of_one_tensor(kind):
    least = np.iinfo(kind).min
    given, shares = (
        (IMAGES[kind], A_SCALE, zero(least + 120, kind)),
        (scale(1 / 256), zero(least, kind)),
    )
    agrees("QLinearLeakyRelu", *given, B_SCALE, zero(5, kind), alpha=0.2)
    agrees("QLinearSigmoid", *given, *shares)
    agrees("QLinearGlobalAveragePool", *given, scale(0.01), zero(least + 120, kind))
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    agrees("QLinearAveragePool", *given, B_SCALE, zero(2, kind), **window, count_include_pad=1)
    for axis, opset in ((-1, 13), (1, 11)):
        agrees("QLinearSoftmax", *given, *shares, axis=axis, opset=opset)


def test_16_bits():
    x, at = real(4, 6), (scale(1e-4), zero(30000, np.uint16))
    agrees("QuantizeLinear", x, *at)
    (q,) = sonnx.prepare(theirs("QuantizeLinear", [x, *at])).run([x, *at])
    (back,) = sonnx.prepare(theirs("DequantizeLinear", [q, *at])).run([q, *at])
    np.testing.assert_array_equal(back, there(theirs("DequantizeLinear", [q, *at]), [q, *at])[0])


@pytest.mark.parametrize("is_turned", [0, 1])
def test_products(is_turned):
    a, b = whole(5, 7), whole(7, 6, kind=np.int8) // 2  # whose sums of two onnxruntime may cut off
    bias = RNG.integers(-9999, 9999, 6).astype(np.int32)
    scales = (RNG.random(6) / 9 + 0.01).astype(np.float32)
    settings = {"alpha": 1.0, "transA": is_turned, "transB": is_turned}
    left, right = (np.ascontiguousarray(x.T) if is_turned else x for x in (a, b))
    for factor, at in ((B_SCALE, zero(4, np.int8)), (scales, np.zeros(6, np.int8))):
        given = left, A_SCALE, zero(130), right, factor, at, bias
        agrees("QGemm", *given, scale(4), zero(120), **settings)
        proto = theirs("QGemm", given, **settings)
        got, want = sonnx.prepare(proto).run(given)[0], there(proto, given)[0]
        np.testing.assert_allclose(got, want, 1e-5)


def test_replays():
    pair = IMAGES[np.uint8], A_SCALE, zero(3), IMAGES[np.uint8][:1], B_SCALE, zero(60)
    given = [
        np.reshape(x, (-1,) if np.ndim(x) == 0 else x.shape) for x in (*pair, Y_SCALE, zero(9))
    ]
    replays(theirs("QLinearAdd", given), *given)


def test_channels_in_another_place_are_refused():
    xs = IMAGES[np.uint8], A_SCALE, zero(3), B_SCALE, zero(9)
    with pytest.raises(NotImplementedError, match="QLinearGlobalAveragePool: got channels_last 1"):
        sonnx.prepare(theirs("QLinearGlobalAveragePool", xs, channels_last=1)).run(xs)
