"""What gradients have added up to over several losses (`Optimizer.accumulate`), in an update."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .. import autograd
from ..tensor import Tensor
from .exchange import Pair
from .hyperparameters import SUMS
from .moments import Moments


class Sums:
    """The sums that an update takes. Each starts from zero once its parameter has been updated, or,
    where shares of parameters are, once all have been: an update that fails does not lose it."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        #: Those that are part of the update, by the parameter's `id`.
        self._taken: dict[int, Tensor] = {}

    def added(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs with what their gradients had added up to; last, what had no gradient now."""
        if self._moments.are_lost(SUMS):
            pairs = list(pairs)
            self._moments.check_waiting(SUMS, [param.name for param, _ in pairs])
        rest = self._moments.kept(SUMS)
        for pair in pairs:
            param = pair[0]
            rest.pop(id(param), None)
            ready = [(param, self._whole(*pair))]
            del pair
            yield ready.pop()
        for param in (*(one for one, _ in rest.values()), *self._moments.awaited(SUMS)):
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
        for total in self._taken.values():
            total.set_value(0)
