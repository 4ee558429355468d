"""Losses of margins between scores, and of signs. Class indices get no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import ShapeError
from ..refusals import strict_flag
from ..shown import misgiven
from ..tensor import Tensor
from ..tensor.numbers import within
from . import ops
from .along import take_along_axis
from .classification import checked, class_weights, column, labels_of
from .distance import together
from .index import Where, as_indices, gather
from .lengths import pairwise_distance
from .loss import target_of
from .pairs_over import OverMargin
from .reduce import reduce_mean
from .shape import plain_reshape
from .table import FUNCTIONS, public
from .terms import alike, check_reduction, reduced, result_dtype, wide

_relu, _softplus, _minimum = (FUNCTIONS[name] for name in ("relu", "softplus", "minimum"))


@public(precision="wide")
def margin_ranking_loss(
    x1: Tensor, x2: Tensor, t: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """`max(0, margin - t * (x1 - x2))`: the first is to be the larger where `t` is 1, the second
    where it is -1 (PyTorch margin_ranking_loss).

    Args:
        x1, x2: scores of one shape; integers become float32. 16-bit floats are computed in
            float32.
        t: 1 or -1, of the same shape.
        margin: a finite number.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape of the scores.

    Raises:
        ShapeError: different shapes.
        ValueError: an unknown reduction.
    """
    name = "margin_ranking_loss"
    check_reduction(name, reduction)
    least = within(margin, f"{name}: margin", -3e38)
    (a, b), dtype = together(name, x1, x2)
    if a.shape != b.shape:
        raise ShapeError(f"{name}: got shapes {a.shape}, {b.shape}, want equal")
    a, sign = alike(name, a, t)
    apart = target_of(t, sign) * (a - b)
    return reduced(_relu(least - apart), reduction, dtype)


@public(precision="wide")
def hinge_embedding_loss(x: Tensor, t: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """`x` where `t` is 1, `max(0, margin - x)` where it is -1 (PyTorch hinge_embedding_loss).

    Args:
        x: distances of any shape; integers become float32. 16-bit floats are computed in float32.
        t: of the same shape: above zero for pairs that should be alike, else not, so that labels 1
            and 0 do as well as 1 and -1.
        margin: a finite number.
        reduction: as in `margin_ranking_loss`, and so are errors.
    """
    name = "hinge_embedding_loss"
    check_reduction(name, reduction)
    least = within(margin, f"{name}: margin", -3e38)
    made, sign = alike(name, x, t)
    alike_ones = ops.scalar_op("gt", 0)(sign.detach())
    terms = Where(alike_ones)(made, _relu(least - made))[0]
    return reduced(terms, reduction, result_dtype(x))


@public(precision="wide")
def soft_margin_loss(x: Tensor, t: Any, reduction: str = "mean") -> Tensor:
    """`log(1 + exp(-t * x))` without overflow, for `t` 1 or -1 (PyTorch soft_margin_loss).

    Args:
        x: scores of any shape; integers become float32. 16-bit floats are computed in float32.
        t: of the same shape.
        reduction: as in `margin_ranking_loss`, and so are errors.
    """
    check_reduction("soft_margin_loss", reduction)
    made, sign = alike("soft_margin_loss", x, t)
    terms = _softplus(-(made * target_of(t, sign)))
    return reduced(terms, reduction, result_dtype(x))


@public(precision="wide")
def multilabel_soft_margin_loss(
    x: Tensor, t: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """The mean over the classes of the cross entropy of sigmoid(x) with `t` (PyTorch
    multilabel_soft_margin_loss).

    Args:
        x: logits, (N, C) or (C,), or more axes before the classes.
        t: 1 for classes that apply, else 0; of the same shape.
        weight: one for each class.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape without classes.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: an unknown reduction.
    """
    name = "multilabel_soft_margin_loss"
    check_reduction(name, reduction)
    logits, target = alike(name, x, t)
    target = target_of(t, target)
    if not logits.rank or not logits.shape[-1]:
        raise ShapeError(f"{name}: got shape {x.shape}, want classes on the last axis")
    terms = target * _softplus(-logits) + (1 - target) * _softplus(logits)
    weights = class_weights(name, weight, logits, logits.rank - 1)
    terms = terms if weights is None else terms * weights
    return reduced(reduce_mean(terms, -1, False), reduction, result_dtype(x))


def _rows(name: str, x: Tensor) -> Tensor:
    """Scores as rows of classes, in the dtype in which a loss is computed."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {misgiven(x)}")
    if x.rank not in (1, 2) or not x.shape[-1]:
        raise ShapeError(f"{name}: got shape {x.shape}, want (N, C) or (C,) with classes")
    made = wide(x)
    return made if x.rank == 2 else plain_reshape(made, (1, x.shape[0]))


def _finished(name: str, terms: Tensor, x: Tensor, reduction: str) -> Tensor:
    """The reduced terms of rows; of a single row without a batch, one term of shape ()."""
    if x.rank == 1:
        terms = plain_reshape(terms, ())
    return reduced(terms, reduction, result_dtype(x))


