"""Updates that are divided among the ranks (ZeRO: Rajbhandari et al., 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import NamedTuple

import numpy as np

from ... import autograd, tensor
from ...dist.ahead import gathering
from ...dist.exchange import all_reduce, new
from ...dist.together import gathered, scattered
from ...dist.units import Unit
from ...dist.work import Work
from ...errors import ShapeError
from ...record import making_state, once_run
from ...tensor import Tensor
from ..base import Optimizer
from ..exchange import Exchange, Pair, noting
from ..hyperparameters import SUMS
from ..scaling import averaged_over
from .agreement import Agreement
from .gradients import filled, in_order, on_all, on_any, windowed
from .layout import Layout


class Share(NamedTuple):
    """A rank's share of a bucket of parameters, for which the optimizer has moments and, in stage
    2, sums of gradients. It knows it by the identity of `tensor`. In stage 3 the parameters are
    divided, too: they are those of `unit`."""

    tensor: Tensor
    params: list[Tensor]
    layout: Layout
    unit: Unit | None = None

    def whole(self) -> list[int]:
        """Which of the parameters are not divided as this unit's: all before stage 3."""
        unit = self.unit
        pairs = enumerate(self.params)
        return [i for i, param in pairs if unit is None or not unit.has(i, param)]

    def names(self, optimizer: Optimizer) -> list[str]:
        """What the moments of the parameters are reported as."""
        return [optimizer._moments.name_of(param) for param in self.params]


class Shares:
    """This rank's share of each bucket of parameters, which it updates for all.

    A rank gets the average of its share of the gradients alone, and makes its share of the new
    parameters, which all ranks gather then. So moments take a part of the memory on each rank; in
    stage 2 gradients that add up over several losses do, too. In stage 3 the parameters themselves
    do, from the first update on: what uses one gathers it (`Unit`).
    """

    def __init__(self, rank: int, size: int, stage: int) -> None:
        self.rank, self.size, self.stage = rank, size, stage
        self.agreed = Agreement()
        #: By the number of the bucket, in the order in which backward fills them.
        self.found: dict[int, Share] = {}
        #: All parameters, in the order in which gradients came in the last step.
        self.order: list[Tensor] = []
        #: What the units have in common: not this object, which holds what holds them.
        self._family = object()

    def remember(self) -> Callable[[], None]:
        """Returns a function that drops the shares made since."""
        before = dict(self.found), self.order

        def restore() -> None:
            self.found, self.order = before

        return restore

    def train(self, optimizer: Optimizer, loss: Tensor, limit: int) -> None:
        """Backward, and the update of all parameters.

        Raises:
            ValueError: other gradients than in earlier steps.
        """
        with averaged_over(self.size):
            optimizer._train(loss, Divided(self, optimizer, limit))
        if self.turn():
            once_run(self.divide, "the first step with shard=3 divides the parameters")

    def accumulate(self, optimizer: Optimizer, loss: Tensor, limit: int) -> None:
        """Backward; adds this rank's share of the averaged gradients to its sums.

        Raises:
            ValueError: as `train`.
        """
        with averaged_over(self.size):
            optimizer._add_up(loss, Divided(self, optimizer, limit))
        gathering().end()

    def turn(self) -> tuple[int, ...]:
        """How many parameters of each bucket are whole, where one is in stage 3; () else."""
        if self.stage < 3:
            return ()
        counts = tuple(len(share.whole()) for share in self.found.values())
        return counts if any(counts) else ()

    def divide(self) -> None:
        """Divides the parameters that are whole."""
        for share in self.found.values():
            for index in share.whole():
                share.unit.take(index, share.params[index])

    def of(self, number: int, params: list[Tensor], optimizer: Optimizer) -> Share:
        """This rank's share of a bucket, with the present values of its parameters.

        Raises:
            ValueError: the bucket had other parameters in earlier steps.
        """
        layout = Layout([param.shape for param in params], self.size)
        known = self.found.get(number)
        share = self._tensor(number, params, layout, known)
        made = Share(share, params, layout, self._unit(share, params, layout, known))
        if known is not None:
            _check_same(number, known, made, optimizer)
        self.found[number] = made
        whole = set(made.whole())
        with autograd.no_grad():
            for piece in layout.pieces(self.rank):
                if piece.index in whole:
                    piece.within(share).copy_from(piece.of(params[piece.index]))
        self._take_waiting(made, optimizer)
        return made

    def _unit(
        self, share: Tensor, params: list[Tensor], layout: Layout, known: Share | None
    ) -> Unit | None:
        """What divides the parameters of a bucket in stage 3."""
        if self.stage < 3 or known is not None:
            return None if known is None else known.unit
        for param in params:
            if not param._is_alone:
                raise ValueError(
                    f"DistOpt: got {param.name} with shard=3, which shares its memory with other "
                    "tensors or is not row-major, want a parameter with memory of its own"
                )
        return Unit(share, layout, self.rank, [param.name for param in params], self._family)

    def _tensor(
        self, number: int, params: list[Tensor], layout: Layout, known: Share | None
    ) -> Tensor:
        if known is not None:
            return known.tensor
        with making_state():
            made = Tensor((layout.share,), params[0].device, params[0].dtype, requires_grad=False)
            made.set_value(0)
        made.name = f"share{number}"
        made.set_account("parameters" if self.stage > 2 else "states")
        return made

    def _take_waiting(self, share: Share, optimizer: Optimizer) -> None:
        """Makes the moments for which values of the parameters wait."""
        names, moments = share.names(optimizer), optimizer._moments
        kinds = (*optimizer.moment_kinds, *((SUMS,) if self.stage > 1 else ()))
        for kind in kinds:
            if moments.made(share.tensor, [kind]):
                continue
            found = [moments.waiting_value(kind, name) for name in names]
            if any(one is not None for one in found):
                own = self._own_part(share.layout, names, found)
                for name in names:
                    moments.let_wait(kind, name, None)
                moments.let_wait(kind, moments.name_of(share.tensor), own)
                moments.of(share.tensor, share.tensor.name, kind)

    def _own_part(
        self, layout: Layout, names: list[str], found: list[np.ndarray | None]
    ) -> np.ndarray:
        """This rank's share of values, zeros where there is none.

        Raises:
            ShapeError: a value of another shape than its parameter.
        """
        made = np.zeros(layout.share, np.result_type(*(one for one in found if one is not None)))
        for piece in layout.pieces(self.rank):
            value, shape = found[piece.index], layout.shapes[piece.index]
            if value is None:
                continue
            if value.shape != shape:
                raise ShapeError(
                    f"DistOpt: got a state of shape {value.shape} for {names[piece.index]!r}, want "
                    f"{shape}"
                )
            own = value.reshape(-1)[piece.start : piece.start + piece.count]
            made[piece.at : piece.at + piece.count] = own
        return made


