"""Inputs in the element types that a graph declares, whatever arrays are given for them."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from singa_rs import sonnx
from singa_rs.errors import DTypeError
from singa_rs.sonnx.arrays import (
    BFLOAT16,
    CODED,
    FLOAT4E2M1,
    FLOAT8E5M2,
    FLOAT8E8M0,
    from_array,
    name_of,
)
from singa_rs.tensor import Tensor

SHORT = {BFLOAT16: np.dtype(ml_dtypes.bfloat16), **CODED}
OF_BITS = [one for one, d in SHORT.items() if "int" not in d.name and one != FLOAT4E2M1]
#: NaN of every dtype, and numbers, of which float8e8m0 has no others than powers of two.
BITS = {2: np.uint16([0x3F80, 0xC000, 0x7FC1]), 1: np.uint8([1, 64, 127, 128, 255])}


def casts(element):
    """A model that converts its input of an element type to float32."""
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", element, None)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def found(element, x):
    return sonnx.prepare(casts(element)).run([x])[0]


class Sheet(np.ndarray):
    """A kind of array."""


ARRAYS = {
    "own": lambda x: x,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "transposed": lambda x: np.asfortranarray(x),
    "backwards": lambda x: x[::-1].copy()[::-1],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "kind of array": lambda x: x.view(Sheet),
    "other dtype": lambda x: x.astype("f8" if x.dtype.kind == "f" else "i2"),
    "tensor": lambda x: Tensor(data=x, dtype=x.dtype.name),
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_arrays_of_any_kind(kind, dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    x.flags.writeable = False
    model = sonnx.prepare(casts(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))
    for _ in range(3):
        (y,) = model.run([ARRAYS[kind](x)])
        np.testing.assert_array_equal(y.to_numpy() if kind == "tensor" else y, x)


def test_masked_elements_are_refused():
    with pytest.raises(DTypeError, match="masked"):
        found(TensorProto.FLOAT, np.ma.masked_equal(np.float32([1, 2]), 2))


@pytest.mark.parametrize("element", OF_BITS, ids=name_of)
def test_unsigned_integers_of_the_same_size_are_bits(element):
    bits = BITS[SHORT[element].itemsize]
    want = bits.view(SHORT[element]).astype(np.float32)
    np.testing.assert_array_equal(found(element, bits), want)
    strided = np.repeat(bits, 2)[::2]
    np.testing.assert_array_equal(found(element, strided), want)


@pytest.mark.parametrize("element", OF_BITS, ids=name_of)
def test_floats_are_rounded(element):
    numbers = np.array([0.5, 1.0, 2.1], np.float32)
    want = numbers.astype(SHORT[element]).astype(np.float32)
    if element == FLOAT8E8M0:  # rounds up where no mode is given
        want[2] = 4.0
    np.testing.assert_array_equal(found(element, numbers), want)


@pytest.mark.parametrize("element", [21, 22, 25, 26], ids=name_of)
def test_small_integers_have_to_be_in_range(element):
    info = ml_dtypes.iinfo(SHORT[element])
    fits = np.array([info.min, 1, info.max], np.int64)
    np.testing.assert_array_equal(found(element, fits), fits)
    with pytest.raises(DTypeError, match=rf"got {int(info.max) + 1}, want u?int\d: "):
        found(element, fits + 1)
    with pytest.raises(DTypeError, match="input 'x': got float32, want"):
        found(element, fits.astype(np.float32))


@pytest.mark.parametrize("x", [np.ones(2, np.int32), np.ones(2, bool), np.uint16([1, 2])])
def test_what_is_neither_bits_nor_floats_is_refused(x):
    with pytest.raises(DTypeError, match=f"'x': got {x.dtype.name}, want FLOAT8E5M2"):
        found(FLOAT8E5M2, x)


def test_tensors_are_no_bits():
    x = Tensor(data=np.uint8([60]), dtype="uint8")
    with pytest.raises(DTypeError, match="'x': got uint8, want FLOAT8E5M2"):
        found(FLOAT8E5M2, x)
    with pytest.raises(DTypeError, match="'x': got float8_e5m2, want FLOAT"):
        found(TensorProto.FLOAT, np.zeros(1, ml_dtypes.float8_e5m2))


@pytest.mark.parametrize("element", [17, 18, 19, 20], ids=name_of)
def test_nan_has_the_code_of_other_runtimes(element):
    """float8e5m2 has three."""
    node = helper.make_node("Cast", ["x"], ["y"], to=element)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", element, [1])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (y,) = sonnx.prepare(made).run([np.array([np.nan], np.float32)])
    assert y.view(np.uint8)[0] == (0x7F if element in (17, 19) else 0x80)


def test_lists_of_numbers_are_arrays():
    proto = casts(TensorProto.FLOAT)
    (got,) = sonnx.prepare(proto).run([[[1.0, 2.5]]])
    np.testing.assert_array_equal(got, np.float32([[1, 2.5]]))
    (got,) = sonnx.SONNXModel(proto).forward([1, 2])
    np.testing.assert_array_equal(got.to_numpy(), np.float32([1, 2]))


@pytest.mark.parametrize("x", [None, {"x": 1.0}, [[1.0], [2.0, 3.0]], [None], {1.0}])
def test_what_is_no_tensor_is_refused(x):
    proto = casts(TensorProto.FLOAT)
    message = f"^sonnx: input 'x': got {type(x).__name__}, want a tensor, an array or numbers"
    for call in (sonnx.prepare(proto).run, lambda xs: sonnx.SONNXModel(proto).forward(*xs)):
        with pytest.raises(TypeError, match=message):
            call([x])


@pytest.mark.parametrize("count", [0, 2, -1, -9])
def test_numbers_of_nodes_that_there_are_not(count):
    model = sonnx.SONNXModel(casts(TensorProto.FLOAT))
    with pytest.raises(ValueError, match=f"^sonnx: last_layers: got {count}, want 1 to 1"):
        model.forward(Tensor(data=np.ones(2, np.float32)), last_layers=count)
    with pytest.raises(TypeError, match="last_layers"):
        model.forward(Tensor(data=np.ones(2, np.float32)), last_layers="all")


@pytest.mark.parametrize("ir_version", [3, 10])
def test_inputs_with_values_in_the_file(ir_version):
    """They may be given, too, also where the value says what an idiom is."""
    x, two = np.float32([[1, 2, 3]]), np.float32([2])
    info = helper.make_tensor_value_info
    given = [info("x", TensorProto.FLOAT, ["n", 3]), info("w", TensorProto.FLOAT, [1])]
    graph = helper.make_graph(
        [helper.make_node("Pow", ["x", "w"], ["z"]), helper.make_node("Mul", ["z", "w"], ["y"])],
        "g", given, [info("y", TensorProto.FLOAT, ["n", 3])], [from_array(two, "w")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 15)]
    rep = sonnx.prepare(helper.make_model(graph, opset_imports=opsets, ir_version=ir_version))
    for _ in range(3):
        np.testing.assert_allclose(rep.run([x])[0], x**2 * 2)
        np.testing.assert_allclose(rep.run([x, np.float32([3])])[0], x**3 * 3)
    with pytest.raises(ValueError, match="got 3 inputs, want 1: x or 2: x, w"):
        rep.run([x, x, x])
