"""Losses of distances and angles. Gradients also flow into targets that are tensors."""

from __future__ import annotations

import math
from typing import Any

from .._core import DType, ShapeError
from ..refusals import strict_flag
from ..shown import misgiven
from ..tensor import Tensor
from ..tensor.numbers import whole, within
from . import binary, ops, unary  # noqa: F401 - their rows are in the table then
from .casting import cast, promoted
from .index import Where
from .reduce import as_axes, reduce_max, reduce_sum
from .table import FUNCTIONS, public
from .terms import alike, check_reduction, like, raised, reduced, result_dtype, wide

#: The least square whose root a float32 and its gradient can hold.
_LEAST_SQUARE = 1e-37
_NAMES = ("abs", "relu", "sqrt", "clip", "minimum")
_abs, _relu, _sqrt, _clip, _minimum = (FUNCTIONS[name] for name in _NAMES)


@public(precision="wide")
def l1_loss(x: Tensor, t: Any, reduction: str = "mean") -> Tensor:
    """`|x - t|` (PyTorch l1_loss).

    Args:
        x: floats of any shape; integers become float32. 16-bit floats are computed in float32.
        t: a tensor, array or list of the same shape.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape of `x`.

    Raises:
        ShapeError: different shapes.
        ValueError: an unknown reduction.
    """
    check_reduction("l1_loss", reduction)
    wide_x, wide_t = alike("l1_loss", x, t)
    return reduced(_abs(wide_x - wide_t), reduction, result_dtype(x))


def _huber(x: Tensor, t: Tensor, delta: float) -> Tensor:
    """`d**2 / 2` for distances d up to delta, `delta * (d - delta / 2)` beyond."""
    distance = _abs(x - t)
    near = _clip(distance, None, delta)
    return near * (distance - near * 0.5)


