"""Operations on integers and bools are exported in all their dtypes, whatever ONNX's operators
take, and those of floats without losing digits."""

import numpy as np
import onnx
import onnxruntime
import pytest
from cases import CASES
from onnx_models import there
from singa_rs import autograd, sonnx
from singa_rs.autograd import ops
from singa_rs.tensor import Tensor, to_numpy

WHOLE = ("int64", "int32", "int8", "uint8", "bool")
FAMILIES = ("unary", "binary", "binary_scalar", "matmul", "sort", "scan", "gather")
EVERY = [
    pytest.param(case, dtype, id=f"{case}-{dtype}")
    for case in CASES
    for dtype in case.dtypes
    if case.family in FAMILIES and dtype in WHOLE
]
NO_KERNEL = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented
newest = onnx.defs.onnx_opset_version()


def arrays(case, dtype):
    pairs = zip(case.sample(dtype), case.sample_dtypes(dtype), strict=True)
    return [np.asarray(one, kind) for one, kind in pairs]


def tensors(given):
    return [Tensor(data=x, dtype=x.dtype.name) for x in given]


def exported(function, given):
    """What another runtime computes, or this one where that has no kernel."""
    proto = sonnx.model_proto(function, tensors(given))
    own = sonnx.prepare(proto).run(given)
    try:
        return own, there(proto, given)
    except NO_KERNEL:
        return own, own


@pytest.mark.parametrize(("case", "dtype"), EVERY)
def test_whole_numbers(case, dtype):
    autograd.training = False
    if case.family == "scan" and case.attrs["f"] == "prod" and newest < 26:
        pytest.skip("this version of onnx has no CumProd")

    def call(*xs):
        return case.op(*xs)

    given = arrays(case, dtype)
    made = call(*tensors(given))
    want = [to_numpy(y) for y in (made if isinstance(made, tuple) else (made,))]
    for got in exported(call, given):
        for a, b in zip(got, want, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("to_left", [True, False])
def test_shifts_by_all_places(dtype, to_left):
    info = np.iinfo(dtype)
    width = info.bits
    x = np.array([[info.min], [info.max], [1], [max(info.min, -3)]], dtype)
    n = np.array([[0, 1, width - 2, width - 1, width, 100]], dtype)
    shift = autograd.left_shift if to_left else autograd.right_shift
    want = to_numpy(shift(*tensors([x, n])))
    for (got,) in exported(shift, [x, n]):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("function", [autograd.floor_divide, autograd.remainder])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_division_is_exact(function, dtype):
    """Also where a quotient rounds to a whole number, and at the ends of the range."""
    ends = np.array([1e8, -1e8, 7.3, -7.3, 1, 5, 1e-9, -1e-9], dtype)
    if "int" in dtype:
        ends = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min + 1, 7, -7, 6, -6, 0, 1], dtype)
    by = np.array([[0.1], [0.3], [-0.3], [3]] if "float" in dtype else [[3], [-3], [7], [2]], dtype)
    want = to_numpy(function(*tensors([ends, by])))
    for (got,) in exported(function, [ends, by]):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinite_numbers(dtype):
    inf = np.inf
    x = np.array([-5, 5, -inf, inf, 0.3, -0.3, inf], dtype)
    by = np.array([[inf], [-inf], [2], [-3]], dtype)
    for function, xs in ((autograd.floor_divide, [x, by]), (autograd.silu, [x])):
        want = to_numpy(function(*tensors(xs)))
        for (got,) in exported(function, xs):
            np.testing.assert_allclose(got, want, rtol=1e-4)  # of other runtimes' sigmoids


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_half_away_from_zero(dtype):
    """Also next to a half, and where floats have no halves."""
    ends = [0.5, 1.5, 2.5, np.nextafter(np.array(0.5, dtype), 0), 0, np.inf]
    odd = 2.0 ** np.finfo(dtype).nmant + 1
    x = np.array([*ends, odd, odd + 2], dtype)
    x = np.concatenate([x, -x, [np.nan]]).astype(dtype)
    want = to_numpy(autograd.round(*tensors([x])))
    for (got,) in exported(autograd.round, [x]):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("function", [autograd.expm1, autograd.log1p])
