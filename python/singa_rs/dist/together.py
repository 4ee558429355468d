"""Exchanges of several tensors of one dtype at once: of their elements, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..tensor import Tensor
from .exchange import dense, new, reduction
from .group import current
from .work import Work


def reduced(tensors: Sequence[Tensor], op: str = "mean", wire: str | None = None) -> Work:
    """Combinations of the tensors of all ranks, element by element; `wait` returns them as new
    tensors. The given ones may be dropped meanwhile.

    Args:
        op, wire: as those of `dist.all_reduce`.
    """
    made = [new(one.shape, one) for one in tensors]
    spec = reduction("all_reduce", op, wire)
    return Work(spec, [dense(one) for one in tensors], made, lambda: made)


def reduced_into(
    tensors: Sequence[Tensor], to: Sequence[Tensor], op: str = "mean", wire: str | None = None
) -> Work:
    """As `reduced`, into existing tensors of as many elements, which `wait` returns."""
    made, result = _receivers(to)
    spec = reduction("all_reduce", op, wire)
    return Work(spec, [dense(one) for one in tensors], made, result)


def scattered(tensors: Sequence[Tensor], op: str = "mean") -> Work:
    """This rank's share of the combinations of all ranks; `wait` returns it as a tensor of one
    axis. Shares are equally large, for which zeros are added at the end."""
    count = sum(one.numel for one in tensors)
    share = new((-(-count // current().place.size),), tensors[0])
    spec = reduction("reduce_scatter", op)
    return Work(spec, [dense(one) for one in tensors], [share], lambda: share)


def gathered(share: Tensor, to: Sequence[Tensor], of: int = 0) -> Work:
    """Writes the shares of all ranks, one after the other, into tensors, which `wait` returns. What
    the tensors have no room for is dropped. Ranks that give another number `of` are refused."""
    made, result = _receivers(to)
    return Work({"op": "all_gather", "of": of}, [share], made, result)


def _receivers(to: Sequence[Tensor]) -> tuple[list[Tensor], Callable[[], Sequence[Tensor]]]:
    """The tensors, or others without gaps in their place; and what copies these, and returns the
    tensors."""
    made = [one if one.is_contiguous() else new(one.shape, one) for one in to]

    def result() -> Sequence[Tensor]:
        for own, one in zip(made, to, strict=True):
            if own is not one:
                one.copy_from(own)
            one._overwritten(one)
        return to

    return made, result
