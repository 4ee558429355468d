"""What gradients have added up to over several losses (`Optimizer.accumulate`), in an update."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

from .. import autograd
from ..tensor import Tensor
from .exchange import Exchange, Pair, noting
from .hyperparameters import SUMS
from .moments import Moments
from .scaling import only_if


class Sums:
    """The sums that an update takes. Each starts from zero once its parameter has been updated, or,
    where shares of parameters are, once all have been: an update that fails does not lose it.

    A parameter without a gradient of the loss is updated if its sum is other than zeros. That is
    asked by operations, so that a replay finds what has been added by then."""

    def __init__(self, moments: Moments, exchange: Exchange) -> None:
        self._moments, self._exchange = moments, exchange
        #: Those that are part of the update, by the parameter's `id`.
        self._taken: dict[int, Tensor] = {}
        #: The `id` of each parameter that has a gradient of the loss.
        self._found: set[int] = set()
        #: Where the others are updated, bools, by the `id` of what comes out of the exchange.
        self._is_added: dict[int, Tensor] = {}

    def exchanged(self, pairs: Iterable[Pair]) -> Iterable[Pair]:
        """What comes out of the exchange, with what gradients had added up to."""
        if self._exchange.sums_come_out:
            return noting(self._added(self._exchange(pairs)), self._look)
        return noting(self._exchange(self._added(pairs)), self._look)

    def _look(self, param: Tensor, grad: Tensor) -> None:
        with autograd.no_grad():
            is_added = self._exchange.is_added(param, grad, self._found)
        if is_added is not None:
            self._is_added[id(param)] = is_added

    def only_if_added(
        self, param: Tensor, *written: Callable[[], Mapping[Hashable, Tensor]]
    ) -> AbstractContextManager[None]:
        """A context after which what the functions name is as before, unless there is a gradient
        or something has been added up."""
        is_added = self._is_added.get(id(param))
        return only_if(is_added, lambda: {k: t for one in written for k, t in one().items()})

    def _added(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs with what their gradients had added up to; last, what had no gradient now."""
        if self._moments.are_lost(SUMS):
            pairs = list(pairs)
            self._moments.check_waiting(SUMS, [param.name for param, _ in pairs])
        rest = self._moments.kept(SUMS)
        for pair in pairs:
            param = pair[0]
            rest.pop(id(param), None)
            self._found.add(id(param))
            ready = [(param, self._whole(*pair))]
            del pair
            yield ready.pop()
        params = [*(one for one, _ in rest.values()), *self._moments.awaited(SUMS)]
        # Norms are added up in this order, which is the same after sums have been loaded.
        for param in sorted(params, key=self._moments.name_of):
            yield param, self._whole(param)

    def _whole(self, param: Tensor, grad: Tensor | None = None) -> Tensor:
        """A parameter's sum, plus a gradient, in its dtype."""
        total = self._taken[id(param)] = self._moments.of(param, param.name, SUMS)
        with autograd.no_grad():
            made = total.clone() if grad is None else total + grad.as_type(total.dtype)
            return made.as_type(param.dtype)

    def used(self, param: Tensor) -> None:
        """A parameter has been updated."""
        total = self._taken.pop(id(param), None)
        if total is not None:
            total.set_value(0)

    def end(self) -> None:
        """All parameters have been updated, be it by shares."""
        self._moments.has_added = False
        for total in self._taken.values():
            total.set_value(0)
