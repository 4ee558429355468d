"""Lengths of vectors, and distances between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import real, whole, within
from .blocks import blocks
from .casting import cast, floating, promoted
from .index import gather, getitem, where
from .reduce import as_axes
from .shape import cat
from .statistics import narrowed, norm
from .table import public
from .terms import wide


@public(methods="normalize", precision="wide")
def normalize(x: Tensor, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor:
    """`x` divided by its norms along an axis, or by `eps` where they are less (PyTorch normalize,
    ONNX LpNormalization).

    Args:
        x: any shape but (); integers become float32, and sums of 16-bit floats are in float32.
        p: the order of the norm, from 1, infinity, or 0, how many elements are not 0.
        axis: the axis of the vectors.
        eps: from 0.

    Raises:
        ValueError: another order; an axis that `x` does not have.
    """
    least = within(eps, "normalize: eps", 0)
    (along,) = as_axes(whole(axis, "normalize: axis"), x.rank, "normalize")
    x_wide = wide(x)
    length = norm(x_wide, real(p, "normalize: p"), along, True)
    short = length.detach() < least
    return narrowed(x_wide / where(short, least, length), x)


@public(precision="wide")
def pairwise_distance(
    a: Tensor, b: Any, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False
) -> Tensor:
    """The norms of `a - b + eps` along the last axis (PyTorch pairwise_distance).

    Args:
        a, b: vectors that broadcast, (..., D); integers become float32.
        p: the order of the norm, from 1, infinity, or 0, how many elements differ.
        eps: what is added to each difference.
        keepdims: whether the last axis stays, with extent 1.

    Raises:
        ShapeError: shapes that do not broadcast, or no axis.
        ValueError: another order.
    """
    a, b = (floating(t) for t in promoted((a, b)))
    if not a.rank or not b.rank:
        raise ShapeError(f"pairwise_distance: got shapes {a.shape}, {b.shape}, want an axis")
    apart = wide(a) - wide(b) + real(eps, "pairwise_distance: eps")
    return cast(norm(apart, real(p, "pairwise_distance: p"), -1, bool(keepdims)), a.dtype)


@public(precision="wide")
def cdist(a: Tensor, b: Any, p: float = 2.0) -> Tensor:
    """The distances of all rows of `a` to all rows of `b`, (..., n, m) (PyTorch cdist). The
    gradient of a distance of 0 is 0.

    Args:
        a, b: (..., n, D) and (..., m, D), whose first axes broadcast; integers become float32.
        p: the order of the norm, from 1, infinity, or 0, how many elements differ.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: another order.
    """
    a, b = (floating(t) for t in promoted((a, b)))
    if a.rank < 2 or b.rank < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: got shapes {a.shape}, {b.shape}, want rows of one length")
    rows, others, order = wide(a), wide(b), real(p, "cdist: p")
    first, last = ((*(1,) * (max(a.rank, b.rank) - t.rank), *t.shape)[:-2] for t in (a, b))
    each = others.shape[-2] * a.shape[-1] * math.prod(map(max, first, last))
    parts = [_block(rows, others, part, order) for part in blocks(a.shape[-2], each)]
    return cast(parts[0] if len(parts) == 1 else cat(parts, parts[0].rank - 2), a.dtype)


def _block(rows: Tensor, others: Tensor, part: slice, p: float) -> Tensor:
    """The distances of some rows to all others."""
    if part.stop - part.start < rows.shape[-2]:
        rows = getitem(rows, (..., part, slice(None)))
    return norm(rows.unsqueeze(-2) - others.unsqueeze(-3), p, -1)


@public(precision="wide")
def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows, (n * (n - 1) / 2,), the first row with the others first
    (PyTorch pdist). The gradient of a distance of 0 is 0.

    Args:
        x: (n, D); integers become float32.
        p: the order of the norm, from 1, infinity, or 0, how many elements differ.

    Raises:
        ShapeError: another number of dimensions.
        ValueError: another order.
    """
    if x.rank != 2:
        raise ShapeError(f"pdist: got shape {x.shape}, want rows")
    x, order = floating(x), real(p, "pdist: p")
    rows, (first, second) = wide(x), np.triu_indices(x.shape[0], 1)
    parts = []
    for part in blocks(first.size, x.shape[1]):
        apart = gather(rows, 0, first[part]) - gather(rows, 0, second[part])
        parts.append(norm(apart, order, -1))
    return cast(parts[0] if len(parts) == 1 else cat(parts), x.dtype)
