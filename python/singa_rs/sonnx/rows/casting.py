"""Conversions between element types."""

from __future__ import annotations

from typing import Any

import onnx

from ...autograd.casting import cast
from ...tensor import Tensor
from .. import codes, folding
from ..arrays import CODED, dtype_of
from ..body import Node
from ..codes import Coded
from ..running import Frame
from ..table import reads
from ..values import dtype_name, element_of, to_array, to_tensor

_STRING = onnx.TensorProto.STRING


def converted(
    x: Tensor | Coded, to: int, saturate: bool = True, round_mode: str = "up"
) -> Tensor | Coded:
    """A tensor in an element type of ONNX that is not of strings.

    Floats become integers without their fractions. Beyond the range, ONNX leaves open what they
    become; here it is the nearest end, and 0 for NaN. Integers keep the bits that fit.
    """
    if isinstance(x, Coded):
        if CODED.get(to) == x.dtype:
            return x
        x = x.values()
    if to in CODED:
        return codes.encoded(x, CODED[to], saturate, round_mode)
    return cast(x, dtype_name(to))


@reads("Cast", takes_codes=True)
def cast_by_name(x: Tensor, *, to: str | int, frame: Frame, node: Node) -> Any:
    """`x` in an element type, which the first opset calls by its name."""
    number = onnx.TensorProto.DataType.Value(to.upper()) if isinstance(to, str) else to
    return cast_(x, to=number, frame=frame, node=node)


@reads("Cast", since=6, takes_codes=True)
def cast_(
    x: Tensor | Coded, *, to: int, saturate: int = 1, round_mode: str = "up", frame: Frame,
    node: Node,
) -> Any:  # fmt: skip
    """`x` in an element type; strings are made on the host."""
    if to == _STRING:
        return folding.fold(node, [frame.read(x)])
    return converted(x, to, bool(saturate), round_mode)


@reads("CastLike", since=15, takes_codes=True)
def cast_like(
    x: Tensor | Coded, like: Tensor | Coded, *, saturate: int = 1, round_mode: str = "up"
) -> Tensor | Coded:
    """`x` in the element type of another tensor, of which nothing else matters."""
    return converted(x, element_of(like), bool(saturate), round_mode)


@reads("BitCast", since=26)
def bit_cast(x: Tensor, *, to: int, frame: Frame) -> Tensor:
    """The same bits as another element type of the same size.

    Between integers that is a conversion. Bits of floats are copied on the host: the device has no
    operation that takes floats apart.
    """
    name = dtype_name(to)
    want = dtype_of(to)
    if want.itemsize != x.dtype.itemsize:
        raise ValueError(f"BitCast: got {x.dtype.name} to {name}, want types of one size")
    if not x.dtype.is_float and want.kind in "iub":
        return cast(x, name)
    return to_tensor(to_array(frame.read(x)).view(want), frame.device)
