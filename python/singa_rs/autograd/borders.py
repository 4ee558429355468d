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
    first = ops.part(dy, axis, 0, before)
    last = ops.part(dy, axis, before + n, before + n + after)
    if mode == "wrap":
        strips = [(0, after, last), (n - before, before, first)]
    else:
        at = n - skipped - after
        first, last = ops.turned(first, axis), ops.turned(last, axis)
        strips = [(int(skipped), before, first), (at, after, last)]
    made = ops.part(dy, axis, before, before + n)
    strips = [strip for strip in strips if strip[1]]
    if len(strips) == 2 and strips[0][0] + strips[0][1] > strips[1][0]:  # they overlap
        made = _added(made, axis, strips[:1])
        strips = strips[1:]
    return _added(made, axis, strips)


def _added(x: Tensor, axis: int, strips: list[tuple[int, int, Tensor]]) -> Tensor:
    """`x` with strips added one after another, each with its start and extent along an axis."""
    parts, end = [], 0
    for start, count, strip in strips:
        parts.append(ops.part(x, axis, end, start))
        end = start + count
        parts.append(ops.add(ops.part(x, axis, start, end), strip))
    return ops.joined([*parts, ops.part(x, axis, end, x.shape[axis])], axis)


def _edges(dy: Tensor, axis: int, n: int, before: int, after: int) -> Tensor:
    """`unpadded` where both borders repeat the outermost elements."""
    over = ops.op("reduce", f="sum", axes=(axis,), keepdims=True)
    if n == 1:
        return over(dy)
    start, end = before + 1, before + n - 1
    first, last = ops.part(dy, axis, 0, start), ops.part(dy, axis, end, end + after + 1)
    return ops.joined([over(first), ops.part(dy, axis, start, end), over(last)], axis)
