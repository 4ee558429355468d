"""Values of an ONNX graph: tensors on the device, arrays on the host, sequences, nothing.

What describes shapes and positions (results of `Shape`, constants of integers) stays on the host,
where it costs nothing and can be read while a step is recorded; so do strings.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx

from ..device import Device
from ..errors import DTypeError
from ..tensor import Tensor, bfloat16, from_numpy
from ..tensor.dtypes import name_of
from . import arrays, codes
from .codes import Coded

#: A value of a graph: a tensor, one of codes, an array on the host, a sequence of values, or None,
#: which is an empty optional or an input that was left out.
Value = Any

#: The checker takes no messages of 2 GiB and more.
MOST_CHECKED = 2**31 - 1
_T = onnx.TensorProto
#: Names of the engine's dtypes by ONNX's element types.
NAMES: dict[int, str] = {
    _T.FLOAT: "float32",
    _T.DOUBLE: "float64",
    _T.FLOAT16: "float16",
    _T.BFLOAT16: "bfloat16",
    _T.INT8: "int8",
    _T.INT16: "int16",
    _T.INT32: "int32",
    _T.INT64: "int64",
    _T.UINT8: "uint8",
    _T.UINT16: "uint16",
    _T.UINT32: "uint32",
    _T.UINT64: "uint64",
    _T.BOOL: "bool",
}
#: The other way round.
ELEMENTS = {name: number for number, name in NAMES.items()}


def dtype_name(element: int) -> str:
    """The dtype for an element type of ONNX.

    Raises:
        DTypeError: tensors have no such type.
    """
    if element not in NAMES:
        raise DTypeError(f"ONNX element type {arrays.name_of(element)}: no tensor has it")
    return NAMES[element]


#: Element types by NumPy's dtypes, where elements are stored alike.
_PLAIN = {np.dtype(name): one for name, one in ELEMENTS.items() if name != "bfloat16"}


def is_plain(value: Any, element: int) -> bool:
    """Whether a value is an array, and no kind of it, in the dtype for an element type of ONNX."""
    return type(value) is np.ndarray and _PLAIN.get(value.dtype) == element


def is_text(value: Any) -> bool:
    """Whether a value is an array of strings, which stays on the host."""
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "OUS"


def to_tensor(array: Any, device: Device) -> Tensor | Coded:
    """A new tensor with a copy of an array, in the array's dtype."""
    array = arrays.native(array if isinstance(array, np.ndarray) else np.asarray(array))
    if codes.is_coded(array.dtype):
        return codes.from_array(array, device)
    return from_numpy(array, device, dtype=name_of(array.dtype))


def to_array(value: Value) -> Any:
    """A value as ONNX's users expect it: arrays in their own dtypes, lists of them, None."""
    if isinstance(value, Tensor):
        made = value.to_numpy()
        return made.astype(ml_dtypes.bfloat16) if value.dtype == bfloat16 else made
    if isinstance(value, (list, tuple)):
        return [to_array(one) for one in value]
    return value.array() if isinstance(value, Coded) else value


def element_of(value: Value) -> int:
    """ONNX's element type of a tensor or an array."""
    if isinstance(value, Tensor):
        return ELEMENTS[value.dtype.name]
    if isinstance(value, Coded):
        return arrays.element_of(value.dtype)
    return arrays.element_of(np.asarray(value).dtype)


__all__ = [
    "ELEMENTS", "MOST_CHECKED", "NAMES", "Coded", "Value", "dtype_name", "element_of", "is_plain",
    "is_text", "to_array", "to_tensor",
]  # fmt: skip
