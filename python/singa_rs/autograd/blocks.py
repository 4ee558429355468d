"""Work cut into blocks, so that temporary memory does not grow with a product of extents."""

from __future__ import annotations

#: How many elements the temporary tensor of a block has, unless a single entry has more.
BLOCK = 1 << 20


def blocks(count: int, each: int) -> list[slice]:
    """The slices, at least one, that cut `count` entries of `each` elements into blocks."""
    step = max(1, BLOCK // max(each, 1))
    return [slice(i, min(i + step, count)) for i in range(0, max(count, 1), step)]
