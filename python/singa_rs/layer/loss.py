"""Losses as layers. Each gives a tensor of shape (1,)."""

from __future__ import annotations

from .. import autograd
from ..tensor import Tensor
from .base import Layer
from .check import number


class SoftMaxCrossEntropy(Layer):
    """Cross entropy of softmax(x), mean over the rows."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x (N, C); t class indices (N,) or (N, 1), or weights (N, C)."""
        return autograd.softmax_cross_entropy(x, t)


class MeanSquareError(Layer):
    """Mean of (x - t)**2 over all elements."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape."""
        return autograd.mse_loss(x, t)


class CrossEntropy(Layer):
    """-sum(t * log(x)) over the number of rows."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape, x probabilities."""
        return autograd.cross_entropy(x, t)


class BinaryCrossEntropy(Layer):
    """-sum(t * log(x) + (1 - t) * log(1 - x)) over the number of rows."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape, x probabilities."""
        return autograd.binary_cross_entropy(x, t)


class RankingLoss(Layer):
    """Mean of max(0, M - pos + neg)."""

    def __init__(self, M: float = 0.2) -> None:  # noqa: N803 - SINGA's name
        super().__init__()
        self.M = number(M, "RankingLoss: M")

    def forward(self, pos: Tensor, neg: Tensor) -> Tensor:
        """pos and neg of one shape."""
        return autograd.ranking_loss(pos, neg, self.M)