@pytest.mark.parametrize(("dtype", "digits"), [("float32", 1e-6), ("float64", 1e-14)])
def test_numbers_near_0_keep_their_digits(function, dtype, digits):
    small = np.logspace(-12, 1, 200)
    x = np.concatenate([small, -small[small < 0.9], [0, np.inf, np.nan]]).astype(dtype)
    want = to_numpy(function(*tensors([x])))
    for (got,) in exported(function, [x]):
        np.testing.assert_allclose(got, want, rtol=digits)


@pytest.mark.parametrize("bounds", [(-1, 300), (-np.inf, 2), (1, np.inf), (-(2.0**70), 2)])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_bounds_beyond_the_range_of_integers(bounds, dtype):
    def call(x):
        return autograd.clip(x, *bounds)

    x = np.array([0, 1, 100, np.iinfo(dtype).max], dtype)
    want = to_numpy(call(*tensors([x])))
    for (got,) in exported(call, [x]):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["leakyrelu", "elu", "selu", "hardsigmoid"])
def test_parameters_of_float64_keep_their_digits(name):
    function = getattr(autograd, name)
    x = np.array([-3, -0.3, -1e-9, 0, 0.7, 4, np.nan])
    want = to_numpy(function(*tensors([x])))
    for (got,) in exported(function, [x]):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    proto = sonnx.model_proto(function, tensors([x.astype(np.float32)]))
    assert len(proto.graph.node) == 1


@pytest.mark.parametrize("bounds", [(0.5, None), (None, 0.5), (None, None)])
def test_without_a_bound_infinity_stays(bounds):
    def call(x):
        return autograd.clip(x, *bounds) * 1.0

    x = np.array([-np.inf, 0.0, np.inf, np.nan], np.float32)
    want = to_numpy(call(*tensors([x])))
    for (got,) in exported(call, [x]):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("function", [autograd.argmax, autograd.argmin])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_where_bools_are_greatest(function, axis):
    def call(x):
        return function(x, axis)

    x = np.array([[False, True, True], [False, False, True]])
    want = to_numpy(call(*tensors([x])))
    for (got,) in exported(call, [x]):
        np.testing.assert_array_equal(got, want)


def test_bools_where_a_condition_holds():
    def call(x, condition):
        return autograd.where(condition, x, autograd.logical_not(x))

    given = [np.array([True, False, True, False]), np.array([True, True, False, False])]
    want = to_numpy(call(*tensors(given)))
    proto = sonnx.model_proto(call, tensors(given))
    for (got,) in (sonnx.prepare(proto).run(given), there(proto, given)):
        np.testing.assert_array_equal(got, want)


def test_results_that_are_not_written_are_refused():
    x = Tensor(data=np.ones((3, 4), np.float32), dtype="float32")
    scale = Tensor(data=np.ones(4, np.float32), dtype="float32")
    norm = ops.op("rms_norm", eps=1e-5)
    with pytest.raises(NotImplementedError, match="export: rms_norm: its output 1 is not written"):
        sonnx.model_proto(lambda x: norm(x, scale), [x])


@pytest.mark.parametrize("opset", [0, 12, 19, 99])
def test_opsets_in_which_operators_mean_something_else_are_refused(opset):
    x = Tensor(data=np.ones((2, 2), np.float32), dtype="float32")
    with pytest.raises(ValueError, match=f"export: got opset {opset}, want 20 to {newest}"):
        sonnx.model_proto(lambda x: autograd.softmax(x, 1), [x], opset=opset)


@pytest.mark.parametrize("opset", range(20, min(26, newest) + 1))
def test_every_opset_that_is_written(opset):
    x = np.array([[0.5, -1.5, 3.0], [7.0, -0.25, 2.0]], np.float32)

    def call(x):
        y = autograd.softmax(autograd.clip(x, -1, None), 1) // 0.1
        return autograd.reduce_max(y, (1,), 0), autograd.argmax(x, 1), x.transpose(1, 0)

    want = [to_numpy(y) for y in call(*tensors([x]))]
    proto = sonnx.model_proto(call, tensors([x]), opset=opset)
    for got in (sonnx.prepare(proto).run([x]), there(proto, [x])):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_what_a_function_has_no_operator_for_is_refused():
    x = Tensor(data=np.ones(2, np.float32), dtype="float32")
    with pytest.raises(NotImplementedError, match="export: polygamma: ONNX has no such function"):
        sonnx.model_proto(lambda x: autograd.polygamma(1, x), [x])
