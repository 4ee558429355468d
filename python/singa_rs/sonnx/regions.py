"""Which elements of a tensor a part of it is, as programs write into one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..tensor import Tensor

#: By axis of the whole: where a part begins, how many places it has, and how far they are apart.
Ranges = tuple[tuple[int, int, int], ...]


def region(whole: Tensor, part: Tensor) -> dict[str, Any]:
    """The `ranges` of a part of a whole that lies in order, with the `order` of the part's axes in
    the whole if that is another one; if it is none of ranges, None, and the part's `offset`,
    `shape` and `strides` within it.

    Raises:
        NotImplementedError: the part reaches beyond the whole.
    """
    offset = part.offset - whole.offset
    if part.numel:
        _check_within(whole, part, offset)
    order = _order(part)
    ranges = _ranges(whole, part.view_permute(order), offset)
    if ranges is not None and order != tuple(range(part.rank)):
        return {"ranges": ranges, "order": order}
    ranges = ranges or _ranges(whole, part, offset)
    if ranges is not None:
        return {"ranges": ranges}
    if part.numel == whole.numel and part.is_contiguous():  # in another shape
        return {"ranges": tuple((0, n, 1) for n in whole.shape)}
    return {"ranges": None, "offset": offset, "shape": part.shape, "strides": part.strides}


def _order(part: Tensor) -> tuple[int, ...]:
    """The axes of a part, those first along which elements are furthest apart. Of one of extent 1
    its stride may not tell; it is then likelier to be an outer one."""
    known = list(zip(part.strides, part.shape, strict=True))
    return tuple(sorted(range(part.rank), key=lambda i: (-abs(known[i][0]), known[i][1] != 1)))


def _check_within(whole: Tensor, part: Tensor, offset: int) -> None:
    """Wholes lie in order, and no part reaches beyond them: others would be written as they are."""
    moves = [(n - 1) * step for n, step in zip(part.shape, part.strides, strict=True)]
    least = offset + sum(one for one in moves if one < 0)
    most = offset + sum(one for one in moves if one > 0)
    if not whole.is_contiguous() or least < 0 or most >= whole.numel:
        raise NotImplementedError(
            f"export: got a write into a part of shape {part.shape} that is not within what is "
            f"known of its tensor, of shape {whole.shape}"
        )


def _ranges(whole: Tensor, part: Tensor, offset: int) -> Ranges | None:
    """A range along each axis of the whole, whose own axes are in the part's order."""
    if not part.numel:
        return tuple((0, n, 1) for n in part.shape) if part.rank == whole.rank else None
    found = [[offset // w % n, 1, 1] for n, w in zip(whole.shape, whole.strides, strict=True)]
    last = -1
    for at, (count, stride) in enumerate(zip(part.shape, part.strides, strict=True)):
        axis = _axis(whole, part, at)
        if axis is None and count == 1:
            continue
        if axis is None or axis <= last or stride % whole.strides[axis]:
            return None
        begin, step = found[axis][0], stride // whole.strides[axis]
        if not 0 <= begin + step * (count - 1) < whole.shape[axis]:
            return None
        found[axis][1:] = count, step
        last = axis
    return tuple((begin, count, step) for begin, count, step in found)


def _axis(whole: Tensor, part: Tensor, at: int) -> int | None:
    """The axis of the whole along which one of a part goes; None if it goes nowhere. In a part of
    as many axes, one of extent 1 has its own, so that its step is that of other sizes."""
    stride = abs(part.strides[at])
    if part.shape[at] == 1:
        is_own = part.rank == whole.rank and stride % whole.strides[at] == 0 and stride
        return at if is_own else None
    known = zip(whole.shape, whole.strides, strict=True)
    return next((i for i, (n, own) in enumerate(known) if own <= stride < own * n), None)


def places(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """The positions of a part's elements among those of the whole, in the part's order."""
    found = np.full(shape, offset, np.int64)
    for axis, (count, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(count, dtype=np.int64) * stride
        found += steps.reshape(-1, *(1,) * (len(shape) - axis - 1))
    return found.reshape(math.prod(shape))
