"""Bad input raises an error: nothing fails silently, aborts or hangs.

Wrong shapes and dtypes of every operation are in test_operations.py, from the table.
"""

import numpy as np
import pytest
from harness import DEVICE, to_handle
from singa_rs import _core, autograd, layer, tensor

ADD = _core.Op("binary", f="add")


# ---- data that only a kernel can check ----------------------------------------------------------


@pytest.mark.parametrize("labels", [[0, 5, 1], [0, -1, 1], [0, 2**31 - 1, 1]])
def test_labels_out_of_range(labels):
    x = to_handle(np.zeros((3, 5)), "float32")
    with pytest.raises(ValueError, match="softmax_cross_entropy.*out of range"):
        _core.Op("softmax_cross_entropy")(x, to_handle(np.array(labels), "int64"))


@pytest.mark.parametrize("label", [0.5, np.nan, np.inf, -1.0, 5.0])
def test_float_labels_must_be_classes(label):
    x = to_handle(np.zeros((3, 5)), "float32")
    with pytest.raises(ValueError, match="softmax_cross_entropy"):
        _core.Op("softmax_cross_entropy")(x, to_handle(np.array([0, label, 1]), "float32"))


@pytest.mark.parametrize("index", [4, -5, 2**40, -(2**40)])
def test_gather_index_out_of_range(index):
    x = to_handle(np.zeros((4, 2)), "float32")
    with pytest.raises(ValueError, match="gather.*out of range"):
        _core.Op("gather", axis=0)(x, to_handle(np.array([0, index]), "int64"))
    dy = to_handle(np.zeros((2, 2)), "float32")
    with pytest.raises(ValueError, match="gather_grad.*out of range"):
        _core.Op("gather_grad", axis=0, size=4)(dy, to_handle(np.array([0, index]), "int64"))


@pytest.mark.parametrize("index", [9, -10, 255])
def test_max_pool_index_out_of_its_window(index):
    attrs = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0, 0, 0), "size": (4, 4)}
    dy = to_handle(np.ones((1, 1, 2, 2)), "float32")
    index = to_handle(np.full((1, 1, 2, 2), index), "uint8")
    with pytest.raises(ValueError, match="max_pool2d_grad"):
        _core.Op("max_pool2d_grad", **attrs)(dy, index)


def test_a_refused_call_changes_nothing():
    """An update with a mismatched gradient leaves the parameter and its version unchanged."""
    param = to_handle(np.ones((2, 3)), "float32")
    version = param.version
    lr = to_handle(np.ones(1), "float32")
    with pytest.raises(_core.ShapeError):
        _core.Op("update", f="sgd", momentum=False, nesterov=False, weight_decay=False)(
            param, to_handle(np.ones((3, 2)), "float32"), lr
        )
    assert param.version == version and (param.to_numpy() == 1).all()


