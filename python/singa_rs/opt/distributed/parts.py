"""SINGA's parts of distributed steps, for programs that put their own together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from ... import autograd
from ...dist.communicator import Communicator
from ...layer.check import tensors
from ...tensor import Tensor
from ..base import Optimizer
from ..exchange import Exchange, Pair
from ..scaling import averaged_over
from .agreement import Agreement
from .gradients import filled
from .partial import average


class Parts:
    """Exchanges that begin at once, and `wait`, which ends them (SINGA DistOpt)."""

    opt: Optimizer
    communicator: Communicator
    world_size: int
    _agreed: Agreement
    _is_apart: bool

    def update(self, param: Tensor, grad: Tensor) -> None:
        """Updates a parameter by a sum of the gradients of all ranks, which is divided by their
        number. The sum is not changed."""
        tensors((param, grad), "DistOpt.update")
        with autograd.no_grad():
            mean = grad / self.world_size
        self.opt.apply(param.name, param, mean)

    def all_reduce(self, tensor: Tensor) -> None:
        """Begins to add up the tensors of all ranks, in place; `wait` ends it."""
        self.communicator.synch(tensor)

    def all_reduce_half(self, tensor: Tensor) -> None:
        """As `all_reduce`; the values travel as float16."""
        self.communicator.synchHalf(tensor)

    def fused_all_reduce(self, tensor: Sequence[Tensor], send: bool = True) -> None:
        """With `send=False`: collects tensors. Else: begins to add up those that were collected,
        or else these, over all ranks; the sums are written into these, in order, by `wait`."""
        self.communicator.fusedSynch(tensor, send)

    def fused_all_reduce_half(self, tensor: Sequence[Tensor], send: bool = True) -> None:
        """As `fused_all_reduce`; the values travel as float16."""
        self.communicator.fusedSynchHalf(tensor, send)

    def sparsification(
        self,
        tensor: Tensor,
        accumulation: Tensor | None,
        spars: float,
        topK: bool,  # SINGA's name
    ) -> None:
        """Begins to add up what is chosen of the tensors of all ranks, as in
        `backward_and_sparse_update`, in place; the rest is left in `accumulation`."""
        self.communicator.sparsification(tensor, accumulation, spars, topK)

    def fused_sparsification(
        self,
        tensor: Sequence[Tensor],
        accumulation: Tensor | None,
        spars: float,
        topK: bool,  # SINGA's name
    ) -> None:
        """As `sparsification`, of several tensors as if they were one."""
        self.communicator.fusedSparsification(tensor, accumulation, spars, topK)

    def wait(self) -> None:
        """Waits for all exchanges that were begun."""
        self.communicator.wait()

    def _owns(self, *names: str) -> bool:
        """Whether a program has methods of its own in the place of some of these."""
        return any(
            getattr(getattr(self, one), "__func__", None) is not vars(Parts)[one] for one in names
        )

    def _train(self, loss: Tensor, exchange: Exchange) -> None:
        """A step in which all ranks update by the same gradients."""
        self._equal.check_numbers(self.opt)
        with averaged_over(self.world_size):
            self.opt._train(loss, exchange)

    def _add_up(self, loss: Tensor) -> None:
        """Adds up this rank's gradients."""
        with averaged_over(self.world_size):
            self.opt.accumulate(loss)

    @property
    def _equal(self) -> Agreement:
        """What ranks compare of what they exchange: values, too, while these have to be equal."""
        return self._agreed.of_names() if self._is_apart else self._agreed

    def _by(
        self, passed: Any, limit: int = 0, kind: str | None = None, make: Any = Exchange
    ) -> Exchange:
        """A step's exchange, which calls the program's own methods, as SINGA's steps do."""
        if kind is not None and self._owns(f"all_reduce{kind}", f"fused_all_reduce{kind}", "wait"):
            passed = partial(self._averaged, limit, kind)
        made = make(passed)
        if self._owns("update"):
            made.member = lambda *_: SimpleNamespace(apply=self._apply)
        return made

    def _apply(self, _: str, param: Tensor, mean: Tensor) -> None:
        self.update(param, mean * self.world_size)

    def _averaged(self, limit: int, kind: str, pairs: Iterable[Pair]) -> Iterable[Pair]:
        done: list[Pair] = []
        for bucket in filled(pairs, limit, self._equal):
            done += bucket
            grads = [grad.data for _, grad in bucket]
            if grads[0].numel > limit:
                getattr(self, f"all_reduce{kind}")(*grads)
            else:
                getattr(self, f"fused_all_reduce{kind}")(grads)
        self.wait()
        with autograd.no_grad():
            return [(param, grad / self.world_size) for param, grad in done]

    def _average(self, params: list[Tensor], limit: int) -> None:
        """Averages parameters over all ranks, in place."""
        if not self._owns("all_reduce", "fused_all_reduce", "wait"):
            return average(params)
        for param, mean in self._averaged(limit, "", zip(params, params, strict=True)):
            param.copy_from(mean)
