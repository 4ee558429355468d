"""Exchanges through which gradients flow."""

from __future__ import annotations

from .. import autograd, errors
from ..tensor import Tensor
from . import exchange


class _AllReduce(autograd.Rule):
    """The sum of the tensors of all ranks."""

    def forward(self, x: Tensor) -> Tensor:
        return _sum(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: object) -> tuple[Tensor, ...]:
        """What every rank's losses together change by: each rank's depends on every input."""
        return (_sum(dys[0]),)


def all_reduce(x: Tensor) -> Tensor:
    """The sum of the tensors of all ranks, as a new tensor (PyTorch
    torch.distributed.nn.functional.all_reduce).

    Its gradient is that of the sum of all ranks' losses: the sum over ranks of the gradients of
    the result. So all ranks have to go backward through it, too, in the same order. It cannot be
    differentiated again.

    Raises:
        TypeError: not a tensor.
        DistError: as `Work.wait`.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"all_reduce: got {type(x).__name__}, want a Tensor")
    return _AllReduce()(x)[0]


def _sum(x: Tensor) -> Tensor:
    made = Tensor(x.shape, x.device, x.dtype)
    with autograd.no_grad():
        made.copy_from(x)
        return exchange.all_reduce(made)


errors.name_functions(globals())
