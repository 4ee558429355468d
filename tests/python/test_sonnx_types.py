"""Element types that are stored as codes, quantisation and strings, read from ONNX."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_models import agrees, model, one, real, replays, run
from singa_rs import sonnx
from singa_rs.errors import DTypeError, ShapeError
from singa_rs.sonnx.arrays import CODED, FLOAT8E8M0, name_of
from singa_rs.tensor import Tensor, to_numpy

FLOATS = [
    one for one, dtype in CODED.items() if "int" not in dtype.name and "e8m0" not in dtype.name
]
WHOLE = [one for one, dtype in CODED.items() if "int" in dtype.name]
HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)
CODES = np.arange(256, dtype=np.uint8)


def edges(dtype):
    """The numbers of a dtype, those half way between them, and their neighbours."""
    known = np.unique(CODES.view(dtype).astype(np.float32))
    known = known[np.isfinite(known)]
    middle = (known[1:] + known[:-1]) / 2
    beyond = known[-1] * np.array([1.02, 1.06, 1.5], np.float32)
    up, down = (np.nextafter(middle, np.float32(way)) for way in (np.inf, -np.inf))
    return np.concatenate([known, middle, up, down, beyond, -beyond])


def same(got, want):
    assert got.dtype == want.dtype
    keep = ~np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(got[keep].view(np.uint8), want[keep].view(np.uint8))
    if want.dtype != ml_dtypes.float4_e2m1fn:  # which has no NaN
        assert np.isnan(got[~keep].astype(np.float32)).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of NaN and infinity
@pytest.mark.parametrize("to", FLOATS, ids=name_of)
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_every_number_is_rounded_as_ml_dtypes_does(to, kind):
    x = np.concatenate([HALVES.astype(kind), edges(CODED[to]).astype(kind)])
    x = x[~np.isnan(x.astype(np.float32))]
    same(run("Cast", x, to=to, saturate=0), x.astype(CODED[to]))
    info = ml_dtypes.finfo(CODED[to])
    bounded = np.clip(x.astype(np.float64), float(info.min), float(info.max))
    same(run("Cast", x, to=to), bounded.astype(kind).astype(CODED[to]))


@pytest.mark.parametrize("to", FLOATS, ids=name_of)
def test_every_code_has_its_value(to):
    codes = CODES[: 16 if CODED[to] == ml_dtypes.float4_e2m1fn else 256].view(CODED[to])
    for kind in (np.float16, np.float32, np.float64):
        element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        np.testing.assert_array_equal(run("Cast", codes, to=element), codes.astype(kind))


@pytest.mark.parametrize("to", WHOLE, ids=name_of)
def test_small_integers(to):
    info = ml_dtypes.iinfo(CODED[to])
    x = np.arange(int(info.min), int(info.max) + 1)
    for kind in (np.float32, np.int64, np.int8 if info.min < 0 else np.uint8):
        there = run("Cast", x.astype(kind), to=to)
        assert there.dtype == CODED[to]
        np.testing.assert_array_equal(there.astype(int), x)
        np.testing.assert_array_equal(run("Cast", there, to=TensorProto.INT64), x)


@pytest.mark.parametrize(
    ("mode", "want"),
    [("up", [127, 129, 129]), ("down", [126, 128, 128]), ("nearest", [127, 128, 129])],
)
def test_powers_of_two(mode, want):
    x = np.array([0.8, 2.9, 3.1], np.float32)
    got = run("Cast", x, to=FLOAT8E8M0, round_mode=mode, opset=24)
    np.testing.assert_array_equal(got.view(np.uint8), want)


def test_codes_are_moved_and_not_computed_with():
    x = real(2, 6).astype(ml_dtypes.float8_e4m3fn)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("Reshape", ["t", "shape"], ["r"]),
        helper.make_node("Concat", ["r", "r"], ["y"], axis=0),
    ]
    proto = model(nodes, {"x": x}, ["y"], {"shape": np.array([3, 4])})
    (y,) = sonnx.prepare(proto).run([x])
    want = np.tile(x.T.reshape(3, 4), (2, 1))
    np.testing.assert_array_equal(y.view(np.uint8), want.view(np.uint8))
    with pytest.raises(DTypeError, match="Relu: got float8_e4m3fn, want a dtype that is computed"):
        run("Relu", x)
    other = x.astype(ml_dtypes.float8_e5m2)
    with pytest.raises(DTypeError, match="Concat: got dtypes float8_e4m3fn, float8_e5m2, want one"):
        run("Concat", x, other, axis=0)


def test_bits_of_another_type():
    x = np.array([1.5, -0.0, np.inf], np.float32)
    got = run("BitCast", x, to=TensorProto.INT32, opset=26)
    np.testing.assert_array_equal(got, x.view(np.int32))
    with pytest.raises(ValueError, match="BitCast: got float32 to float64, want types of one size"):
        run("BitCast", x, to=TensorProto.DOUBLE, opset=26)


def test_strings():
    x = np.array(["1.5", "-2", "NaN"], object)
    got = run("Cast", x, to=TensorProto.FLOAT)
    np.testing.assert_array_equal(got, np.array([1.5, -2, np.nan], np.float32))
    made = run("Cast", np.array([1, -2], np.int64), to=TensorProto.STRING)
    assert list(made) == ["1", "-2"]
    picked = run("Where", np.array([True, False, True]), x, np.array(["a"], object))
    assert list(picked) == ["1.5", "a", "NaN"]
    with pytest.raises(DTypeError, match="RegexFullMatch: got float32, want strings"):
        run("RegexFullMatch", real(2), pattern="a")


SCALE, Q = np.array(0.05, np.float32), np.arange(-12, 12, dtype=np.int8).reshape(4, 6)


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_quantised_as_onnxruntime_does(opset):
    zero = np.array(3, np.uint8)
    agrees("QuantizeLinear", real(4, 6), SCALE, zero, opset=opset)
    agrees("DequantizeLinear", Q, SCALE, np.array(-2, np.int8), opset=opset)
    if opset >= 13:
        scales, zeros = abs(real(6)) + 0.01, np.arange(6, dtype=np.int8)
        agrees("QuantizeLinear", real(4, 6), scales, zeros, opset=opset, axis=-1)
        agrees("DequantizeLinear", Q, scales, zeros, opset=opset, axis=1)
    if opset >= 21:
        agrees("DequantizeLinear", Q, abs(real(4, 2)), opset=opset, axis=1, block_size=3)
        agrees("DequantizeLinear", Q[:, :5], abs(real(4, 2)), opset=opset, axis=1, block_size=3)


def test_products_of_integers_are_exact():
    a, b = np.full((2, 3000), 255, np.uint8), np.full((3000, 2), 253, np.uint8)
    got = run("MatMulInteger", a, b)
    np.testing.assert_array_equal(got, np.full((2, 2), 255 * 253 * 3000, np.int32))
    agrees("MatMulInteger", a[:, :5], b[:5], np.array(7, np.uint8), np.array([3, 9], np.uint8))


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_convolutions_of_integers(kind):
    x = np.random.default_rng(0).integers(0, 120, (2, 3, 6, 6)).astype(np.uint8)
    w = np.random.default_rng(1).integers(0, 120, (4, 3, 3, 3)).astype(kind)
    zeros = np.array(7, np.uint8), np.array(5, kind)
    agrees("ConvInteger", x, w, *zeros, pads=[1, 1, 1, 1], strides=[2, 2])
    scales = np.array([0.1, 0.2, 0.05, 0.3], np.float32)
    bias = np.array([100, -100, 5, 0], np.int32)
    quantised = (x, SCALE, zeros[0], w, scales, np.zeros(4, kind), np.array(9.0, np.float32))
    # onnxruntime multiplies by the scales in float32, which may round to the other side.
    agrees("QLinearConv", *quantised, np.array(3, np.uint8), bias, pads=[1, 1, 1, 1], atol=1)


@pytest.mark.parametrize("x", [[0, 0], [-1, 0, 2], [3, 3], [-3, -3], [1e-30, 0], [0.5, -7, 99]])
def test_dynamic_quantisation(x):
    x = np.float32(x)
    proto = one("DynamicQuantizeLinear", [x], outputs=3)
    want = ReferenceEvaluator(proto).run(None, {"x0": x})
    for got, of in zip(sonnx.prepare(proto).run([x]), want, strict=True):
        assert got.dtype == of.dtype
        np.testing.assert_array_equal(got, of)


def test_quantisation_replays():
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["p"]),
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT8E5M2),
        helper.make_node("Cast", ["f"], ["g"], to=TensorProto.FLOAT),
    ]
    known = {"w": Q, "wz": np.array(2, np.int8)}
    replays(model(nodes, {"x": real(3, 4)}, ["p", "s", "g"], known), real(3, 4))


def test_scales_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"QuantizeLinear: got \(5,\) scales .* want \(6,\)"):
        run("QuantizeLinear", real(4, 6), abs(real(5)))
    with pytest.raises(ShapeError, match=r"got \(4, 3\) scales .* want \(4, 2\)"):
        run("DequantizeLinear", Q, abs(real(4, 3)), axis=1, block_size=3)
    with pytest.raises(DTypeError, match="QuantizeLinear: got output type INT32, want"):
        sonnx.prepare(one("QuantizeLinear", [real(2), SCALE], output_dtype=6)).run([real(2), SCALE])


def test_inputs_have_the_dtypes_that_the_graph_declares():
    proto = one("Mul", [np.array([1]), np.array([1])])
    net = sonnx.SONNXModel(proto)
    large = np.array([2**20])
    for _ in range(2):  # of arrays of int64 tensors of int32 are made
        (y,) = net.forward(large, large)
        np.testing.assert_array_equal(to_numpy(y), [2**40])
        net.compile([Tensor(data=large), Tensor(data=large)], is_train=False)
    with pytest.raises(DTypeError, match="float32"):
        net.forward(np.array([0.5], np.float32), large)