class _Started(NamedTuple):
    """Gradients of a bucket on their way."""

    step: Divided
    number: int
    params: list[Tensor]
    work: Work

    def finish(self) -> Iterator[Pair]:
        """This rank's share of the parameters, and of the averaged gradients."""
        share = self.step.shares.of(self.number, self.params, self.step.optimizer)
        self.step.updated[id(share.tensor)] = share
        yield share.tensor, self.work.wait()


class Divided(Exchange):
    """The exchange of a step: of parameters and gradients come shares of them."""

    def __init__(self, shares: Shares, optimizer: Optimizer, limit: int) -> None:
        super().__init__()
        self.shares, self.optimizer, self._limit = shares, optimizer, limit
        self.sums_come_out = shares.stage > 1
        #: The shares that this step updates, by the `id` of their tensor.
        self.updated: dict[int, Share] = {}

    def __call__(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Shares of parameters and of averaged gradients, bucket by bucket."""
        order: list[Tensor] = []
        # What is updated by its sum alone comes last, be it in another place in earlier steps.
        ordered = in_order(pairs, self.shares.order)
        noted = noting(ordered, lambda param, _: order.append(param))
        buckets = enumerate(filled(noted, self._limit, self.shares.agreed, self._place))
        yield from windowed(self._start(number, bucket) for number, bucket in buckets)
        self.shares.order = order

    def member(self, optimizer: Optimizer, param: Tensor) -> Optimizer:
        """That of the parameters whose share it is: buckets are of one group."""
        return super().member(optimizer, self.updated[id(param)].params[0])

    def whole_square(self, square: Tensor) -> Tensor:
        """The sum over all ranks."""
        return all_reduce(square)

    def on_all(self, is_finite: Tensor) -> Tensor:
        """Whether it is true on all ranks."""
        return on_all(is_finite)

    def is_added(self, param: Tensor, grad: Tensor, found: Set[int]) -> Tensor | None:
        """Of a share, the elements of those of its parameters that are updated."""
        if self.sums_come_out:
            return super().is_added(param, grad, found)
        share = self.updated[id(param)]
        rest = {i for i, one in enumerate(share.params) if id(one) not in found}
        if not rest:
            return None
        pieces = list(share.layout.pieces(self.shares.rank))
        added = on_any(autograd.stack([autograd.any(one.within(grad) != 0) for one in pieces]))
        made = tensor.zeros_like(param) == 0
        for i in rest:
            own = pieces[i].within(made)
            own.copy_from(own & added[i])
        return made

    def is_done(self, param: Tensor) -> bool:
        """Whether all parameters of a share are divided, so that it is where they are."""
        return not self.updated[id(param)].whole()

    def end(self) -> None:
        """Writes the updated shares of all ranks into the parameters, except where all are
        divided."""
        gathering().end()
        shares = [share for share in self.updated.values() if share.whole()]
        with autograd.no_grad():
            works = [gathered(share.tensor, _receivers(share.params)) for share in shares]
            for work in works:
                work.wait()

    def _place(self, pair: Pair) -> int:
        """The group to which a pair belongs."""
        member = super().member(self.optimizer, pair[0])
        groups = enumerate(self.optimizer._groups)
        return next((number for number, group in groups if group is member), -1)

    def _start(self, number: int, pairs: list[Pair]) -> _Started:
        params = [param for param, _ in pairs]
        work = scattered([grad for _, grad in pairs])
        pairs.clear()
        return _Started(self, number, params, work)


def check(optimizer: Optimizer, stage: int) -> None:
    """Refuses an optimizer for which the update of a share is not that of the whole.

    Raises:
        ValueError: it looks at more than one element at a time.
    """
    if not optimizer.is_elementwise:
        name = type(optimizer).__name__
        raise ValueError(
            f"DistOpt: got {name} with shard={stage}, whose updates need whole gradients"
        )


def _receivers(params: list[Tensor]) -> list[Tensor]:
    """The parameters, or others in the place of those that are divided."""
    return [new(one.shape, one) if one._divided else one for one in params]


def _check_same(number: int, known: Share, made: Share, optimizer: Optimizer) -> None:
    names = [one.names(optimizer) for one in (known, made)]
    dtypes = [one.params[0].dtype for one in (known, made)]
    if known.layout.shapes != made.layout.shapes or names[0] != names[1] or dtypes[0] != dtypes[1]:
        raise ValueError(
            f"DistOpt: got {', '.join(names[1])} in bucket {number}, want {', '.join(names[0])} as "
            "in earlier steps: with shard= all steps have the same gradients and threshold"
        )