@public(precision="wide")
def huber_loss(x: Tensor, t: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """`d**2 / 2` for distances `d = |x - t|` up to delta, `delta * (d - delta / 2)` beyond (Huber,
    1964; PyTorch huber_loss).

    `x`, `t`, `reduction` and errors are as in `l1_loss`; `delta` is above 0.
    """
    check_reduction("huber_loss", reduction)
    delta = within(delta, "huber_loss: delta", math.ulp(0.0))
    wide_x, wide_t = alike("huber_loss", x, t)
    terms = _huber(wide_x, wide_t, delta)
    return reduced(terms, reduction, result_dtype(x))


@public(precision="wide")
def smooth_l1_loss(x: Tensor, t: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """`d**2 / (2 * beta)` for distances `d = |x - t|` up to beta, `d - beta / 2` beyond (Girshick,
    2015; PyTorch smooth_l1_loss). With beta 0 it is `l1_loss`.

    `x`, `t`, `reduction` and errors are as in `l1_loss`; `beta` is at least 0.
    """
    name = "smooth_l1_loss"
    check_reduction(name, reduction)
    beta = within(beta, f"{name}: beta", 0)
    wide_x, wide_t = alike(name, x, t)
    terms = _huber(wide_x, wide_t, beta) / beta if beta else _abs(wide_x - wide_t)
    return reduced(terms, reduction, result_dtype(x))


# ---- angles --------------------------------------------------------------------------------------


def _root(squares: Tensor, least: float) -> Tensor:
    """The root of a sum of squares, at least that of `least`, where its gradient is zero: that of a
    root at zero is infinite."""
    return _sqrt(_clip(squares, least, None))


def together(name: str, *xs: Any) -> tuple[list[Tensor], DType]:
    """Tensors in the dtype to compute in, and the dtype of the result."""
    for x in xs:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: {misgiven(x)}")
    given = promoted(xs)
    made = [wide(x) for x in given]
    return made, result_dtype(given[0])


def _cosine(a: Tensor, b: Tensor, axis: int, eps: float) -> Tensor:
    lengths = [raised(_root(reduce_sum(x * x, axis, 1), _LEAST_SQUARE), eps) for x in (a, b)]
    return reduce_sum(a * b / (lengths[0] * lengths[1]), axis, 0)


@public(precision="wide")
def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis (PyTorch cosine_similarity).

    Args:
        x1, x2: tensors of as many axes, which broadcast, with the same extent along the axis;
            integers become float32.
        axis: the vectors' axis (PyTorch's `dim`), which the result lacks.
        eps: the least length, which takes the place of a smaller one; from 1e-18. The gradient is
            that of the length itself then, as in PyTorch.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: an axis that the tensors do not have, or `eps` out of its range.
    """
    name = "cosine_similarity"
    eps = within(eps, f"{name}: eps", 1e-18)
    (a, b), dtype = together(name, x1, x2)
    (along,) = as_axes(whole(axis, f"{name}: axis"), a.rank, name)
    if a.rank != b.rank or a.shape[along] != b.shape[along]:
        want = f"as many axes and the same extent along axis {axis}"
        raise ShapeError(f"{name}: got shapes {a.shape}, {b.shape}, want {want}")
    return cast(_cosine(a, b, along, eps), dtype)


@public(precision="wide")
def cosine_embedding_loss(
    x1: Tensor, x2: Tensor, t: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """`1 - cos(x1, x2)` where `t` is 1, `max(0, cos(x1, x2) - margin)` where it is -1 (PyTorch
    cosine_embedding_loss).

    Args:
        x1, x2: (N, D), or (D,) for one pair.
        t: (N,), or () for one pair: above zero for pairs that should be alike, else not, so that
            labels 1 and 0 do as well as 1 and -1.
        margin: from -1 to 1.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape of `t`.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: a margin out of its range, or an unknown reduction.
    """
    name = "cosine_embedding_loss"
    check_reduction(name, reduction)
    margin = within(margin, f"{name}: margin", -1, 1)
    (a, b), dtype = together(name, x1, x2)
    t = like(name, t, a)
    if a.rank not in (1, 2) or a.shape != b.shape or t.shape != a.shape[:-1]:
        shapes = f"{a.shape}, {b.shape}, {t.shape}"
        raise ShapeError(f"{name}: got shapes {shapes}, want (N, D), (N, D), (N,)")
    cosine = _cosine(a, b, a.rank - 1, 1e-6)  # PyTorch adds 1e-12 to the squares of lengths
    terms = Where(ops.scalar_op("gt", 0)(t))(1 - cosine, _relu(cosine - margin))[0]
    return reduced(terms, reduction, dtype)


# ---- triplets ------------------------------------------------------------------------------------


def _distance(a: Tensor, b: Tensor, p: float, eps: float) -> Tensor:
    """The p-norm along the last axis of the difference plus `eps`."""
    apart = a - b + eps
    if p == 2:
        return _root(reduce_sum(apart * apart, -1, 0), _LEAST_SQUARE)
    if p == 1:
        return reduce_sum(_abs(apart), -1, 0)
    if math.isinf(p):
        return reduce_max(_abs(apart), -1, 0)
    return _clip(reduce_sum(_abs(apart) ** p, -1, 0), _LEAST_SQUARE, None) ** (1 / p)


@public(precision="wide")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)` with the p-norm of the
    difference plus eps as distance d (Balntas et al., 2016; PyTorch triplet_margin_loss).

    Args:
        anchor, positive, negative: (..., D).
        margin, eps: at least 0.
        p: the norm's exponent, at least 1; infinity for the largest difference.
        swap: whether `d(positive, negative)` takes the place of `d(anchor, negative)` where it is
            smaller.
        reduction: "mean" or "sum", both of shape (1,), or "none", of shape (...,).

    Raises:
        ShapeError: different shapes.
        ValueError: a number out of its range, or an unknown reduction.
    """
    name = "triplet_margin_loss"
    check_reduction(name, reduction)
    margin, eps = within(margin, f"{name}: margin", 0), within(eps, f"{name}: eps", 0)
    p = math.inf if p == math.inf else within(p, f"{name}: p", 1)
    xs, dtype = together(name, anchor, positive, negative)
    if not xs[0].rank or len({x.shape for x in xs}) > 1:
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"{name}: got shapes {shapes}, want equal ones of (..., D)")
    near, far = (_distance(xs[0], x, p, eps) for x in xs[1:])
    if strict_flag(swap, f"{name}: swap"):
        far = _minimum(far, _distance(xs[1], xs[2], p, eps))
    return reduced(_relu(near - far + margin), reduction, dtype)
