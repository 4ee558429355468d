"""Losses, each of shape (1,). Targets get no gradient but for that of `mse_loss`."""

from __future__ import annotations

from typing import Any

from .._core import ShapeError, float32
from ..compat.raw import raw
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import as_number, real
from . import ops
from .casting import convert, floating
from .ops import Grads
from .order import is_traced
from .rule import Rule, function
from .table import public
from .tape import alive
from .terms import alike, check_reduction, reduced, result_dtype, share

#: Keeps logarithms finite, as in SINGA.
_TINY = 1e-4


class Loss(Rule):
    """A measure of how far outputs are from targets. Called by hand, `backward` needs no `dy`."""

    def backward(self, *dys: Any) -> Any:
        """The gradient of the outputs; `dy` is 1 unless given, and the gradient raw unless it is a
        tensor."""
        alive(self)
        given = dys[0] if len(dys) == 1 else None
        number = as_number(given) if dys else 1
        if number is not None:
            return super().backward(raw(ops.full((1,), number, self.load(0))))
        to = self.load(0).device
        return super().backward(*(as_tensor(dy, to) for dy in dys))


class _WithTarget(Loss):
    """A loss of `x` and a target of the same shape."""

    keeps = ("xs", "converted")
    constants = ("converted",)
    #: The name of the function.
    f: str

    def __init__(self, t: Any) -> None:
        self.t = t

    def target(self, x: Tensor) -> Tensor:
        """The target in the dtype of `x`.

        Raises:
            ShapeError: a different shape.
        """
        t = ops.convert(as_tensor(self.t, x.device), x.dtype)
        _check_shapes(self.f, x, t)
        self.converted = t
        return t

    def forward(self, x: Tensor) -> Tensor:
        """The loss. 16-bit floats are summed in float32: float16 ends at 65504."""
        return self._loss(x, self.target(x))

    def _loss(self, x: Tensor, t: Tensor) -> Tensor:
        wide = x.dtype if x.dtype.itemsize > 2 else float32
        terms, factor = self.terms(ops.cast(x, wide), ops.cast(t, wide))
        whole = ops.op("reduce", f="sum", axes=(), keepdims=False)(terms)
        return ops.cast(ops.reshape(ops.scale(whole, factor), (1,)), x.dtype)

    def terms(self, x: Tensor, t: Tensor) -> tuple[Tensor, float]:
        """The terms that the loss adds up, and the factor of the sum."""
        raise NotImplementedError


def _check_shapes(name: str, x: Tensor, t: Tensor) -> None:
    if t.shape != x.shape:
        has_classes = name == "cross_entropy" and x.rank == t.rank + 1
        hint = "; class indices are for softmax_cross_entropy, of logits" if has_classes else ""
        raise ShapeError(f"{name}: got shapes {x.shape}, {t.shape}, want equal{hint}")


def _rows(x: Tensor, name: str) -> int:
    """The number of rows, by which a loss is divided."""
    if not x.rank:
        raise ShapeError(f"{name}: got shape (), want at least one axis")
    return x.shape[0]


def _spread(dy: Tensor, x: Tensor) -> Tensor:
    """The loss's gradient at every element of `x`."""
    return ops.reshape(dy, (1,) * x.rank)


def _log(x: Tensor) -> Tensor:
    return ops.op("unary", f="log")(ops.scalar_op("add", _TINY)(x))


class MeanSquareError(_WithTarget):
    """The mean of `(x - t) ** 2` over all elements; shapes must be equal (SINGA mse_loss)."""

    f = "mse_loss"

    def terms(self, x: Tensor, t: Tensor) -> tuple[Tensor, float]:
        return ops.op("unary", f="square")(ops.sub(x, t)), share(x.numel)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`2 (x - t) / size`."""
        x = self.load(0)
        slope = ops.scale(ops.sub(x, self.load(1)), 2 * share(x.numel))
        return (ops.mul(slope, _spread(dys[0], x)),)


class SquaredDifference(MeanSquareError):
    """The mean of `(x - t) ** 2` over all elements, whose target gets a gradient, too."""

    keeps = ("xs",)
    constants = ()

    def __init__(self) -> None:
        super().__init__(None)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:  # type: ignore[override]
        """The loss; the target has the dtype of `x`."""
        _check_shapes(self.f, x, t)
        return self._loss(x, t)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> Grads:
        """`2 (x - t) / size`, and the negative of it."""
        (slope,) = super().gradients(dys, wanted)
        return slope, ops.neg(slope) if wanted[1] else None


class CrossEntropy(_WithTarget):
    """`-sum(t * log(x + 1e-4)) / x.shape[0]` of probabilities `x`; shapes must be equal
    (SINGA cross_entropy).

    A perfect prediction has the loss `-log(1.0001)`, about -0.0001, as in SINGA. The cross entropy
    of logits (PyTorch cross_entropy) is `softmax_cross_entropy`.
    """

    f = "cross_entropy"

    def terms(self, x: Tensor, t: Tensor) -> tuple[Tensor, float]:
        return ops.mul(t, _log(x)), -share(_rows(x, self.f))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`-t / (x + 1e-4) / rows`."""
        x = self.load(0)
        slope = ops.div(self.load(1), ops.scalar_op("add", _TINY)(x))
        return (ops.mul(ops.scale(slope, -share(x.shape[0])), _spread(dys[0], x)),)


