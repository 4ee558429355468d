"""The gradient of padding by an axis's own elements: its interior, to which both borders are added
as strips, which is faster than adding up element by element."""

from __future__ import annotations

from ..tensor import Tensor
from . import ops


def unpadded(dy: Tensor, axis: int, n: int, before: int, after: int, mode: str) -> Tensor | None:
    """What reaches each of `n` elements along an axis from `before + n + after`, filled by `mode`
    of NumPy's pad; None where a border is longer than what it repeats."""
    if mode == "edge":
        return _edges(dy, axis, n, before, after)
    skipped = mode == "reflect"  # the outermost element, by a reflection
    if max(before, after) > n - skipped:
        return None
    first, last = _part(dy, axis, 0, before), _part(dy, axis, before + n, after)
    if mode == "wrap":
        strips = [(0, after, last), (n - before, before, first)]
    else:
        at = n - skipped - after
        first, last = _turned(first, axis), _turned(last, axis)
        strips = [(int(skipped), before, first), (at, after, last)]
    made = _part(dy, axis, before, n)
    strips = [strip for strip in strips if strip[1]]
    if len(strips) == 2 and strips[0][0] + strips[0][1] > strips[1][0]:  # they overlap
        made = _added(made, axis, strips[:1])
        strips = strips[1:]
    return _added(made, axis, strips)


def _part(x: Tensor, axis: int, start: int, count: int) -> Tensor:
    """A view of `count` positions along an axis."""
    ranges = [(0, extent, 1) for extent in x.shape]
    ranges[axis] = (start if count else 0, count, 1)
    return x.view_slice(ranges)


def _turned(x: Tensor, axis: int) -> Tensor:
    """A view with an axis in the opposite order."""
    ranges = [(0, extent, 1) for extent in x.shape]
    if ranges[axis][1]:
        ranges[axis] = (x.shape[axis] - 1, x.shape[axis], -1)
    return x.view_slice(ranges)


def _added(x: Tensor, axis: int, strips: list[tuple[int, int, Tensor]]) -> Tensor:
    """`x` with strips added one after another, each with its start and extent along an axis."""
    parts, end = [], 0
    for start, count, strip in strips:
        parts += [_part(x, axis, end, start - end), ops.add(_part(x, axis, start, count), strip)]
        end = start + count
    parts.append(_part(x, axis, end, x.shape[axis] - end))
    return _joined(parts, axis)


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    """The parts along an axis that have any positions there."""
    return ops.op("concat", axis=axis)(*(part for part in parts if part.shape[axis]))


def _edges(dy: Tensor, axis: int, n: int, before: int, after: int) -> Tensor:
    """`unpadded` where both borders repeat the outermost elements."""
    over = ops.op("reduce", f="sum", axes=(axis,), keepdims=True)
    if n == 1:
        return over(dy)
    first, last = _part(dy, axis, 0, before + 1), _part(dy, axis, before + n - 1, after + 1)
    return _joined([over(first), _part(dy, axis, before + 1, n - 2), over(last)], axis)
