"""The gradient of attention as a composition that has gradients; it stores all weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ..tensor import Tensor
from . import ops
from .casting import cast
from .index import where
from .matmul import matmul
from .reduce import reduce_sum, softmax
from .shape import reshape, transpose


def attention_grad(
    scale: float, dropout: float, scores: bool, **rule: bool
) -> Callable[..., Any] | None:
    """The function for the engine's operation: None where weights are dropped."""

    def grad(
        dy: Tensor, q: Tensor, k: Tensor, v: Tensor, y: Tensor, lse: Tensor, *rest: Tensor
    ) -> tuple[Tensor, ...]:
        rows, turned = (*k.shape[:-2], -1), (*range(q.rank - 2), q.rank - 1, q.rank - 2)
        every = (*q.shape[:-1], k.shape[-2])
        # The queries of all heads that share keys, one below the other.
        dy_, q_ = (reshape(x, (*rows, x.shape[-1])) for x in (dy, q))
        k_turned, v_turned = transpose(k, turned), transpose(v, turned)
        products = reshape(matmul(q_, k_turned), every)
        weights = reshape(_weights(products * scale, iter(rest), **rule), (*rows, every[-1]))
        to_weights = matmul(dy_, v_turned)
        slopes = weights * (to_weights - reduce_sum(weights * to_weights, -1, 1))
        found = (
            reshape(matmul(slopes, k) * scale, q.shape),
            matmul(transpose(slopes, turned), q_) * scale,
            matmul(transpose(weights, turned), dy_),
        )
        if not scores:
            return found
        shape = every if q.rank > 2 else (1, *every)
        return *found, cast(reshape(slopes, shape), lse.dtype)

    return None if dropout else grad


def _weights(
    scores: Tensor, rest: Iterator[Tensor], causal: bool, mask: bool, lengths: bool, start: bool
) -> Tensor:
    """Softmax over the keys that each query sees; zeros for a query that sees none."""
    given = next(rest) if mask else None
    if given is not None and given.dtype.is_float:
        seen = given > -math.inf
        scores = scores + where(seen, cast(given, scores.dtype), 0.0)
    else:
        seen = given
    for one in _limits(scores, rest, causal, lengths, start):
        seen = one if seen is None else seen & one
    if seen is None:
        return softmax(scores, -1)
    # A row of -inf would be NaN.
    some = ops.reduce_op("any", (seen.rank - 1,), True)(seen)
    ends = (ops.full((), value, scores) for value in (-math.inf, 0.0))
    weights = softmax(where(seen, scores, ops.where(some, *ends)), -1)
    return where(seen, weights, 0.0)


def _limits(
    scores: Tensor, rest: Iterator[Tensor], causal: bool, lengths: bool, start: bool
) -> Iterator[Tensor]:
    """Which keys count, and which are not later than each query."""
    rows, columns = (ops.arange(n, scores) for n in scores.shape[-2:])
    rows = ops.reshape(rows, (rows.numel, 1))
    if lengths:
        yield columns < _beside(next(rest), scores)
    first = _beside(next(rest), scores) if start else 0
    if causal:
        yield columns <= rows + first


def _beside(counts: Tensor, scores: Tensor) -> Tensor:
    """Numbers of the batches, with axes of one element for heads, queries and keys."""
    return ops.reshape(counts, (*counts.shape, *(1,) * min(scores.rank, 3)))
