"""States of divided updates as those of one process, for any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import autograd
from ...dist.exchange import new
from ...dist.together import gathered, reduced
from ...layer.check import mapping
from ...layer.collect import staged
from ...tensor import Tensor
from ..base import Optimizer
from ..hyperparameters import SUMS
from .sharded import Share, Shares


def gathered_states(optimizer: Optimizer, shares: Shares) -> dict[str, Any]:
    """`optimizer.get_states()`, where all ranks' shares of moments become those of parameters. All
    ranks call it. Sums of gradients are averages over the ranks."""
    states, kinds = optimizer.get_states(), (*optimizer.moment_kinds, SUMS)
    own = {optimizer._moments.name_of(share.tensor) for share in shares.found.values()}
    for kind in kinds:
        named = {name: one for name, one in states.pop(kind, {}).items() if name not in own}
        if kind == SUMS:
            named |= _averaged(optimizer, {id(share.tensor) for share in shares.found.values()})
        for share in shares.found.values():
            named |= _gathered(share, optimizer, kind)
        if named:
            states[kind] = named
    return states


def _averaged(optimizer: Optimizer, shares: set[int]) -> dict[str, Tensor]:
    """Sums of whole gradients, each of which a rank has of its own batches; what is no share."""
    kept = optimizer._moments.kept(SUMS).values()
    made: dict[str, Tensor] = {}
    with autograd.no_grad():
        for param, total in kept:
            if id(param) in shares:
                continue
            (mean,) = reduced([total]).wait()
            made[optimizer._moments.name_of(param)] = mean
    return made


def _gathered(share: Share, optimizer: Optimizer, kind: str) -> dict[str, Tensor]:
    """The moments of a bucket's parameters, if there are any of this kind."""
    found = optimizer._moments.made(share.tensor, [kind])
    if not found:
        return {}
    with autograd.no_grad():
        to = [new(shape, found[0]) for shape in share.layout.shapes]
        return dict(zip(share.names(optimizer), gathered(found[0], to).wait(), strict=True))


def divided_states(
    op: str, optimizer: Optimizer, shares: Shares, states: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Callable[[], None]]]:
    """What the optimizer takes of states of whole parameters, and functions that write the rest:
    this rank's part into the moments of shares.

    Raises:
        ShapeError, TypeError: a value that does not fit.
    """
    left, writes = dict(states), []
    for kind in (*optimizer.moment_kinds, SUMS):
        if kind not in left:
            continue
        named = dict(mapping(left[kind], f"{op}: {kind}"))
        for share in shares.found.values():
            for moment in optimizer._moments.made(share.tensor, [kind]):
                found = [named.pop(name, None) for name in share.names(optimizer)]
                writes.append(_write(f"{op}: {kind}", shares.rank, share, moment, found))
        left[kind] = named
    return left, writes


def _write(
    what: str, rank: int, share: Share, moment: Tensor, found: list[Any]
) -> Callable[[], None]:
    """A function that copies this rank's part of values into a moment."""
    with autograd.no_grad():
        fits = {}
        for index, (param, value) in enumerate(zip(share.params, found, strict=True)):
            if value is not None:
                target = new(param.shape, moment)
                target.copy_from(staged(what, {param.name: (target, value)})[param.name])
                fits[index] = target

    def write() -> None:
        with autograd.no_grad():
            for piece in share.layout.pieces(rank):
                if piece.index in fits:
                    piece.within(moment).copy_from(piece.of(fits[piece.index]))

    return write


def copied(one: Tensor) -> Tensor:
    """A copy of a tensor."""
    with autograd.no_grad():
        return one.clone()
