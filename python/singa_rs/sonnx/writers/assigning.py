"""Writes into a part of a tensor, each of which makes a new value of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..extents import Extent, Number, plus, times
from ..program import Step
from ..regions import places
from ..table import writes
from ..writing import Writer


class _Range(NamedTuple):
    """A part along an axis of the whole."""

    axis: int
    extent: Number
    begin: Number
    size: Number
    step: Number

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the axis, in order."""
        return self[2:] == (0, self.extent, 1)


@writes("write")
def write(w: Writer, step: Step) -> str:
    """The whole with a part written into it: padding, if the whole is filled with one value."""
    (whole, part), ranges = step.inputs, step.attrs["ranges"]
    if ranges is None:
        return _scattered(w, step)
    pairs = enumerate(zip(w.shape(whole), ranges, strict=True))
    axes = [_Range(at, extent, *of) for at, (extent, of) in pairs]
    x, shape = w.name(part), w.shape(part)
    if order := step.attrs.get("order"):
        x, shape = w.node("Transpose", [x], perm=order), tuple(shape[axis] for axis in order)
    x = w.reshape(x, shape, [one.size for one in axes])
    maker = w.makers.get(whole)
    if maker is not None and maker.name == "fill" and all(one.step == 1 for one in axes):
        value = w.constant(maker.attrs["value"], w.meta(whole).dtype)
        return w.node("Pad", [x, w.ints(_pads(axes)), value])
    return _joined(w, w.name(whole), x, axes)


def _pads(axes: Sequence[_Range]) -> list[Number]:
    """How much of the whole is before and behind a part."""
    begins = [one.begin for one in axes]
    ends = [plus(one.extent, times(plus(one.begin, one.size), -1)) for one in axes]
    return [*begins, *ends]


def _joined(w: Writer, whole: str, part: str, axes: Sequence[_Range]) -> str:
    """A whole with a part in place of ranges along some axes: along the first that is not taken as
    it is, what is there of the whole becomes what is written there, by the other axes."""
    open_ones = [one for one in axes if not one.is_whole]
    if not open_ones:
        return part
    first, *others = open_ones
    if first.step != 1:
        return _woven(w, whole, part, first, others)
    begin, end = first.begin, plus(first.begin, first.size)
    inner = _cut(w, whole, first.axis, begin, end) if others else whole
    rows = [_joined(w, inner, part, others)]
    if begin != 0:
        rows.insert(0, _cut(w, whole, first.axis, 0, begin))
    if end != first.extent:
        rows.append(_cut(w, whole, first.axis, end, first.extent))
    return w.node("Concat", rows, axis=first.axis)


def _cut(w: Writer, x: str, axis: int, begin: Number, end: Number) -> str:
    return w.node("Slice", [x, *(w.ints([one]) for one in (begin, end, axis))])


def _woven(w: Writer, whole: str, part: str, first: _Range, others: Sequence[_Range]) -> str:
    """As `_joined`, where the first axis is taken in steps: its places are gathered from the whole
    and what is written, one behind the other."""
    at, *numbers = first
    if any(isinstance(one, Extent) for one in numbers):
        raise NotImplementedError(
            "export: a write in steps along an axis whose size, or part, depends on the sizes"
        )
    extent, begin, size, step = (int(one) for one in numbers if isinstance(one, int))
    taken = np.arange(size, dtype=np.int64)
    inner = w.node("Gather", [whole, w.constant(begin + taken * step)], axis=at) if others else ""
    rows = w.node("Concat", [whole, _joined(w, inner, part, others)], axis=at)
    order = np.arange(extent, dtype=np.int64)
    order[begin + taken * step] = extent + taken
    return w.node("Gather", [rows, w.constant(order)], axis=at)


def _scattered(w: Writer, step: Step) -> str:
    """A part that is none of ranges, such as a view in another shape: element by element."""
    a, shape = step.attrs, w.shape(step.inputs[0])
    numbers = (a["offset"], *a["shape"], *a["strides"], *shape)
    if any(isinstance(one, Extent) for one in numbers):
        raise NotImplementedError(
            "export: a write into a part, whose shape depends on the sizes, of a tensor that is "
            "seen in another shape or order"
        )
    flat = w.constant(np.array([-1], np.int64))
    whole, part = (w.node("Reshape", [w.name(x), flat]) for x in step.inputs)
    at = w.constant(places(a["offset"], a["shape"], a["strides"]))
    made = w.node("ScatterElements", [whole, at, part])
    return w.node("Reshape", [made, w.ints(shape)], allowzero=int(0 in shape) or None)
