"""Views, copies and what fills tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..extents import Extent, Number, Reciprocal, plus, times
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
    (value,) = step.inputs
    made = sliced(w, value, of["ranges"], of["bounds"])
    if of["dropped"]:
        return w.node("Squeeze", [made, w.ints(of["dropped"])])
    if made == w.name(value):
        w.sources[step.outputs[0]] = w.source(value)
    return made


#: The bounds of a slice, as Python has them.
_Bounds = tuple[Number | None, Number | None]


def sliced(
    w: Writer,
    value: int,
    ranges: tuple[tuple[Number, Number, Number], ...],
    bounds: Sequence[_Bounds | None] = (),
) -> str:
    """Parts along the axes that are not whole; of slices the bounds may be known, too."""
    columns = []
    known = itertools.zip_longest(ranges, w.shape(value), bounds)
    for axis, ((start, count, step), extent, own) in enumerate(known):
        if start == 0 and step == 1 and count == extent:
            continue
        backwards = _goes_backwards(step)
        is_fixed = all(isinstance(one, int) for one in (start, count, extent))
        if own is None or is_fixed:
            begin, end = start, _end(start, plus(start, times(count, step)), backwards, extent)
        else:
            begin, end = _as_given(own, backwards)
        columns.append((begin, end, axis, step))
    if not columns:
        return w.name(value)
    return w.node(
        "Slice", [w.name(value), *(w.ints(column) for column in zip(*columns, strict=True))]
    )


def _goes_backwards(step: Number) -> bool:
    factors = step.terms.values() if isinstance(step, Extent) else [step]
    if min(factors) < 0 < max(factors):
        raise NotImplementedError(f"export: a slice of step {step}: its sign depends on the sizes")
    return min(factors) < 0


def _as_given(bounds: _Bounds, backwards: bool) -> tuple[Number, Number]:
    """A slice's bounds, which ONNX takes as Python does: also where they are beyond the axis."""
    first, last = (2**62, -(2**62)) if backwards else (0, 2**62)
    begin, end = bounds
    return first if begin is None else begin, last if end is None else end


def _end(start: Number, end: Number, backwards: bool, extent: Number) -> Number:
    """Where a range ends, as ONNX counts."""
    if isinstance(start, int) and start < 0:  # one place, counted from the end
        return end or 2**62
    if not isinstance(end, Extent):
        return -(2**62) if end < 0 else end
    if backwards:  # before the first element, which -1 would not say
        return plus(end, times(extent, -1))
    return 2**62 if end == extent else end


@writes("concat")
def concat(w: Writer, step: Step) -> str:
    """Tensors one after another."""
    return w.node("Concat", [w.name(one) for one in step.inputs], axis=step.attrs["axis"])


@writes("fill")
def fill(w: Writer, step: Step) -> str:
    """A tensor of one value."""
    value, shape, dtype = (step.attrs[name] for name in ("value", "shape", "dtype"))
    is_small = all(isinstance(n, int) for n in shape) and math.prod(shape) <= 1
    if is_small and not isinstance(value, (Extent, Reciprocal)):
        return w.constant(np.full(shape, value), dtype)
    return w.node("Expand", [w.scalar(value, dtype), w.ints(shape)])


@writes("arange")
def arange(w: Writer, step: Step) -> str:
    """Numbers a step apart."""
    a = step.attrs
    start, by, dtype = a["start"], a["step"], a["dtype"]
    counts = w.node("Range", [w.scalar(one, "int64") for one in (0, a["count"], 1)])
    made = counts if dtype == "int64" else w.cast(counts, dtype)
    made = made if by == 1 else w.node("Mul", [made, w.scalar(by, dtype)])
    return made if start == 0 else w.node("Add", [made, w.scalar(start, dtype)])
