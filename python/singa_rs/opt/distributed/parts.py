"""SINGA's parts of distributed steps, for programs that put their own together."""

from __future__ import annotations

from collections.abc import Sequence

from ... import autograd
from ...dist.communicator import Communicator
from ...layer.check import tensors
from ...tensor import Tensor
from ..base import Optimizer


class Parts:
    """Exchanges that begin at once, and `wait`, which ends them (SINGA DistOpt)."""

    opt: Optimizer
    communicator: Communicator
    world_size: int

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
