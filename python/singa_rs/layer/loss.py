"""Losses as layers, called with predictions and targets. Options are as in `autograd`'s functions;
a weight is a state."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import autograd
from ..autograd.terms import REDUCTIONS
from ..tensor import Tensor
from ..tensor.creation import as_tensor
from .base import Layer
from .check import count, count_or_none, number, one_of
from .check import flag as check_flag


class Reduced(Layer):
    """A loss whose terms are reduced to their mean or sum, or returned."""

    _reductions: ClassVar[tuple[str, ...]] = REDUCTIONS

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        name = f"{type(self).__name__}: reduction"
        self.reduction = one_of(reduction, name, self._reductions)

    def _hold(self, name: str, weight: Any) -> None:
        """Keeps a copy of a weight as a state, or None."""
        if weight is not None:
            weight = as_tensor(weight).clone().detach()
            weight.requires_grad = False
        setattr(self, name, weight)

    def _held(self, name: str, x: Tensor) -> Tensor | None:
        """The weight of a name, which is moved to where `x` is."""
        weight: Tensor | None = getattr(self, name)
        if weight is not None:
            self.device_check(x, weight)
        return weight


class _OfClasses(Reduced):
    """A loss of class indices."""

    def __init__(self, axis: int, weight: Any, ignore_index: int | None, reduction: str) -> None:
        super().__init__(reduction)
        name = type(self).__name__
        self.axis = count(axis, f"{name}: axis", -64)
        self.ignore_index = count_or_none(ignore_index, f"{name}: ignore_index", -(2**63))
        self._hold("weight", weight)

    def _options(self, x: Tensor) -> dict[str, Any]:
        """The function's options; the only axis of one sample (C,) is that of the classes."""
        axis = 0 if x.rank == 1 and self.axis == 1 else self.axis
        own = {"ignore_index": self.ignore_index, "reduction": self.reduction}
        return {"axis": axis, "weight": self._held("weight", x), **own}


class SoftMaxCrossEntropy(_OfClasses):
    """Cross entropy of softmax(x) (PyTorch CrossEntropyLoss; autograd.softmax_cross_entropy)."""

    def __init__(
        self,
        axis: int = 1,
        *,
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__(axis, weight, ignore_index, reduction)
        name = "SoftMaxCrossEntropy: label_smoothing"
        self.label_smoothing = number(label_smoothing, name, 0, 1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x logits, (N, C) or more axes, or (C,); t class indices, without the axis or with extent
        1 there, or weights of the shape of x."""
        smoothing = self.label_smoothing
        options = self._options(x)
        return autograd.softmax_cross_entropy(x, t, label_smoothing=smoothing, **options)


class NLLLoss(_OfClasses):
    """The negative log likelihood of classes (PyTorch NLLLoss; autograd.nll_loss)."""

    def __init__(
        self,
        axis: int = 1,
        *,
        weight: Any = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(axis, weight, ignore_index, reduction)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x log probabilities, (N, C) or more axes, or (C,); t class indices, without the axis or
        with extent 1 there."""
        return autograd.nll_loss(x, t, **self._options(x))


class BCEWithLogitsLoss(Reduced):
    """Cross entropy of sigmoid(x) (PyTorch BCEWithLogitsLoss;
    autograd.binary_cross_entropy_with_logits)."""

    def __init__(self, weight: Any = None, pos_weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self._hold("weight", weight)
        self._hold("pos_weight", pos_weight)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape, x logits, t probabilities."""
        own = (self._held("weight", x), self._held("pos_weight", x), self.reduction)
        return autograd.binary_cross_entropy_with_logits(x, t, *own)


class KLDivLoss(Reduced):
    """t * (log(t) - x) (PyTorch KLDivLoss; autograd.kl_div)."""

    _reductions = (*REDUCTIONS, "batchmean")

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = check_flag(log_target, "KLDivLoss: log_target")

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape, x log probabilities."""
        return autograd.kl_div(x, t, self.reduction, self.log_target)


class L1Loss(Reduced):
    """|x - t| (PyTorch L1Loss; autograd.l1_loss)."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape."""
        return autograd.l1_loss(x, t, self.reduction)


class SmoothL1Loss(Reduced):
    """Squares of distances up to beta, distances beyond (PyTorch SmoothL1Loss;
    autograd.smooth_l1_loss)."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = number(beta, "SmoothL1Loss: beta", 0)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape."""
        return autograd.smooth_l1_loss(x, t, self.reduction, self.beta)


class HuberLoss(Reduced):
    """Squares of distances up to delta, multiples of distances beyond (PyTorch HuberLoss;
    autograd.huber_loss)."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = number(delta, "HuberLoss: delta", math.ulp(0.0))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """x and t of one shape."""
        return autograd.huber_loss(x, t, self.reduction, self.delta)


class CosineSimilarity(Layer):
    """The cosine of the angle between vectors (PyTorch CosineSimilarity;
    autograd.cosine_similarity)."""

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.axis = count(axis, "CosineSimilarity: axis", -64)
        self.eps = number(eps, "CosineSimilarity: eps", 1e-18)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """x1 and x2 of one shape, which the result has without the axis."""
        return autograd.cosine_similarity(x1, x2, self.axis, self.eps)


class CosineEmbeddingLoss(Reduced):
    """1 - cos(x1, x2) for pairs that should be alike, max(0, cos(x1, x2) - margin) for others
    (PyTorch CosineEmbeddingLoss; autograd.cosine_embedding_loss)."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = number(margin, "CosineEmbeddingLoss: margin", -1, 1)

    def forward(self, x1: Tensor, x2: Tensor, t: Tensor) -> Tensor:
        """x1 and x2 (N, D); t (N,), above zero for pairs that should be alike."""
        return autograd.cosine_embedding_loss(x1, x2, t, self.margin, self.reduction)


class TripletMarginLoss(Reduced):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) (PyTorch TripletMarginLoss;
    autograd.triplet_margin_loss)."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = number(margin, "TripletMarginLoss: margin", 0)
        self.p = p if p == math.inf else number(p, "TripletMarginLoss: p", 1)
        self.eps = number(eps, "TripletMarginLoss: eps", 0)
        self.swap = check_flag(swap, "TripletMarginLoss: swap")

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Three tensors of one shape, (N, D)."""
        own = (self.margin, self.p, self.eps, self.swap, self.reduction)
        return autograd.triplet_margin_loss(anchor, positive, negative, *own)


class CTCLoss(Reduced):
    """Sequences of labels without their places in time (PyTorch CTCLoss; autograd.ctc_loss)."""

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction)
        self.blank = count(blank, "CTCLoss: blank", 0)
        self.zero_infinity = check_flag(zero_infinity, "CTCLoss: zero_infinity")

    def forward(
        self, x: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """x log probabilities (T, N, C); targets (N, S), or (M,), one after another; lengths (N,).
        Or of one sequence (T, C), (S,) and ()."""
        own = (self.blank, self.reduction, self.zero_infinity)
        return autograd.ctc_loss(x, targets, input_lengths, target_lengths, *own)


# ---- SINGA's losses of probabilities and values --------------------------------------------------


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

    def __init__(self, M: float = 0.2) -> None:  # SINGA's name
        super().__init__()
        self.M = number(M, "RankingLoss: M")

    def forward(self, pos: Tensor, neg: Tensor) -> Tensor:
        """pos and neg of one shape."""
        return autograd.ranking_loss(pos, neg, self.M)
