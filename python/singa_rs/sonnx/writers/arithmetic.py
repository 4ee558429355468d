"""Arithmetic that ONNX lacks, or lacks for a dtype, in nodes that it has."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import defs

from ..values import NAMES
from ..writing import OLDEST, Writer

#: Dtypes that others are computed in, the first that an operator has.
_WIDER = ("int32", "int64")
#: Comparisons, whose results are bools in every dtype.
_TRUTHS = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"}


@functools.cache
def _dtypes(kind: str) -> frozenset[str]:
    """The dtypes that an operator takes as its first input."""
    # The oldest opset that is written has the fewest types.
    opset = OLDEST if defs.has(kind, OLDEST) else defs.onnx_opset_version()
    types = {name.lower(): name for name in NAMES.values()}
    types |= {"float": "float32", "double": "float64"}
    known = (one[7:-1] for one in defs.get_schema(kind, opset).inputs[0].types)
    return frozenset(types[one] for one in known if one in types)


def typed(w: Writer, kind: str, inputs: Sequence[str], dtype: str, **attrs: Any) -> str:
    """A node whose inputs and result have a dtype; integers and bools that ONNX's operator does not
    take are computed in a wider one, of which the bits that fit are kept."""
    if dtype in _dtypes(kind) or "float" in dtype:
        return w.node(kind, inputs, **attrs)
    wide = next(one for one in _WIDER if one in _dtypes(kind))
    made = w.node(kind, [w.cast(x, wide) for x in inputs], **attrs)
    return made if kind in _TRUTHS else w.cast(made, dtype)


# ---- division ------------------------------------------------------------------------------------


def remainder(w: Writer, a: str, b: str, dtype: str) -> str:
    """The rest with the sign of the divisor."""
    if "float" not in dtype:
        return w.node("Mod", [a, b])
    rest = w.node("Mod", [a, b], fmod=1)
    return w.node("Where", [_is_off(w, rest, b, dtype), w.node("Add", [rest, b]), rest])


def _is_off(w: Writer, rest: str, b: str, dtype: str) -> str:
    """Where a rest has the other sign than the divisor."""
    zero = w.constant(0, dtype)
    signs = w.node("Xor", [typed(w, "Less", [one, zero], dtype) for one in (rest, b)])
    return w.node("And", [w.node("Not", [w.node("Equal", [rest, zero])]), signs])


def floor_divide(w: Writer, a: str, b: str, dtype: str) -> str:
    """The quotient rounded down: of floats what is left without the rest, which is exact, less 1
    where the rest has the other sign than the divisor, which may be infinite."""
    if "float" in dtype:
        rest = w.node("Mod", [a, b], fmod=1)
        down = w.node("Div", [w.node("Sub", [a, rest]), b])
        off = w.cast(_is_off(w, rest, b, dtype), dtype)
        found = w.node("Round", [w.node("Sub", [down, off])])
        is_zero = w.node("Equal", [b, w.constant(0, dtype)])
        return w.node("Where", [is_zero, w.node("Div", [a, b]), found])
    down = w.node("Div", [a, b])
    rest = w.node("Sub", [a, w.node("Mul", [down, b])])
    return w.node("Sub", [down, w.cast(_is_off(w, rest, b, dtype), dtype)])


# ---- bits ----------------------------------------------------------------------------------------


def shifted(w: Writer, a: str, n: str, dtype: str, to_left: bool) -> str:
    """The bits moved by `n` places, which ONNX does for unsigned integers: to the right, those of
    negative numbers are turned round before and after. Beyond its width nothing is left."""
    width = np.dtype(dtype).itemsize * 8
    unsigned = dtype if dtype.startswith("u") else f"u{dtype}"
    is_negative = None
    if not to_left and dtype != unsigned:
        is_negative = w.node("Less", [a, w.constant(0, dtype)])
        a = w.node("Where", [is_negative, w.node("BitwiseNot", [a]), a])
    places = w.node("Min", [n, w.constant(width - 1, dtype)])
    given = [one if dtype == unsigned else w.cast(one, unsigned) for one in (a, places)]
    made = w.node("BitShift", given, direction="LEFT" if to_left else "RIGHT")
    made = made if dtype == unsigned else w.cast(made, dtype)
    made = w.node("Where", [_is_beyond(w, n, width, dtype), w.constant(0, dtype), made])
    if is_negative is None:
        return made
    return w.node("Where", [is_negative, w.node("BitwiseNot", [made]), made])


def _is_beyond(w: Writer, n: str, width: int, dtype: str) -> str:
    return w.node("Greater", [n, w.constant(width - 1, dtype)])


# ---- near 0 --------------------------------------------------------------------------------------


def expm1(w: Writer, x: str, dtype: str) -> str:
    """`exp(x) - 1` as `tanh(x / 2) (exp(x) + 1)`, which cancels nothing."""
    half = w.node("Tanh", [w.node("Mul", [x, w.constant(0.5, dtype)])])
    return w.node("Mul", [half, w.node("Add", [w.node("Exp", [x]), w.constant(1, dtype)])])


def log1p(w: Writer, x: str, dtype: str) -> str:
    """`log(1 + x)`, near 0 as `2 atanh(x / (2 + x))`, which cancels nothing."""
    near = w.node("Div", [x, w.node("Add", [x, w.constant(2, dtype)])])
    near = w.node("Mul", [w.node("Atanh", [near]), w.constant(2, dtype)])
    far = w.node("Log", [w.node("Add", [x, w.constant(1, dtype)])])
    is_near = w.node("Less", [w.node("Abs", [x]), w.constant(0.5, dtype)])
    return w.node("Where", [is_near, near, far])
