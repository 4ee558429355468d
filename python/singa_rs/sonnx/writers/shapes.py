"""Views, copies and what fills tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..extents import Extent, Number
from ..program import Step
from ..table import writes
from ..writing import Writer


@writes("copy")
def copy(w: Writer, step: Step) -> str:
    """The same elements."""
    w.sources[step.outputs[0]] = w.source(step.inputs[0])
    return w.name(step.inputs[0])


@writes("view_reshape")
def reshape(w: Writer, step: Step) -> str:
    """Another shape. A tensor that is reshaped several times is reshaped once; back to what it was,
    not at all."""
    source, have = w.sources[step.outputs[0]] = w.source(step.inputs[0])
    return w.reshape(source, have, w.shape(step.outputs[0]))


@writes("view_permute")
def permute(w: Writer, step: Step) -> str:
    """Another order of axes."""
    return w.node("Transpose", [w.name(step.inputs[0])], perm=step.attrs["of"])


@writes("view_expand")
def expand(w: Writer, step: Step) -> str:
    """Repeated along axes of extent 1."""
    x, have, want = step.inputs[0], w.shape(step.inputs[0]), w.shape(step.outputs[0])
    aligned = (1,) * (len(want) - len(have)) + tuple(have)
    to = [1 if a == b else b for a, b in zip(aligned, want, strict=True)]
    return w.node("Expand", [w.name(x), w.ints(to)])


@writes("view_slice")
def slice_(w: Writer, step: Step) -> str:
    """Elements from a start on, a step apart, along each axis."""
    return sliced(w, step.inputs[0], step.attrs["of"])


@writes("view_index")
def index(w: Writer, step: Step) -> str:
    """As `slice_`, without the axes at which one place is selected."""
    of = step.attrs["of"]
    made = sliced(w, step.inputs[0], of["ranges"])
    return w.node("Squeeze", [made, w.ints(of["dropped"])]) if of["dropped"] else made


def sliced(w: Writer, value: int, ranges: tuple[tuple[Number, Number, Number], ...]) -> str:
    """Parts along the axes that are not whole."""
    shape, columns = w.shape(value), []
    for axis, ((start, count, step), extent) in enumerate(zip(ranges, shape, strict=True)):
        if start == 0 and step == 1 and count == extent:
            continue
        columns.append((start, _end(start, count, step, extent), axis, step))
    if not columns:
        return w.name(value)
    return w.node(
        "Slice", [w.name(value), *(w.ints(column) for column in zip(*columns, strict=True))]
    )


def _end(start: Number, count: Number, step: Number, extent: Number) -> Number:
    """Where a range ends, as ONNX counts."""
    if isinstance(step, Extent):
        raise NotImplementedError("export: a slice whose step depends on the sizes")
    end = _plus(start, _times(count, step))
    if not isinstance(end, Extent):
        return -(2**62) if end < 0 else end
    return 2**62 if step > 0 and end == extent else end


def _times(a: Number, factor: int) -> Number:
    if isinstance(a, Extent):
        return Extent({names: one * factor for names, one in a.terms.items()})
    return a * factor


def _plus(a: Number, b: Number) -> Number:
    if not isinstance(a, Extent) and not isinstance(b, Extent):
        return a + b
    terms: dict[tuple[str, ...], int] = {}
    for one in (a, b):
        for names, factor in one.terms.items() if isinstance(one, Extent) else [((), one)]:
            terms[names] = terms.get(names, 0) + factor
    made = Extent(terms)
    return made if any(names for names in made.terms) else made.at({})


@writes("concat")
def concat(w: Writer, step: Step) -> str:
    """Tensors one after another."""
    return w.node("Concat", [w.name(one) for one in step.inputs], axis=step.attrs["axis"])


@writes("fill")
def fill(w: Writer, step: Step) -> str:
    """A tensor of one value."""
    value, shape, dtype = (step.attrs[name] for name in ("value", "shape", "dtype"))
    if all(isinstance(n, int) for n in shape) and math.prod(shape) <= 1:
        return w.constant(np.full(shape, value), dtype)
    one = w.constant(np.full((1,) * len(shape), value), dtype)
    return w.node("Expand", [one, w.ints(shape)])


@writes("arange")
def arange(w: Writer, step: Step) -> str:
    """Numbers a step apart."""
    a = step.attrs
    start, by = (_exact(a[name]) for name in ("start", "step"))
    counts = w.node("Range", [w.scalar(one, "int64") for one in (0, a["count"], 1)])
    dtype = a["dtype"]
    made = counts if dtype == "int64" else w.cast(counts, dtype)
    made = made if by == 1 else w.node("Mul", [made, w.constant(by, dtype)])
    return made if start == 0 else w.node("Add", [made, w.constant(start, dtype)])


def _exact(value: Any) -> int | float:
    if isinstance(value, Extent):
        raise NotImplementedError("export: arange: a start or step that depends on the sizes")
    return value


@writes("write copy")
def write_copy(w: Writer, step: Step) -> str:
    """A copy into a part of a tensor: padding, where the tensor is filled with one value."""
    whole = step.before
    maker, shape = w.makers.get(whole), w.shape(whole)
    begins = _begins(step, shape)
    if maker is None or maker.name != "fill" or begins is None:
        raise NotImplementedError("export: a write into a part of a tensor that is not all alike")
    part = w.shape(step.inputs[0])
    ends = [_plus(n, _times(_plus(b, m), -1)) for n, b, m in zip(shape, begins, part, strict=True)]
    value = w.constant(maker.attrs["value"], w.meta(whole).dtype)
    return w.node("Pad", [w.name(step.inputs[0]), w.ints([*begins, *ends]), value])


def _begins(step: Step, shape: tuple[Number, ...]) -> list[Number] | None:
    """Where a part with the strides of the whole begins along each axis; None for another part."""
    left, found, stride = step.attrs["start"], [], 1
    if any(isinstance(n, Extent) for n in (left, *shape[1:], *step.attrs["strides"])):
        return None
    for extent, have in zip(shape[:0:-1], step.attrs["strides"][::-1], strict=False):
        if have != stride:
            return None
        found.append(left // stride % extent)
        stride *= extent
    return [left // stride, *found[::-1]]
