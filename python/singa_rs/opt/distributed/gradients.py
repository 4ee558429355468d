"""Gradients on their way from backward to the update, averaged over all ranks bucket by bucket:
while one is exchanged, backward makes the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple, Protocol

from ... import autograd, tensor
from ...autograd.precision import current
from ...dist import buckets
from ...dist.buckets import WINDOW, joined, parts
from ...dist.exchange import all_reduce
from ...dist.sparse import chosen
from ...dist.together import reduced, reduced_into
from ...dist.work import Work
from ...tensor import Tensor
from ..clipping import clip_grad_value
from ..exchange import Exchange, Pair, noting
from ..moments import Moments
from .agreement import Agreement

#: What error feedback keeps of each parameter's gradient: the residual, and the velocity where
#: momentum is corrected. Moments of optimizers have other names.
RESIDUAL, VELOCITY = "exchange_residual", "exchange_velocity"


def check_unscaled(what: str) -> None:
    """Refuses what cannot be undone in a step that the loss scale of float16 skips, or keeps
    gradients that are scaled otherwise than the next ones."""
    if _is_scaled():
        raise ValueError(f"DistOpt: got mixed precision in float16 with {what}, want bfloat16")


def _is_scaled() -> bool:
    """Whether losses are scaled, as in mixed precision in float16."""
    precision = current()
    return precision is not None and precision.scale is not None


class Exchanging(Protocol):
    """Gradients that are being exchanged."""

    def finish(self) -> Iterator[Pair]:
        """Parameters and averaged gradients."""


class Started(NamedTuple):
    """Gradients of one bucket that are being exchanged: `work.wait()` gives their averages."""

    params: list[Tensor]
    work: Work

    def finish(self) -> Iterator[Pair]:
        """Parameters and averaged gradients."""
        grads = list(self.work.wait())
        while self.params:
            yield self.params.pop(0), grads.pop(0)


def filled(
    pairs: Iterable[Pair],
    limit: int,
    agreed: Agreement,
    kind: Callable[[Pair], Hashable] = lambda pair: None,
) -> Iterator[list[Pair]]:
    """Pairs in buckets of one dtype, and of one `kind`, in the order in which gradients become
    final: see `buckets.filled`. All ranks agree on them."""
    made = buckets.filled(
        pairs, limit, lambda pair: pair[1].numel, lambda pair: (pair[1].dtype, kind(pair))
    )
    for bucket in made:
        agreed.check([param for param, _ in bucket])
        yield bucket
        del bucket


def in_order(pairs: Iterable[Pair], order: Iterable[Tensor]) -> Iterator[Pair]:
    """Pairs in the order that their parameters have in `order`, for which those that come too
    early wait. Those of other parameters pass."""
    due, early = deque(map(id, order)), dict[int, Pair]()
    known = set(due)
    for pair in pairs:
        key, ready = id(pair[0]), [pair]
        del pair
        if key not in known:
            yield ready.pop()
            continue
        early[key] = ready.pop()
        while due and due[0] in early:
            yield early.pop(due.popleft())
    for key in due:
        if key in early:
            yield early.pop(key)


def windowed(started: Iterable[Exchanging]) -> Iterator[Pair]:
    """The pairs of buckets, each of which is waited for after later ones were started."""
    pending: deque[Exchanging] = deque()
    for one in started:
        pending.append(one)
        del one
        if len(pending) > WINDOW:
            yield from pending.popleft().finish()
    while pending:
        yield from pending.popleft().finish()


def started(pairs: list[Pair], wire: str = "dense") -> Started:
    """A bucket whose gradients are exchanged whole; `wire` is that of `dist.all_reduce`."""
    work = reduced([grad for _, grad in pairs], wire=wire)
    params = [param for param, _ in pairs]
    pairs.clear()
    return Started(params, work)


def averages(
    limit: int, agreed: Agreement, start: Callable[[list[Pair]], Exchanging] = started
) -> Callable[[Iterable[Pair]], Iterator[Pair]]:
    """What takes parameters with gradients to those averaged over all ranks.

    Args:
        limit, agreed: as those of `filled`.
        start: begins to exchange the gradients of a bucket, which it empties.
    """
    return lambda pairs: windowed(start(bucket) for bucket in filled(pairs, limit, agreed))


class Clipped(Exchange):
    """Averages of gradients that each rank has clipped. Whether they are finite is asked of the
    gradients before clipping, which would hide it."""

    def __init__(self, limit: float, passed: Callable[[Iterable[Pair]], Iterable[Pair]]) -> None:
        """`passed`: what becomes of the clipped ones."""
        super().__init__(passed)
        self._limit, self._is_noted = limit, _is_scaled()
        self._found: list[Tensor] = []

    def __call__(self, pairs: Iterable[Pair]) -> Iterable[Pair]:
        """Parameters and averages, as of `averages`."""
        own = noting(pairs, self._note) if self._is_noted else pairs
        return super().__call__(clip_grad_value(own, self._limit))

    def _note(self, _: Tensor, grad: Tensor) -> None:
        with autograd.no_grad():
            self._found.append(autograd.all(autograd.isfinite(grad)))

    def on_all(self, is_finite: Tensor) -> Tensor:
        """Whether it holds, and the gradients of all ranks are finite."""
        own = autograd.all(autograd.stack([is_finite, *self._found]))
        return on_all(own)


def on_all(holds: Tensor) -> Tensor:
    """Whether a condition that holds here, as the argument says, holds on all ranks."""
    return all_reduce(autograd.cast(holds, tensor.int32), "min") > 0


def on_any(holds: Tensor) -> Tensor:
    """Whether each of some conditions holds on any rank."""
    return all_reduce(autograd.cast(holds, tensor.int32), "max") > 0


class Sparsified:
    """Averages of what each rank chooses of its gradients; the rest is kept for later steps, where
    there is a place to keep it (error feedback, as in Lin et al., 2018).

    With `momentum`, each rank's gradients pass through momentum before they are kept and chosen,
    so that what arrives late arrives as it would have with momentum in the update, which then must
    have none (momentum correction). What was chosen starts anew (momentum factor masking).
    """

    def __init__(self, spars: float, top_k: bool, kept: Moments | None, momentum: float) -> None:
        """`spars`, `top_k`: as those of `sparse.chosen`."""
        self._spars, self._top_k, self._kept, self._momentum = spars, top_k, kept, momentum

    def __call__(self, pairs: list[Pair]) -> Started:
        """Begins to exchange the gradients of a bucket."""
        params, grads = [list(ones) for ones in zip(*pairs, strict=True)]
        pairs.clear()
        with autograd.no_grad():
            if self._momentum:
                grads = [self._velocity(*pair) for pair in zip(params, grads, strict=True)]
            if self._kept is not None:
                grads = [self._with_rest(*pair) for pair in zip(params, grads, strict=True)]
            found = chosen(joined(grads), self._spars, self._top_k)
            ways = parts(found, [grad.shape for grad in grads])
            for param, grad, sent in zip(params, grads, ways, strict=True):
                self._keep_rest(param, grad, sent)
        return Started(params, reduced_into(ways, ways, wire="sparse"))

    def _velocity(self, param: Tensor, grad: Tensor) -> Tensor:
        velocity = self._kept.of(param, param.name, VELOCITY)
        velocity.copy_from(velocity * self._momentum + grad)
        return velocity

    def _with_rest(self, param: Tensor, grad: Tensor) -> Tensor:
        return (grad + self._kept.of(param, param.name, RESIDUAL)).as_type(grad.dtype)

    def _keep_rest(self, param: Tensor, grad: Tensor, sent: Tensor) -> None:
        if self._kept is not None:
            self._kept.of(param, param.name, RESIDUAL).copy_from(grad - sent)
        if self._momentum:
            velocity = self._kept.of(param, param.name, VELOCITY)
            velocity.copy_from(autograd.where(sent == 0, velocity, 0.0))
