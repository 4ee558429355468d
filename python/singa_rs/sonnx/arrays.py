"""NumPy's arrays and ONNX's messages of tensors.

For the floats of 16 bits and less and the integers of 4 and 2 bits that NumPy lacks, arrays have
the dtypes of ml_dtypes. The `onnx` package has these, too, since 1.19; before, it had some of its
own, left out the raw bytes of bfloat16, and did not name what came later. So their bits are read
and written here, and element types are numbers, which outlive the package.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, external_data_helper, helper, numpy_helper

BFLOAT16, FLOAT8E5M2, FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2 = 16, 19, 23, 24, 25, 26
#: The dtypes of elements that are stored as codes of a byte and less (ONNX TensorProto.DataType).
CODED: dict[int, np.dtype] = {
    17: np.dtype(ml_dtypes.float8_e4m3fn),
    18: np.dtype(ml_dtypes.float8_e4m3fnuz),
    FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e5m2fnuz),
    21: np.dtype(ml_dtypes.uint4),
    22: np.dtype(ml_dtypes.int4),
    FLOAT4E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    FLOAT8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    UINT2: np.dtype(ml_dtypes.uint2),
    INT2: np.dtype(ml_dtypes.int2),
}
_DTYPES = {BFLOAT16: np.dtype(ml_dtypes.bfloat16), **CODED}
_ELEMENTS = {dtype: element for element, dtype in _DTYPES.items()}
#: By the name of their only field, the dtypes of integers that the package had of its own.
_OLDER = {
    "bfloat16": _DTYPES[BFLOAT16],
    **{
        "e4m3fn": CODED[17],
        "e4m3fnuz": CODED[18],
        "e5m2": CODED[FLOAT8E5M2],
        "e5m2fnuz": CODED[20],
    },
    **{"uint4": CODED[21], "int4": CODED[22]},
}
_HAS_OLDER = np.dtype(helper.tensor_dtype_to_np_dtype(BFLOAT16)) != _DTYPES[BFLOAT16]


def is_whole(dtype: np.dtype) -> bool:
    """Whether a dtype that NumPy lacks is of integers."""
    return "int" in dtype.name


def bits(dtype: np.dtype) -> int:
    """The bits of an element of a dtype that NumPy lacks."""
    info = ml_dtypes.iinfo if is_whole(dtype) else ml_dtypes.finfo
    return int(info(dtype).bits)


def dtype_of(element: int) -> np.dtype:
    """The dtype of arrays for an element type of ONNX.

    Raises:
        KeyError: there is no such type.
    """
    return _DTYPES.get(element) or np.dtype(helper.tensor_dtype_to_np_dtype(element))


def element_of(dtype: np.dtype) -> int:
    """ONNX's element type of a dtype.

    Raises:
        ValueError: it has none.
    """
    return _ELEMENTS.get(dtype) or int(helper.np_dtype_to_tensor_dtype(dtype))


def native(array: np.ndarray) -> np.ndarray:
    """An array in NumPy's dtypes or those of ml_dtypes, if it has one of the package's own."""
    named = array.dtype.names
    return array if named is None else array.view(_OLDER[named[0]])


def packaged(value: Any) -> Any:
    """An array, or those of a list, in the dtypes that the installed package has for them."""
    if not _HAS_OLDER:
        return value
    if isinstance(value, list):
        return [packaged(one) for one in value]
    dtype = getattr(value, "dtype", None)
    name = next((name for name, one in _OLDER.items() if one == dtype), None)
    return _older(value, name) if name else value


def _older(array: np.ndarray, name: str) -> np.ndarray:
    """An array in a dtype that the package had of its own."""
    if name.endswith("int4"):  # their bytes hold numbers of eight bits
        array = array.astype(name.replace("4", "8"))
    kind = array.dtype if name.endswith("int4") else np.dtype(f"u{array.itemsize}")
    return array.view(np.dtype((kind, {name: (kind, 0)})))


def name_of(element: int) -> str:
    """What an element type is called."""
    try:
        return TensorProto.DataType.Name(element)
    except ValueError:  # of a later ONNX than the package's
        return _DTYPES[element].name if element in _DTYPES else f"number {element}"


def to_array(proto: TensorProto, folder: str = "") -> np.ndarray:
    """The elements of a tensor, which may be in another file of a folder.

    Raises:
        ValueError: they are not those of its shape.
    """
    if external_data_helper.uses_external_data(proto):
        whole = TensorProto()
        whole.CopyFrom(proto)
        external_data_helper.load_external_data_for_tensor(whole, folder)
        proto = whole
    if proto.data_type not in _DTYPES:
        return numpy_helper.to_array(proto)
    if proto.HasField("raw_data"):
        return from_bytes(proto, proto.raw_data)
    unit = np.uint16 if proto.data_type == BFLOAT16 else np.uint8
    return from_bytes(proto, np.array(proto.int32_data, np.int32).astype(unit))


def from_bytes(proto: TensorProto, raw: Any) -> np.ndarray:
    """The elements of a tensor from the bytes in which they are stored, which a buffer holds.

    Raises:
        ValueError: they are not those of its shape.
    """
    dtype, shape = dtype_of(proto.data_type), tuple(proto.dims)
    if proto.data_type in CODED:
        codes = _apart(np.frombuffer(raw, np.uint8), bits(dtype))
        return codes[: math.prod(shape)].view(dtype).reshape(shape)
    stored = np.dtype("<u2") if dtype == _DTYPES[BFLOAT16] else dtype.newbyteorder("<")
    return (
        np.frombuffer(raw, stored)
        .astype(stored.newbyteorder("="), copy=False)
        .view(dtype)
        .reshape(shape)
    )


def _apart(packed: np.ndarray, width: int) -> np.ndarray:
    """Codes that lie several in a byte, the first in the lowest bits, in a byte each."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)
    return (packed[:, None] >> shifts & np.uint8(2**width - 1)).reshape(-1)


def from_array(array: np.ndarray, name: str = "") -> TensorProto:
    """An array as a tensor."""
    if array.dtype not in _ELEMENTS:
        return numpy_helper.from_array(array, name)
    made = TensorProto(name=name, dims=array.shape, data_type=_ELEMENTS[array.dtype])
    made.raw_data = _raw(np.ascontiguousarray(array).reshape(-1))
    return made


def _raw(array: np.ndarray) -> bytes:
    """The bytes of elements, several in each where they are short."""
    width = bits(array.dtype)
    if width == 16:
        return array.view(np.uint16).astype("<u2").tobytes()
    each = 8 // width
    codes = array.view(np.uint8) & np.uint8(2**width - 1)
    rows = np.pad(codes, (0, -len(codes) % each)).reshape(-1, each)
    return np.bitwise_or.reduce(rows << np.arange(0, 8, width, dtype=np.uint8), axis=1).tobytes()
