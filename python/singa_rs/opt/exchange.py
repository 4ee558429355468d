"""What an optimizer does with gradients of several processes, between backward and the update."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import TYPE_CHECKING

from .. import autograd
from ..tensor import Tensor

if TYPE_CHECKING:
    from .base import Optimizer

Pair = tuple[Tensor, Tensor]


def noting(pairs: Iterable[Pair], note: Callable[[Tensor, Tensor], None]) -> Iterator[Pair]:
    """Yields the pairs unchanged, each after `note` has seen it. A pair is not held once it is
    passed on, so that the memory of a gradient is free as soon as it is used."""
    for pair in pairs:
        note(*pair)
        ready = [pair]
        del pair
        yield ready.pop()


class Exchange:
    """The way of parameters and gradients from backward to the update, where all ranks get the same
    gradients. Subclasses are for those that get other ones."""

    #: Whether sums of gradients (`Optimizer.accumulate`) are of what comes out.
    sums_come_out = False

    def __init__(self, passed: Callable[[Iterable[Pair]], Iterable[Pair]] | None = None) -> None:
        """`passed`: what becomes of the pairs, which is nothing by default."""
        self._passed = passed

    def __call__(self, pairs: Iterable[Pair]) -> Iterable[Pair]:
        """What is updated with which gradients, one by one."""
        return pairs if self._passed is None else self._passed(pairs)

    def member(self, optimizer: Optimizer, param: Tensor) -> Optimizer:
        """The group to which what is updated belongs, or the optimizer."""
        return optimizer.member(param.name, param)

    def whole_square(self, square: Tensor) -> Tensor:
        """The squared norm of all gradients, given that of this rank's."""
        return square

    def is_added(self, param: Tensor, grad: Tensor, found: Set[int]) -> Tensor | None:
        """Where a parameter without a gradient of the loss is updated by sums (`accumulate`): a
        bool of shape () or the parameter's. None of one with a gradient, whose `id` is `found`."""
        return None if id(param) in found else autograd.any(grad != 0)

    def is_done(self, param: Tensor) -> bool:
        """Whether an update of what comes out is one of the parameters, before `end`."""
        return True

    def end(self) -> None:
        """Everything has been updated."""

    def on_all(self, is_finite: Tensor) -> Tensor:
        """Whether a condition that holds here, as the argument says, holds on all ranks; a bool."""
        return is_finite
