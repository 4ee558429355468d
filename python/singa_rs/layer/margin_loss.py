"""Losses of margins and likelihoods as layers, called with predictions and targets. Options are as
in `autograd`'s functions; a weight is a state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import autograd
from ..tensor import Tensor
from .check import count, flag, number
from .loss import Reduced, SoftMaxCrossEntropy


class CrossEntropyLoss(SoftMaxCrossEntropy):
    """`SoftMaxCrossEntropy` under its other name (PyTorch CrossEntropyLoss). `CrossEntropy` is
    SINGA's, of probabilities."""


class MSELoss(Reduced):
    """(x - t)**2 (PyTorch MSELoss; autograd.mse_loss)."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape."""
        return autograd.mse_loss(x, t, self.reduction)


class _Weighted(Reduced):
    """A loss whose terms have weights, which broadcast."""

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self._hold("weight", weight)


class BCELoss(_Weighted):
    """Cross entropy of probabilities, whose logarithms are -100 at least (PyTorch BCELoss;
    autograd.bce_loss)."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape, both probabilities."""
        return autograd.bce_loss(x, t, self._held("weight", x), self.reduction)


class _Margin(Reduced):
    default: float

    def __init__(self, margin: float | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        given = self.default if margin is None else margin
        self.margin = number(given, f"{type(self).__name__}: margin")


class MarginRankingLoss(_Margin):
    """max(0, margin - t * (x1 - x2)) (PyTorch MarginRankingLoss; autograd.margin_ranking_loss).
    `margin` is 0 by default."""

    default = 0.0

    def forward(self, x1: Tensor, x2: Tensor, t: Tensor) -> Tensor:
        """Three tensors of one shape, t of 1 and -1."""
        return autograd.margin_ranking_loss(x1, x2, t, self.margin, self.reduction)


class HingeEmbeddingLoss(_Margin):
    """x where t is 1, max(0, margin - x) where it is -1 (PyTorch HingeEmbeddingLoss;
    autograd.hinge_embedding_loss). `margin` is 1 by default."""

    default = 1.0

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape, t of 1 and -1."""
        return autograd.hinge_embedding_loss(x, t, self.margin, self.reduction)


class SoftMarginLoss(Reduced):
    """log(1 + exp(-t * x)) (PyTorch SoftMarginLoss; autograd.soft_margin_loss)."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape, t of 1 and -1."""
        return autograd.soft_margin_loss(x, t, self.reduction)


class MultiLabelSoftMarginLoss(_Weighted):
    """The mean over the classes of the cross entropy of sigmoid(x) (PyTorch
    MultiLabelSoftMarginLoss; autograd.multilabel_soft_margin_loss)."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t (N, C), t of 1 and 0."""
        weight = self._held("weight", x)
        return autograd.multilabel_soft_margin_loss(x, t, weight, self.reduction)


class MultiMarginLoss(Reduced):
    """Margins between the score of the right class and those of the others (PyTorch
    MultiMarginLoss; autograd.multi_margin_loss)."""

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.p = count(p, "MultiMarginLoss: p")
        if self.p > 2:
            raise ValueError(f"MultiMarginLoss: p: got {p}, want 1 or 2")
        self.margin = number(margin, "MultiMarginLoss: margin")
        self._hold("weight", weight)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x (N, C); t class indices, (N,)."""
        own = (self.p, self.margin, self._held("weight", x), self.reduction)
        return autograd.multi_margin_loss(x, t, *own)


class MultiLabelMarginLoss(Reduced):
    """Margins between the scores of the right classes and those of the others (PyTorch
    MultiLabelMarginLoss; autograd.multilabel_margin_loss)."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x (N, C); t the indices of the right classes, (N, C), with -1 behind the last."""
        return autograd.multilabel_margin_loss(x, t, self.reduction)


class TripletMarginWithDistanceLoss(Reduced):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with any distance (PyTorch
    TripletMarginWithDistanceLoss; autograd.triplet_margin_with_distance_loss)."""

    def __init__(
        self,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        name = type(self).__name__
        if distance_function is not None and not callable(distance_function):
            got = type(distance_function).__name__
            raise TypeError(f"{name}: distance_function: got {got}, want a callable")
        self.distance_function = distance_function
        self.margin = number(margin, f"{name}: margin", 0)
        self.swap = flag(swap, f"{name}: swap")

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Three tensors of one shape, (N, ...)."""
        own = (self.distance_function, self.margin, self.swap, self.reduction)
        return autograd.triplet_margin_with_distance_loss(anchor, positive, negative, *own)


class PoissonNLLLoss(Reduced):
    """The negative log likelihood of counts (PyTorch PoissonNLLLoss; autograd.poisson_nll_loss)."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.log_input = flag(log_input, "PoissonNLLLoss: log_input")
        self.full = flag(full, "PoissonNLLLoss: full")
        self.eps = number(eps, "PoissonNLLLoss: eps", math.ulp(0.0))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape, x the means or their logarithms."""
        own = (self.log_input, self.full, self.eps, self.reduction)
        return autograd.poisson_nll_loss(x, t, *own)


class GaussianNLLLoss(Reduced):
    """The negative log likelihood of numbers with a variance (PyTorch GaussianNLLLoss;
    autograd.gaussian_nll_loss)."""

    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = flag(full, "GaussianNLLLoss: full")
        self.eps = number(eps, "GaussianNLLLoss: eps", 1e-37)

    def forward(self, x: Tensor, t: Tensor, var: Tensor) -> Tensor:
        """x and t of one shape; var of it, too, or without the last axis."""
        return autograd.gaussian_nll_loss(x, t, var, self.full, self.eps, self.reduction)
