"""SINGA's losses as objects with `forward` and `backward`, for loops without a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import autograd, elsewhere
from .errors import GraphError, ShapeError
from .layer.check import flag as check_flag
from .layer.check import tensors
from .tensor import Tensor
from .tensor.arrays import operands

if TYPE_CHECKING:
    from .tensor.takers import TensorLike

__all__ = [
    "Loss",
    "SoftmaxCrossEntropy",
    "SquaredError",
]

elsewhere.closed(globals())


class Loss:
    """Keeps what `backward` needs from the last `forward`."""

    def __init__(self) -> None:
        self._kept: tuple[Tensor, Tensor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy does not keep the last `forward`."""
        return {**self.__dict__, "_kept": None}

    def _compute(self, x: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _compute")

    def forward(self, flag: Any, x: TensorLike, y: TensorLike) -> Tensor:
        """The loss of predictions x given the truth y, of shape (1,); `flag` says whether
        `backward` will follow."""
        name = f"{type(self).__name__}.forward"
        x, y = operands((x, y), name)
        tensors((x, y), name)
        if not x.rank:
            raise ShapeError(f"{name}: got shape (), want at least 1 axis")
        is_training = check_flag(flag, f"{name}: flag")
        leaf = x.detach()
        leaf.requires_grad = leaf.stores_grad = True
        with autograd._training_scope(is_training):
            loss = self._compute(leaf, y)
        self._kept = (loss, leaf) if is_training else None
        return loss

    def backward(self) -> Tensor:
        """The gradient of the last loss with respect to x.

        Raises:
            GraphError: there was no `forward` with a true flag since the last `backward`.
        """
        if self._kept is None:
            raise GraphError(f"{type(self).__name__}.backward: call forward(True, x, y) first")
        (loss, leaf), self._kept = self._kept, None
        with autograd._training_scope(True):
            return autograd.gradients(loss)[leaf]

    def evaluate(self, flag: Any, x: TensorLike, y: TensorLike) -> float:
        """The loss as a number; `backward` may follow if `flag` is true."""
        return float(self.forward(flag, x, y).item())


class SoftmaxCrossEntropy(Loss):
    """`autograd.softmax_cross_entropy`: the mean over the rows."""

    def _compute(self, x: Tensor, y: Tensor) -> Tensor:
        return autograd.softmax_cross_entropy(x, y)


class SquaredError(Loss):
    """Half the squared error, summed over each row; the mean over the rows."""

    def _compute(self, x: Tensor, y: Tensor) -> Tensor:
        return autograd.mse_loss(x, y) * (x.numel / (2.0 * max(1, x.shape[0])))
