"""SINGA 1.x's losses, for `compat.net.FeedForwardNet` and loops without a tape.

A loss has one number for each sample, and `backward` is the gradient of their sum: programs divide
it by the size of the batch themselves. Those of `singa_rs.loss` are means.
"""

from __future__ import annotations

from typing import Any

from .. import autograd
from ..autograd.stretch import Stretch
from ..errors import GraphError, ShapeError
from ..layer.base import Layer as Base
from ..layer.check import number, tensors
from ..tensor import Tensor, ones_like
from .proto.model_pb2 import is_training

__all__ = [
    "Loss",
    "SigmoidCrossEntropy",
    "SoftmaxCrossEntropy",
    "SquaredError",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class Loss(Base):
    """The base of losses. A subclass of a program overrides `forward`, `backward` and `evaluate`,
    or `compute`."""

    #: What `forward` keeps for `backward` is never read by a later step.
    _unwatched = Base._unwatched | {"_kept"}
    _kept: tuple[Stretch, Tensor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy does not keep the last `forward`."""
        return {key: value for key, value in self.__dict__.items() if key != "_kept"}

    def compute(self, x: Tensor, y: Tensor) -> Tensor:
        """The losses, by operations with gradients; `backward` is the gradient of their sum."""
        raise NotImplementedError(f"{type(self).__name__} has no compute")

    def _shown(self, losses: Tensor) -> Tensor:
        """The losses as `forward` returns them."""
        return losses

    def forward(self, flag: Any, x: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample.

        Args:
            flag: True or `kTrain` if `backward` will follow, else False or `kEval`.
            x: the predictions, a row for each sample.
            y: the truth.

        Raises:
            ShapeError: shapes that do not fit.
        """
        name = f"{type(self).__name__}.forward"
        training = is_training(flag, f"{name}: flag")
        tensors((x, y), name)
        self._kept = None
        with autograd._training_scope(training):
            if not training:
                return self._shown(self.compute(x.detach(), y).detach())
            stretch = Stretch(type(self).__name__)
            losses = stretch.leave(self.compute(stretch.enter(x), y))
        self._kept = (stretch, losses)
        return self._shown(losses)

    def backward(self) -> Tensor:
        """The gradient of the sum of the last losses with respect to x.

        Raises:
            GraphError: there was no `forward` with a true flag since the last `backward`.
        """
        if self._kept is None:
            raise GraphError(f"{type(self).__name__}.backward: call forward(True, x, y) first")
        (stretch, losses), self._kept = self._kept, None
        with autograd.no_grad():
            return stretch.backward(ones_like(losses))[0][0]

    def evaluate(self, flag: Any, x: Tensor, y: Tensor) -> Any:
        """The mean of the losses, a number; `backward` may follow if `flag` is true."""
        return float(self.forward(flag, x, y).mean())


class SoftmaxCrossEntropy(Loss):
    """The cross entropy of softmax(x) of (N, C), or of (C,) for one sample, and of y: class indices
    (N,) or (N, 1), or weights of the classes (N, C), divided by their sum."""

    def compute(self, x: Tensor, y: Tensor) -> Tensor:
        """(N,)."""
        rows = x if x.rank > 1 else autograd.reshape(x, (1, x.numel))
        y = autograd.reshape(y, (1, y.numel)) if x.rank == 1 and y.numel > 1 else y
        return autograd.softmax_cross_entropy(rows, y, reduction="none").reshape((rows.shape[0],))


class SigmoidCrossEntropy(Loss):
    """The cross entropy of sigmoid(x) and y, 0 or 1, each of (N, C). `forward` and `evaluate` tell
    the mean over the classes, `backward` the gradient of the sum, sigmoid(x) - y, as in SINGA."""

    def __init__(self, epsilon: float = 1e-8) -> None:
        """`epsilon` has no effect: the losses are computed from x, so no logarithm is of 0.

        Raises:
            TypeError, ValueError: not a number from 0.
        """
        super().__init__()
        self.epsilon = number(epsilon, "SigmoidCrossEntropy: epsilon", 0.0)

    def compute(self, x: Tensor, y: Tensor) -> Tensor:
        """(N, C)."""
        return autograd.binary_cross_entropy_with_logits(x, y, reduction="none")

    def _shown(self, losses: Tensor) -> Tensor:
        return losses.mean(tuple(range(1, losses.rank))) if losses.rank > 1 else losses


class SquaredError(Loss):
    """Half the squared difference of each element; the gradient is x - y."""

    def compute(self, x: Tensor, y: Tensor) -> Tensor:
        """Of the shape of x."""
        if x.shape != y.shape:
            raise ShapeError(f"SquaredError: got {x.shape} and {y.shape}, want one shape")
        return autograd.square(x - y) * 0.5

    def evaluate(self, flag: Any, x: Tensor, y: Tensor) -> Tensor:
        """The mean over all elements, a tensor of shape (1,), as in SINGA; `backward` may follow if
        `flag` is true."""
        return self.forward(flag, x, y).mean().reshape((1,))