@pytest.mark.parametrize("f", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_integer_division_by_zero_does_not_abort(f, dtype):
    x, zero = to_handle(np.array([7, 0]), dtype), to_handle(np.zeros(2), dtype)
    with pytest.raises(ValueError, match=f"{f}.*zero"):
        _core.Op("binary", f=f)(x, zero)
    with pytest.raises(ValueError, match=f"{f}.*zero"):
        _core.Op("binary_scalar", f=f, scalar=0, reverse=False)(x)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_integers_to_negative_powers(dtype):
    x, y = to_handle(np.array([2, 3]), dtype), to_handle(np.array([1, -1]), dtype)
    with pytest.raises(ValueError, match="pow"):
        _core.Op("binary", f="pow")(x, y)


def test_the_smallest_integer_divided_by_minus_one_does_not_abort():
    for dtype in ("int64", "int32", "int8"):
        least = np.array([np.iinfo(dtype).min], dtype)
        x, y = to_handle(least, dtype), to_handle(np.array([-1]), dtype)
        assert _core.Op("binary", f="floor_divide")(x, y).to_numpy()[0] == least[0]
        assert _core.Op("binary", f="remainder")(x, y).to_numpy()[0] == 0


# ---- attributes and constructors ----------------------------------------------------------------

WINDOW = {"kernel": (2, 2), "stride": (1, 1), "padding": (0, 0, 0, 0)}
CONV = {"stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1}


@pytest.mark.parametrize(
    "name, attrs",
    [
        ("no_such_operation", {}),
        ("unary", {}),
        ("unary", {"f": "no_such_function"}),
        ("unary", {"f": {"elu": {}}}),
        ("reduce", {"f": "sum", "axes": "x", "keepdims": False}),
        ("cast", {"dtype": "complex64"}),
        ("concat", {"axis": 0.5}),
        ("fill", {"value": 1, "shape": (-1,), "dtype": "float32"}),
        ("conv2d", {**CONV, "groups": -1}),
        ("random", {"dist": {"cauchy": {}}, "shape": (2,), "dtype": "float32"}),
        ("softmax", {"axis": 0, "log": 3}),
        ("binary", {"f": object()}),
    ],
)
def test_operations_of_wrong_attributes(name, attrs):
    with pytest.raises((ValueError, TypeError)) as caught:
        _core.Op(name, **attrs)
    assert str(caught.value)


def image(*shape):
    return to_handle(np.ones(shape or (1, 2, 4, 4)), "float32")


@pytest.mark.parametrize(
    "name, attrs, inputs",
    [
        ("reduce", {"f": "sum", "axes": (2,), "keepdims": False}, [(2, 3)]),
        ("reduce", {"f": "sum", "axes": (0, -2), "keepdims": False}, [(2, 3)]),
        ("reduce", {"f": "argmax", "axes": (0, 1), "keepdims": False}, [(2, 3, 4)]),
        ("softmax", {"axis": 2, "log": False}, [(2, 3)]),
        ("concat", {"axis": 2}, [(2, 3), (2, 3)]),
        ("gather", {"axis": -3}, [(2, 3), (1,)]),
        ("fill", {"value": 1, "shape": (1 << 40, 1 << 40), "dtype": "float32"}, []),
        ("arange", {"start": 0, "step": 1, "count": 1 << 62, "dtype": "int64"}, []),
        ("conv2d", {**CONV, "stride": (0, 1)}, [(1, 2, 4, 4), (2, 2, 3, 3)]),
        ("conv2d", {**CONV, "dilation": (0, 1)}, [(1, 2, 4, 4), (2, 2, 3, 3)]),
        ("conv2d", {**CONV, "groups": 0}, [(1, 2, 4, 4), (2, 2, 3, 3)]),
        ("conv2d", {**CONV, "groups": 3}, [(1, 2, 4, 4), (2, 2, 3, 3)]),
        ("conv2d", {**CONV, "padding": (1 << 62, 0, 0, 0)}, [(1, 2, 4, 4), (2, 2, 3, 3)]),
        ("conv2d", {**CONV, "stride": (1 << 62, 1 << 62)}, [(1, 2, 4, 4), (2, 0, 3, 3)]),
        ("max_pool2d", {**WINDOW, "stride": (0, 1)}, [(1, 2, 4, 4)]),
        ("max_pool2d", {**WINDOW, "kernel": (0, 2)}, [(1, 2, 4, 4)]),
        ("max_pool2d", {**WINDOW, "kernel": (5, 2)}, [(1, 2, 4, 4)]),
        ("max_pool2d", {**WINDOW, "padding": (2, 0, 0, 0)}, [(1, 2, 4, 4)]),
        ("dropout", {"ratio": 1.5}, [(2, 3)]),
        ("dropout", {"ratio": -0.1}, [(2, 3)]),
        ("dropout", {"ratio": float("nan")}, [(2, 3)]),
        ("random", {"dist": {"bernoulli": {"p": 2.0}}, "shape": (2,), "dtype": "float32"}, []),
        (
            "random",
            {"dist": {"normal": {"mean": 0, "std": -1}}, "shape": (2,), "dtype": "float32"},
            [],
        ),
        (
            "random",
            {"dist": {"uniform": {"low": 0, "high": 1}}, "shape": (2,), "dtype": "int32"},
            [],
        ),
    ],
)
def test_attributes_that_do_not_fit(name, attrs, inputs):
    with pytest.raises((ValueError, TypeError, MemoryError)) as caught:
        tensors = [to_handle(np.ones(shape), "float32") for shape in inputs]
        if name == "gather":
            tensors[1] = to_handle(np.zeros(1), "int64")
        _core.Op(name, **attrs)(*tensors)
    assert attrs.get("f", name) in str(caught.value)


@pytest.mark.parametrize("thing", [None, 1.5, [1, 2], np.ones(3), "x"])
def test_operands_other_than_tensors(thing):
    with pytest.raises(TypeError):
        ADD(image(3), thing)


@pytest.mark.parametrize("shape", [(-1,), (2, -3), "ab", 3.5, (1.5,), (1 << 62, 1 << 62), None])
def test_tensors_of_wrong_shapes(shape):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        _core.Handle(shape, DEVICE, "float32")


@pytest.mark.parametrize(
    "dtype", ["float8", "complex64", 7, -1, object(), str, np.dtype("U3"), 3.0]
)
def test_unknown_dtypes(dtype):
    with pytest.raises((TypeError, ValueError)):
        _core.dtype(dtype)
    with pytest.raises((TypeError, ValueError)):
        _core.Handle((2,), DEVICE, dtype)


# ---- arrays --------------------------------------------------------------------------------------


def test_arrays_of_wrong_shape_or_dtype():
    x = _core.Handle((2, 3), DEVICE, "float32")
    for shape in [(3, 2), (6,), (2, 3, 1), (), (0,)]:
        with pytest.raises(_core.ShapeError):
            x.copy_from_numpy(np.zeros(shape, np.float32))
    for dtype in ["float64", "int32", "bool", "float16"]:
        with pytest.raises(_core.DTypeError):
            x.copy_from_numpy(np.zeros((2, 3), dtype))
    for dtype in ["complex64", "U3", "O", "datetime64[s]", "longdouble", "V4"]:
        with pytest.raises((TypeError, ValueError)):
            _core.from_numpy(np.zeros((2, 3), dtype), DEVICE)
    for thing in [[1.0, 2.0], 3, None, "text"]:
        with pytest.raises(TypeError):
            _core.from_numpy(thing, DEVICE)
    assert (x.to_numpy() == 0).all()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::-2],
        np.arange(12.0).astype(">f8").reshape(3, 4),
        np.frombuffer(b"\0" + np.arange(5.0).tobytes(), np.float64, offset=1),
        np.broadcast_to(np.float64(3), (2, 3)),
        np.zeros((0, 3)),
        np.array(2.0),
    ],
    ids=["transposed", "backwards", "big-endian", "unaligned", "expanded", "empty", "scalar"],
)
def test_arrays_of_any_layout(array):
    handle = _core.from_numpy(array, DEVICE)
    assert handle.shape == array.shape
    np.testing.assert_array_equal(handle.to_numpy(), array)


