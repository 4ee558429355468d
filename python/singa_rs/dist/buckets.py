"""Tensors that are exchanged together, in one block."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from math import prod
from typing import TypeVar

from ..tensor import Tensor

#: How many buckets may be on their way before the first of them is waited for: enough to overlap,
#: and few, as each takes memory until its parameters are updated.
WINDOW = 8


_T = TypeVar("_T")


def filled(
    items: Iterable[_T],
    limit: int,
    numel: Callable[[_T], int],
    kind: Callable[[_T], Hashable],
) -> Iterator[list[_T]]:
    """Items in buckets, in their order: those of one `kind`, until they have more than `limit`
    elements together. A larger item is a bucket of its own."""
    unfilled: dict[Hashable, list[_T]] = {}
    counts: dict[Hashable, int] = {}
    for item in items:
        if numel(item) > limit:
            ready = [item]
            del item  # so that its memory is free once it is copied
            yield ready
            continue
        key = kind(item)
        unfilled.setdefault(key, []).append(item)
        counts[key] = counts.get(key, 0) + numel(item)
        del item
        if counts[key] > limit:
            del counts[key]
            yield unfilled.pop(key)
    yield from unfilled.values()


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """Copies of tensors of one dtype, one after the other in a tensor of one axis."""
    count, first = sum(one.numel for one in tensors), tensors[0]
    flat = Tensor((count,), first.device, first.dtype, requires_grad=False)
    for part, one in zip(parts(flat, [one.shape for one in tensors]), tensors, strict=True):
        part.copy_from(one)
    return flat


def parts(flat: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """Views of these shapes, one after the other, of a tensor's first elements."""
    return list(_parts(flat, shapes))


def _parts(flat: Tensor, shapes: Sequence[tuple[int, ...]]) -> Iterator[Tensor]:
    start = 0
    for shape in shapes:
        count = prod(shape)
        yield flat.view_slice(((start, count, 1),)).view_reshape(tuple(shape))
        start += count
