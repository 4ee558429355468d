"""Arrays of ONNX's tensors in the dtypes that NumPy lacks, beside the `onnx` package's own."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from singa_rs import sonnx
from singa_rs.sonnx import arrays
from singa_rs.sonnx.arrays import (
    BFLOAT16,
    CODED,
    dtype_of,
    element_of,
    from_array,
    name_of,
    native,
    packaged,
    to_array,
)  # fmt: skip

SHORT = {BFLOAT16: np.dtype(ml_dtypes.bfloat16), **CODED}
#: Three elements of each dtype, which do not fill the bytes of those of 4 and 2 bits.
CODES = {1: np.uint8([1, 0, 1]), 2: np.uint8([1, 0, 3]), 4: np.uint8([1, 15, 8])}


def elements(dtype):
    if dtype.itemsize == 2:
        return np.array([1.5, -2.0, np.inf], dtype)
    info = ml_dtypes.iinfo if "int" in dtype.name else ml_dtypes.finfo
    return CODES.get(info(dtype).bits, np.uint8([1, 127, 130])).view(dtype)


def is_known(element):
    """Whether the package has the dtypes of ml_dtypes."""
    try:
        return helper.tensor_dtype_to_np_dtype(element) == SHORT[element]
    except KeyError:
        return False


@pytest.mark.parametrize("element", SHORT, ids=name_of)
def test_elements_come_back(element):
    array = elements(SHORT[element]).reshape(1, 3)
    made = from_array(array, "a")
    assert (made.name, list(made.dims), made.data_type) == ("a", [1, 3], element)
    found = to_array(made)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()
    assert element_of(found.dtype) == element and dtype_of(element) == found.dtype


@pytest.mark.parametrize("element", SHORT, ids=name_of)
def test_the_package_has_the_same_messages(element):
    if not is_known(element):
        pytest.skip("this version of onnx does not have the dtype")
    array = elements(SHORT[element])
    made = from_array(array, "a")
    assert made == numpy_helper.from_array(array, "a")
    assert numpy_helper.to_array(made).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("element", "raw", "codes"),
    [
        (BFLOAT16, b"\x80\x3f\0\xc0", [0x3F80, 0xC000]),
        (17, b"\x38\xb8", [0x38, 0xB8]),
        (22, b"\x21\x0f", [1, 2, 15]),
        (26, b"\x1b", [3, 2, 1, 0]),
        (23, b"\x72", [2, 7]),
    ],
)
def test_bytes_as_the_specification_has_them(element, raw, codes):
    """The first of several elements in a byte is in its lowest bits."""
    dtype = SHORT[element]
    want = np.array(codes, np.uint16 if dtype.itemsize == 2 else np.uint8).view(dtype)
    made = TensorProto(dims=[len(codes)], data_type=element)
    made.raw_data = raw
    np.testing.assert_array_equal(to_array(made).astype(float), want.astype(float))
    assert from_array(want).raw_data == raw
    made.ClearField("raw_data")
    made.int32_data.extend(np.frombuffer(raw, "<u2" if dtype.itemsize == 2 else "u1").tolist())
    np.testing.assert_array_equal(to_array(made).astype(float), want.astype(float))


@pytest.mark.parametrize("element", SHORT, ids=name_of)
def test_bytes_that_are_too_few_are_refused(element):
    made = from_array(elements(SHORT[element]))
    made.dims[:] = [5]
    with pytest.raises(ValueError, match="reshape"):
        to_array(made)


def test_elements_in_another_file(tmp_path, monkeypatch):
    """The package reads such of a model without a path in the working directory."""
    monkeypatch.chdir(tmp_path)
    array = elements(SHORT[BFLOAT16])
    made = from_array(array)
    (tmp_path / "data").write_bytes(made.raw_data)
    made.ClearField("raw_data")
    made.data_location = TensorProto.EXTERNAL
    made.external_data.add(key="location", value="data")
    assert to_array(made).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("kind", "name", "element", "raw"),
    [
        (np.uint16, "bfloat16", BFLOAT16, [0x3F80, 0xC000]),
        (np.uint8, "e4m3fn", 17, [0x38, 0xB8]),
        (np.uint8, "e5m2fnuz", 20, [0x38, 0xB8]),
        (np.int8, "int4", 22, [-3, 7]),
    ],
)
def test_arrays_of_the_dtypes_that_the_package_had(kind, name, element, raw):
    """NumPy takes them for integers."""
    given = np.array(raw, kind).view(np.dtype((kind, {name: (kind, 0)})))
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", element, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (found,) = sonnx.prepare(made).run([given])
    want = np.array(raw, kind).view(SHORT[element]).astype(np.float32)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("element", [BFLOAT16, 17, 18, 19, 20, 21, 22], ids=name_of)
def test_results_in_the_dtypes_of_the_package(element, monkeypatch):
    array = elements(SHORT[element])
    old = arrays._older(array, next(n for n, d in arrays._OLDER.items() if d == array.dtype))
    np.testing.assert_array_equal(native(old).astype(float), array.astype(float))
    known = np.dtype(helper.tensor_dtype_to_np_dtype(element))
    wanted = array.dtype if known == array.dtype else old.dtype
    (found,) = packaged([array])
    assert found.dtype == wanted and packaged(None) is None
    if onnx.__version__ < "1.19":
        own = numpy_helper.to_array(numpy_helper.from_array(np.concatenate([old, old])))
        assert element == BFLOAT16 or own.dtype == old.dtype


def test_names_of_types():
    assert name_of(TensorProto.FLOAT) == "FLOAT"
    assert name_of(9999) == "number 9999"


def test_models_of_the_newest_known_opset_are_written(tmp_path):
    newest = min(26, onnx.defs.onnx_opset_version())
    made = sonnx.model_proto(lambda x: x * 2.0, [np.ones((2, 3), np.float32)])
    assert made.opset_import[0].version == newest