@public(precision="wide")
def multi_margin_loss(
    x: Tensor,
    t: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over all classes but the right one of `max(0, margin - x[t] + x[i]) ** p`, divided by
    the number of classes (Crammer and Singer, 2001; PyTorch multi_margin_loss).

    Args:
        x: scores, (N, C) or (C,); integers become float32. 16-bit floats are computed in float32.
        t: class indices, (N,) or ().
        p: 1 or 2.
        margin: a finite number.
        weight: one for each class, of the right one.
        reduction: "mean" over the rows or "sum", both of shape (1,), or "none", (N,) or ().

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: a class index out of range or with a fraction, when it is used; another `p`; an
            unknown reduction.
    """
    name = "multi_margin_loss"
    check_reduction(name, reduction)
    least = within(margin, f"{name}: margin", -3e38)
    if p not in (1, 2):
        raise ValueError(f"{name}: got p {p!r}, want 1 or 2")
    rows = _rows(name, x)
    places = as_indices(t, name, x.device)
    if places.shape != x.shape[:-1]:
        raise ShapeError(f"{name}: got shapes {x.shape}, {places.shape}, want a class for each row")
    labels = labels_of(name, rows, ops.reshape(places, rows.shape[:1]), 1, None)
    own = column(labels.places, 1)
    over = _relu(least - take_along_axis(rows, own, 1) + rows)
    is_own = ops.op("binary", f="eq")(own, ops.arange(rows.shape[1], own))
    terms = Where(is_own)(ops.full((), 0, rows), over if p == 1 else over * over)[0]
    weights = class_weights(name, weight, rows, 1)
    made = reduce_mean(terms, 1, False)
    made = made if weights is None else made * gather(weights, 0, labels.places)
    return _finished(name, made, x, reduction)


@public(precision="wide")
def multilabel_margin_loss(x: Tensor, t: Any, reduction: str = "mean") -> Tensor:
    """The sum of `max(0, 1 - x[j] + x[i])` over the right classes `j` and all others `i`, divided
    by the number of classes (PyTorch multilabel_margin_loss).

    Args:
        x: scores, (N, C) or (C,); integers become float32. 16-bit floats are computed in float32.
        t: of the same shape: the indices of the right classes, and -1 behind the last of them,
            after which nothing counts.
        reduction: "mean" over the rows or "sum", both of shape (1,), or "none", (N,) or ().

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: a class index out of range or with a fraction, when it is used; an unknown
            reduction.
    """
    name = "multilabel_margin_loss"
    check_reduction(name, reduction)
    rows, places = _rows(name, x), as_indices(t, name, x.device)
    if places.shape != x.shape:
        raise ShapeError(f"{name}: got shapes {x.shape}, {places.shape}, want equal")
    places = ops.op("places", of=name, size=None)(ops.reshape(places, rows.shape))
    ended = ops.cast(ops.scalar_op("eq", -1)(places), places.dtype)
    ended = ops.op("scan", f="sum", axis=1, exclusive=False, reverse=False)(ended)
    counts = ops.scalar_op("eq", 0)(ended)
    places = checked(name, ops.where(counts, places, ops.full((), 0, places)), rows.shape[1])
    made = OverMargin(places, counts)(rows)[0]
    return _finished(name, made / rows.shape[1], x, reduction)


@public(precision="wide")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)` with any distance d (PyTorch
    triplet_margin_with_distance_loss).

    Args:
        anchor, positive, negative: tensors of one shape, (N, ...).
        distance_function: of two tensors; `pairwise_distance` by default.
        margin: at least 0.
        swap: whether `d(positive, negative)` takes the place of `d(anchor, negative)` where it is
            smaller.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape of a distance.

    Raises:
        ShapeError: different shapes.
        TypeError: a distance function that cannot be called, or that returns no tensor.
        ValueError: a margin below 0, or an unknown reduction.
    """
    name = "triplet_margin_with_distance_loss"
    check_reduction(name, reduction)
    least = within(margin, f"{name}: margin", 0)
    if distance_function is not None and not callable(distance_function):
        got = type(distance_function).__name__
        raise TypeError(f"{name}: got {got} for distance_function, want a callable")
    xs, dtype = together(name, anchor, positive, negative)
    if len({x.shape for x in xs}) > 1:
        raise ShapeError(f"{name}: got shapes {', '.join(str(x.shape) for x in xs)}, want equal")
    near, far = (_apart(name, distance_function, xs[0], x) for x in xs[1:])
    if strict_flag(swap, f"{name}: swap"):
        far = _minimum(far, _apart(name, distance_function, xs[1], xs[2]))
    return reduced(_relu(near - far + least), reduction, dtype)


def _apart(name: str, function: Callable[..., Any] | None, a: Tensor, b: Tensor) -> Tensor:
    made = pairwise_distance(a, b) if function is None else function(a, b)
    if not isinstance(made, Tensor):
        got = type(made).__name__
        raise TypeError(f"{name}: got {got} from distance_function, want a Tensor")
    return made
