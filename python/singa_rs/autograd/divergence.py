"""Losses between distributions, computed from logits and log probabilities. Gradients also flow
into targets that are tensors."""

from __future__ import annotations

from typing import Any

from .._core import ShapeError
from ..refusals import strict_flag
from ..tensor import Tensor
from . import ops, unary
from .index import Where
from .table import public
from .terms import REDUCTIONS, alike, check_reduction, like, reduced, result_dtype

_exp, _log, _softplus = (unary.FUNCTIONS[name] for name in ("exp", "log", "softplus"))


def weighted(name: str, what: str, terms: Tensor, weight: Any) -> Tensor:
    """Terms times a weight that broadcasts to their shape."""
    if weight is None:
        return terms
    weight = like(name, weight, terms)
    try:
        made = terms * weight
    except ShapeError:
        made = None
    if made is None or made.shape != terms.shape:
        want = f"a {what} that broadcasts to the shape of x"
        raise ShapeError(f"{name}: got shapes {terms.shape}, {weight.shape}, want {want}")
    return made


@public(precision="wide")
def binary_cross_entropy_with_logits(
    x: Tensor,
    t: Any,
    weight: Any = None,
    pos_weight: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of the probabilities sigmoid(x) with `t`, exact for large logits (PyTorch
    binary_cross_entropy_with_logits).

    `pos_weight * t * softplus(-x) + (1 - t) * softplus(x)`. A perfect prediction has the loss 0,
    unlike in SINGA's `binary_cross_entropy`, which takes probabilities.

    Args:
        x: logits, floats of any shape; integers become float32. 16-bit floats are computed in
            float32.
        t: probabilities, of the same shape.
        weight: factors of the terms; broadcasts to `x`.
        pos_weight: factors of the terms of `t`, such as one for each class; broadcasts to `x`.
        reduction: "mean" over all elements or "sum", both of shape (1,), or "none", of the shape
            of `x`.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: an unknown reduction.
    """
    name = "binary_cross_entropy_with_logits"
    check_reduction(name, reduction)
    logits, target = alike(name, x, t)
    positive = weighted(name, "pos_weight", target * _softplus(-logits), pos_weight)
    terms = positive + (1 - target) * _softplus(logits)
    terms = weighted(name, "weight", terms, weight)
    return reduced(terms, reduction, result_dtype(x))


@public(precision="wide")
def kl_div(x: Tensor, t: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The divergence `t * (log(t) - x)` of log probabilities `x` from probabilities `t` (Kullback
    and Leibler, 1951; PyTorch kl_div). It is 0 where `t` is 0.

    Args:
        x: log probabilities, floats of any shape. 16-bit floats are computed in float32.
        t: probabilities of the same shape, or their logarithms.
        reduction: "mean" over all elements, "batchmean", the sum divided by `x.shape[0]`, or
            "sum", all of shape (1,); "none", of the shape of `x`. The divergence of distributions
            is "batchmean".
        log_target: whether `t` holds logarithms.

    Raises:
        ShapeError: different shapes.
        ValueError: an unknown reduction.
    """
    check_reduction("kl_div", reduction, (*REDUCTIONS, "batchmean"))
    is_log = strict_flag(log_target, "kl_div: log_target")
    logs, target = alike("kl_div", x, t)
    if reduction == "batchmean" and not logs.rank:
        raise ShapeError("kl_div: got shape (), want rows for batchmean")
    terms = _exp(target) * (target - logs) if is_log else _divergence(logs, target)
    if reduction == "batchmean":
        return reduced(terms, "mean", result_dtype(x), x.shape[0])
    return reduced(terms, reduction, result_dtype(x))


def _divergence(logs: Tensor, target: Tensor) -> Tensor:
    """`t * (log(t) - x)`, and 0 where t is 0, whatever x is."""
    none = ops.scalar_op("eq", 0)(target)
    zero, one = (ops.full((), value, target) for value in (0, 1))
    logarithm = _log(Where(none)(one, target)[0])
    return Where(none)(zero, target * (logarithm - logs))[0]