class BinaryCrossEntropy(_WithTarget):
    """The cross entropy of independent probabilities `x`, divided by `x.shape[0]`
    (SINGA binary_cross_entropy).

    `-sum(t * log(x + 1e-4) + (1 - t) * log(1 - x + 1e-4)) / x.shape[0]`. A perfect prediction has
    the loss `-log(1.0001)` for each element, about -0.0001; `binary_cross_entropy_with_logits` has
    0.
    """

    f = "binary_cross_entropy"

    def terms(self, x: Tensor, t: Tensor) -> tuple[Tensor, float]:
        rest = ops.scalar_op("sub", 1, True)
        terms = ops.add(ops.mul(t, _log(x)), ops.mul(rest(t), _log(rest(x))))
        return terms, -share(_rows(x, self.f))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`((1 - t) / (1 - x + 1e-4) - t / (x + 1e-4)) / rows`."""
        (x, t), rest = (self.load(0), self.load(1)), ops.scalar_op("sub", 1, True)
        safe = ops.scalar_op("add", _TINY)
        slope = ops.sub(ops.div(rest(t), safe(rest(x))), ops.div(t, safe(x)))
        return (ops.mul(ops.scale(slope, share(x.shape[0])), _spread(dys[0], x)),)


class RankingLoss(Loss):
    """The mean of `max(0, M - pos + neg)` (SINGA RankingLoss)."""

    keeps = ("xs",)

    def __init__(self, M: float = 0.2) -> None:
        self.M = real(M, "ranking_loss: M")

    def forward(self, pos: Tensor, neg: Tensor) -> Tensor:
        _check_shapes("ranking_loss", pos, neg)
        mean = ops.op("reduce", f="mean", axes=(), keepdims=False)
        return ops.reshape(mean(ops.op("unary", f="relu")(self._margin(pos, neg))), (1,))

    def _margin(self, pos: Tensor, neg: Tensor) -> Tensor:
        return ops.scalar_op("add", self.M)(ops.sub(neg, pos))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, Tensor]:
        """`-1 / size` and `1 / size` where the margin is violated, else 0."""
        pos, neg = self.load(0), self.load(1)
        violated = ops.scalar_op("gt", 0)(self._margin(pos, neg))
        each = ops.scale(_spread(dys[0], pos), share(pos.numel))
        slope = ops.where(violated, each, ops.full((), 0, pos))
        return ops.neg(slope), slope


class SoftMaxCrossEntropy(Loss):
    """Mean over the rows of the cross entropy of softmax(x) with `t`.

    Args:
        x: (N, C).
        t: as many elements as rows, (N,) or (N, 1): class indices, checked. Else of `x`'s shape:
            weights, each row divided by its sum.
        ignore_index: the class index of rows that do not count, which may be no class.

    Raises:
        ValueError: a class index out of range or not whole.
        DTypeError: a weight that the dtype of `x` cannot hold.
        ShapeError: shapes that do not fit.
    """

    keeps = ("xs", "targets", "lse")
    constants = ("targets",)

    def __init__(self, t: Any, ignore_index: int | None = None) -> None:
        self.t, self.ignored = t, ignore_index

    def forward(self, x: Tensor) -> Tensor:
        t = as_tensor(self.t, x.device)
        whole_rows = t.numel == x.numel and t.shape == x.shape and t.numel != x.shape[0]
        t = ops.convert(t, x.dtype) if whole_rows else t
        loss, self.lse = ops.op("softmax_cross_entropy", ignored=self.ignored)(x, t)
        self.targets = t
        return loss

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`(softmax(x) - t) / rows`, of the rows that count."""
        saved = (self.load(i) for i in range(3))
        grad = ops.op("softmax_cross_entropy_grad", ignored=self.ignored)
        return (grad(dys[0], *saved),)


cross_entropy = function(CrossEntropy, "cross_entropy", floating, precision="wide")
binary_cross_entropy = function(
    BinaryCrossEntropy, "binary_cross_entropy", floating, precision="wide"
)


def target_of(t: Any, made: Tensor) -> Tensor:
    """What was made of a target, which passes a gradient on if the target gets one."""
    return made if is_traced(t) else made.detach()


@public(MeanSquareError, precision="wide")
def mse_loss(x: Tensor, t: Any, reduction: str = "mean") -> Tensor:
    """The mean of `(x - t) ** 2` over all elements; shapes must be equal (SINGA mse_loss, PyTorch
    mse_loss).

    Args:
        x: of any shape; integers become float32.
        t: of the shape of `x`; it gets a gradient where an operation has made it, or where it
            stores its gradient.
        reduction: "mean" (NaN of no elements) or "sum", both of shape (1,), or "none", of the
            shape of `x`. 16-bit floats are summed in float32.

    Raises:
        ShapeError: different shapes.
        ValueError: an unknown reduction.
    """
    check_reduction("mse_loss", reduction)
    if reduction == "mean":
        x = floating(x)
        if is_traced(t):
            return SquaredDifference()(x, convert(t, x.dtype))[0]
        return MeanSquareError(t)(x)[0]
    made, target = alike("mse_loss", x, t)
    apart = made - target_of(t, target)
    return reduced(apart * apart, reduction, result_dtype(x))


@public(Loss, RankingLoss, precision="wide")
def ranking_loss(pos: Tensor, neg: Tensor, M: float = 0.2) -> Tensor:
    """The mean of `max(0, M - pos + neg)`; shapes must be equal (SINGA ranking_loss)."""
    return RankingLoss(M)(pos, neg)[0]
