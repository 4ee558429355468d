"""Losses."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ...tensor import Tensor
from ..table import reads


def _single(loss: Tensor, reduction: str) -> Tensor:
    """A loss, which has no axes if it is one number."""
    return loss if reduction == "none" else loss.reshape(())


@reads("NegativeLogLikelihoodLoss", since=12)
def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log probabilities of the targets, weighed by class."""
    loss = autograd.nll_loss(
        x, target, weight=weight, ignore_index=ignore_index, reduction=reduction
    )
    return _single(loss, reduction)


@reads("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *,
    ignore_index: int | None = None, reduction: str = "mean", outputs: int,
) -> Any:  # fmt: skip
    """The cross entropy of the scores' softmax; the log probabilities too, if they are wanted."""
    loss = autograd.softmax_cross_entropy(
        scores, labels, weight=weights, ignore_index=ignore_index, reduction=reduction
    )
    loss = _single(loss, reduction)
    return loss if outputs == 1 else (loss, autograd.log_softmax(scores, 1))
