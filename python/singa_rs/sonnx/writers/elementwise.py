"""Operations element by element, and those that turn axes into fewer."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from ..extents import Extent
from ..names import BY_SIGN, COMPARISONS, OF_NUMBERS, OF_ONE, OF_TWO, by_engine
from ..program import Step
from ..table import writes
from ..writing import Writer
from . import activations
from .arithmetic import expm1, floor_divide, log1p, remainder, shifted, typed

#: ONNX's names of the engine's functions of one tensor.
_UNARY = {**by_engine(OF_ONE, BY_SIGN), "gelu": "Gelu"}
#: Of two tensors.
_BINARY = by_engine(OF_TWO, COMPARISONS, OF_NUMBERS)
_LOGICAL = {"and", "or", "xor"}
#: Functions that leave whole numbers as they are.
_ROUNDING = {"ceil", "floor", "round", "rounde", "trunc"}


@writes("unary")
def unary(w: Writer, step: Step) -> str:
    """A function of one tensor."""
    f, x = step.attrs["f"], w.name(step.inputs[0])
    if isinstance(f, dict):
        ((tag, params),) = f.items()
        if tag not in _PARAMETRISED:
            raise NotImplementedError(f"export: {tag}: ONNX has no such function")
        return _PARAMETRISED[tag](w, step, x, **params)
    dtype = w.meta(step.inputs[0]).dtype
    if f in _ROUNDING and "float" not in dtype:
        return w.node("Identity", [x])
    if f in _UNARY:
        return typed(w, _UNARY[f], [x], dtype)
    if f in _COMPOSED:
        return _COMPOSED[f](w, x, dtype)
    raise NotImplementedError(f"export: {f}: ONNX has no such function")


def _round(w: Writer, x: str, dtype: str) -> str:
    """Half away from zero. What is behind the point is compared, as adding a half would round."""
    size = w.node("Abs", [x])
    down = w.node("Floor", [size])
    is_up = w.node("GreaterOrEqual", [w.node("Sub", [size, down]), w.constant(0.5, dtype)])
    found = w.node("Add", [down, w.cast(is_up, dtype)])
    return w.node("Mul", [w.node("Sign", [x]), found])


def _silu(w: Writer, x: str, dtype: str) -> str:
    """`x sigmoid(x)`, for minus infinity as for the least number, whose sigmoid is 0, too."""
    least = w.node("Max", [x, w.constant(float(ml_dtypes.finfo(dtype).min), dtype)])
    return w.node("Mul", [least, w.node("Sigmoid", [least])])


def _log(w: Writer, x: str, dtype: str, base: int) -> str:
    return w.node("Div", [w.node("Log", [x]), w.constant(math.log(base), dtype)])


_COMPOSED: dict[str, Any] = {
    "square": lambda w, x, dtype: w.node("Mul", [x, x]),
    "expm1": expm1,
    "exp2": lambda w, x, dtype: w.node("Pow", [w.constant(2, dtype), x]),
    "log1p": log1p,
    "log2": partial(_log, base=2),
    "log10": partial(_log, base=10),
    "round": _round,
    "silu": _silu,
    "not": lambda w, x, dtype: w.node("Not", [_truth(w, x, dtype)]),
    "bitwise_not": lambda w, x, dtype: w.node("BitwiseNot" if dtype != "bool" else "Not", [x]),
    "isnan": lambda w, x, dtype: w.node("IsNaN", [x]),
    "isinf": lambda w, x, dtype: w.node("IsInf", [x]),
}


def _truth(w: Writer, x: str, dtype: str) -> str:
    return x if dtype == "bool" else w.cast(x, "bool")


def _clip(w: Writer, step: Step, x: str, min: Any, max: Any) -> str:
    """`x` within bounds; one that is left out is infinite, which other runtimes forget."""
    dtype = w.meta(step.inputs[0]).dtype
    given = (-math.inf if min is None else min), (math.inf if max is None else max)
    return w.node("Clip", [x, *(w.scalar(_within(one, dtype), dtype) for one in given)])


def _within(bound: Any, dtype: str) -> Any:
    """A bound of integers as the nearest that their dtype has."""
    if "float" in dtype or isinstance(bound, Extent):
        return bound
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    value = float(bound) if isinstance(bound, str) else bound
    return least if value < least else most if value > most else value


_PARAMETRISED: dict[str, Any] = {**activations.BY_TAG, "clip": _clip}


@writes("binary")
def binary(w: Writer, step: Step) -> str:
    """A function of two tensors."""
    a, b = step.inputs
    y = _broadcast(w, b, len(w.shape(a)))
    x = w.name(a) if y != w.name(b) else _broadcast(w, a, len(w.shape(b)))
    return _two(w, step.attrs["f"], x, y, w.meta(a).dtype)


def _broadcast(w: Writer, value: int, rank: int) -> str:
    """The name of an operand beside one of this rank: without axes of extent 1 in front that it was
    given by a reshape, as broadcasting gives it these, too."""
    (source, have), want = w.source(value), w.shape(value)
    front = len(want) - len(have)
    is_given = 0 < front <= len(want) <= rank and tuple(want) == (1,) * front + tuple(have)
    return source if is_given else w.name(value)


def _two(w: Writer, f: str, a: str, b: str, dtype: str) -> str:
    if dtype == "bool" and f.startswith("bitwise_"):
        f = f.removeprefix("bitwise_")
    if f in _LOGICAL:
        a, b = _truth(w, a, dtype), _truth(w, b, dtype)
    if f in _BINARY:
        return typed(w, _BINARY[f], [a, b], dtype if f not in _LOGICAL else "bool")
    if f == "ne":
        return w.node("Not", [w.node("Equal", [a, b])])
    if f in ("left_shift", "right_shift"):
        return shifted(w, a, b, dtype, f == "left_shift")
    if f in ("floor_divide", "remainder"):
        return (remainder if f == "remainder" else floor_divide)(w, a, b, dtype)
    raise NotImplementedError(f"export: {f} of {dtype}: ONNX has no such function")


@writes("binary_scalar")
def binary_scalar(w: Writer, step: Step) -> str:
    """A function of a tensor and a number."""
    (value,), attrs = step.inputs, step.attrs
    dtype = w.meta(value).dtype
    operands = [w.name(value), w.scalar(attrs["scalar"], dtype)]
    return _two(w, attrs["f"], *(operands[::-1] if attrs["reverse"] else operands), dtype)


@writes("where")
def where(w: Writer, step: Step) -> str:
    """One of two tensors. Other runtimes have no such kernel for bools."""
    condition, x, y = (w.name(one) for one in step.inputs)
    is_first = _truth(w, condition, w.meta(step.inputs[0]).dtype)
    if w.meta(step.outputs[0]).dtype != "bool":
        return w.node("Where", [is_first, x, y])
    first = w.node("And", [is_first, x])
    return w.node("Or", [first, w.node("And", [w.node("Not", [is_first]), y])])


@writes("cast", "convert")
def cast(w: Writer, step: Step) -> str:
    """Another dtype."""
    return w.cast(w.name(step.inputs[0]), step.attrs["dtype"])


@writes("softmax")
def softmax(w: Writer, step: Step) -> str:
    """The softmax along an axis, or its logarithm."""
    kind = "LogSoftmax" if step.attrs["log"] else "Softmax"
    return w.node(kind, [w.name(step.inputs[0])], axis=step.attrs["axis"])


_REDUCTIONS = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "any": "ReduceMax",
    "all": "ReduceMin",
}


@writes("reduce")
def reduce(w: Writer, step: Step) -> str:
    """A reduction over axes."""
    f, axes, keepdims = (step.attrs[name] for name in ("f", "axes", "keepdims"))
    (value,), to = step.inputs, w.meta(step.outputs[0]).dtype
    x = w.name(value)
    if f in ("argmax", "argmin"):
        return _arg(w, step, x, f, axes, keepdims)
    if f in ("any", "all"):
        x = w.cast(_truth(w, x, w.meta(value).dtype), "int32")
    elif w.meta(value).dtype != to:
        x = w.cast(x, to)
    given = [x, w.ints(axes)] if axes else [x]
    made = w.node(_REDUCTIONS[f], given, keepdims=int(keepdims))
    return w.cast(made, "bool") if f in ("any", "all") else made


def _arg(w: Writer, step: Step, x: str, f: str, axes: tuple[int, ...], keepdims: bool) -> str:
    kind = "ArgMax" if f == "argmax" else "ArgMin"
    x = w.cast(x, "int32") if w.meta(step.inputs[0]).dtype == "bool" else x
    if len(axes) == 1:
        return w.node(kind, [x], axis=axes[0], keepdims=int(keepdims))
    if axes and len(axes) != len(w.shape(step.inputs[0])):
        raise NotImplementedError(f"export: {f}: got axes {axes}, want one, or all")
    flat = w.node("Reshape", [x, w.constant([-1], "int64")])
    made = w.node(kind, [flat], axis=0, keepdims=0)
    return w.node("Reshape", [made, w.ints(w.shape(step.outputs[0]))])


@writes("scan")
def scan(w: Writer, step: Step) -> str:
    """A running sum, product or maximum."""
    a = step.attrs
    to, x = w.meta(step.outputs[0]).dtype, w.name(step.inputs[0])
    x = x if w.meta(step.inputs[0]).dtype == to else w.cast(x, to)
    if a["f"] == "max":
        return _running_max(w, step, x, to)
    kind, axis = "CumSum" if a["f"] == "sum" else "CumProd", w.constant(a["axis"], "int64")
    return w.node(kind, [x, axis], exclusive=int(a["exclusive"]), reverse=int(a["reverse"]))


def _running_max(w: Writer, step: Step, x: str, dtype: str) -> str:
    """The greatest of all elements up to each one: with 1, 2, 4, ... neighbours in turn."""
    a, shape = step.attrs, w.shape(step.inputs[0])
    axis = a["axis"] % len(shape)
    if not isinstance(extent := shape[axis], int):
        raise NotImplementedError("export: running maxima along an axis of any size")

    def part(x: str, start: int, end: int, by: int = 1) -> str:
        return w.node("Slice", [x, *(w.ints([n]) for n in (start, end, axis, by))])

    x = part(x, -1, -extent - 1, -1) if a["reverse"] else x
    if a["exclusive"]:
        least = -math.inf if "float" in dtype else np.iinfo(dtype).min
        before = [int(i == axis) for i in range(len(shape))]
        pads = w.ints([*before, *(0 for _ in shape)])
        x = part(w.node("Pad", [x, pads, w.constant(least, dtype)]), 0, extent)
    near = 1
    while near < extent:
        later = w.node("Max", [part(x, near, extent), part(x, 0, extent - near)])
        x = w.node("Concat", [part(x, 0, near), later], axis=axis)
        near *= 2
    return part(x, -1, -extent - 1, -1) if a["reverse"] else x