def test_numpy_gets_a_copy_of_its_own():
    handle = to_handle(np.arange(6).reshape(2, 3), "float32")
    array = handle.view_permute((1, 0)).to_numpy()
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.owndata
    array[:] = -1
    np.testing.assert_array_equal(handle.to_numpy(), [[0, 1, 2], [3, 4, 5]])
    source = np.ones(3, np.float32)
    kept = _core.from_numpy(source, DEVICE)
    source[:] = 5
    assert (kept.to_numpy() == 1).all()


@pytest.mark.parametrize("shape", [(), (1,), (2,), (0,), (1, 1)])
def test_only_one_element_is_a_number(shape):
    handle = to_handle(np.ones(shape), "float32")
    if np.prod(shape) == 1:
        assert handle.item() == 1.0
    else:
        with pytest.raises(_core.ShapeError, match="item"):
            handle.item()


def test_views_outside_their_tensor():
    x = image(2, 3)
    for ranges in [
        [(0, 3, 1), (0, 3, 1)],
        [(0, 2, 1)],
        [(2, 1, 1), (0, 1, 1)],
        [(0, 2, -1), (0, 1, 1)],
        [(0, 2, 0), (0, 1, 1)],
        [(0, 2, 1 << 62), (0, 1, 1)],
        [(1 << 62, 2, 1), (0, 1, 1)],
    ]:
        with pytest.raises((ValueError, OverflowError)):
            x.view_slice(ranges)
    for shape in [(5,), (7, 1), (1 << 62, 1 << 62), (0,)]:
        with pytest.raises(_core.ShapeError):
            x.view_reshape(shape)
    for axes in [(0,), (0, 0), (0, 2), (0, -3), (0, 1, 2)]:
        with pytest.raises(ValueError):
            x.view_permute(axes)
    for shape in [(3,), (4, 3), (2, 2, 2)]:
        with pytest.raises(_core.ShapeError):
            x.view_expand(shape)


def test_an_expanded_tensor_cannot_be_written():
    x = image(1).view_expand((4,))
    with pytest.raises(ValueError):
        ADD.into([image(4), image(4)], [x])
    with pytest.raises(ValueError):
        x.copy_from_numpy(np.ones(4, np.float32))


@pytest.mark.parametrize(
    "outputs", [[], [(2, 3), (2, 3)], [(3, 2)], [(2, 3, 1)]], ids=["none", "two", "shape", "rank"]
)
def test_outputs_that_do_not_fit(outputs):
    x = image(2, 3)
    with pytest.raises((ValueError, TypeError), match="add"):
        ADD.into([x, x], [image(*shape) for shape in outputs])
    with pytest.raises(_core.DTypeError, match="add"):
        ADD.into([x, x], [to_handle(np.zeros((2, 3)), "float64")])


@pytest.mark.parametrize("threads", [0, -1, 1025, 1 << 70, 1.5, "two"])
def test_thread_counts_out_of_range(threads):
    before = DEVICE.num_threads
    with pytest.raises((ValueError, TypeError, OverflowError)):
        DEVICE.set_num_threads(threads)
    assert DEVICE.num_threads == before


def test_memory_that_was_never_written_reads_as_zero():
    full = to_handle(np.ones(1000), "float32")
    del full  # the next tensor of that size reuses its memory
    fresh = _core.Handle((1000,), DEVICE, "float32")
    assert not fresh.is_allocated and (fresh.to_numpy() == 0).all()
    part = _core.Handle((1000,), DEVICE, "float32")
    part.view_slice([(3, 2, 1)]).copy_from_numpy(np.ones(2, np.float32))
    assert part.to_numpy().sum() == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda x: autograd.reduce_sum(x, 0, "no"),
        lambda x: autograd.argmax(x, 1, keepdims="no"),
        lambda x: autograd.gemm(x, x, transB="no"),
        lambda x: Conv2dOfUser(bias="no"),
        lambda x: PoolingOfUser(is_max="no"),
    ],
)
def test_text_is_no_flag(call):
    with pytest.raises(TypeError, match="got 'no', want a bool"):
        call(tensor.zeros((3, 3)))


class Conv2dOfUser(layer.Conv2d):
    def __init__(self, **options):
        super().__init__(3, 3, **options)


class PoolingOfUser(layer.Pooling2d):
    def __init__(self, **options):
        super().__init__(2, **options)
