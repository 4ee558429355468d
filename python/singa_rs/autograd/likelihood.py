"""Negative log likelihoods of counts, of numbers with a variance, and of probabilities."""

from __future__ import annotations

import math
from typing import Any

from .._core import ShapeError
from ..refusals import strict_flag
from ..tensor import Tensor
from ..tensor.numbers import within
from . import ops
from .divergence import weighted
from .index import Where
from .rule import Rule
from .table import FUNCTIONS, public
from .terms import alike, check_reduction, like, raised, reduced, result_dtype

_exp, _log = (FUNCTIONS[name] for name in ("exp", "log"))


@public(precision="wide")
def poisson_nll_loss(
    x: Tensor,
    t: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of counts `t` that are Poisson distributed with the mean exp(x),
    or `x` itself (PyTorch poisson_nll_loss).

    `exp(x) - t * x`, or `x - t * log(x + eps)` without `log_input`.

    Args:
        x: floats of any shape; integers become float32. 16-bit floats are computed in float32.
        t: counts of the same shape; gradients flow into a tensor.
        log_input: whether `x` is the logarithm of the mean.
        full: whether to add what depends on `t` alone, `log(t!)` by Stirling's formula,
            `t * log(t) - t + log(2 * pi * t) / 2` where `t` is above 1, else 0.
        eps: above 0.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape of `x`.

    Raises:
        ShapeError: different shapes.
        ValueError: a number out of its range, or an unknown reduction.
    """
    name = "poisson_nll_loss"
    check_reduction(name, reduction)
    is_log = strict_flag(log_input, f"{name}: log_input")
    is_full = strict_flag(full, f"{name}: full")
    least = within(eps, f"{name}: eps", math.ulp(0.0))
    made, target = alike(name, x, t)
    terms = _exp(made) - target * made if is_log else made - target * _log(made + least)
    if is_full:
        terms = terms + _stirling(target)
    return reduced(terms, reduction, result_dtype(x))


def _stirling(t: Tensor) -> Tensor:
    some = ops.scalar_op("gt", 1)(t.detach())
    zero, one = (ops.full((), value, t) for value in (0, 1))
    count = Where(some)(t, one)[0]
    logarithm = _log(count)
    made = count * logarithm - count + (logarithm + math.log(2 * math.pi)) * 0.5
    return Where(some)(made, zero)[0]


@public(precision="wide")
def gaussian_nll_loss(
    x: Tensor,
    t: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of numbers `t` that are normally distributed around `x` with
    variances `var`: `(log(var) + (x - t)**2 / var) / 2` (Nix and Weigend, 1994; PyTorch
    gaussian_nll_loss).

    Args:
        x: floats of any shape; integers become float32. 16-bit floats are computed in float32.
        t: of the same shape; gradients flow into a tensor.
        var: a number, or a tensor of the shape of `x`, of that with 1 as the last extent, or of
            that without the last axis. What is below `eps` counts as `eps`, but gets the gradient
            of a variance `eps`, which leads out of there, as in PyTorch.
        full: whether to add the constant `log(2 * pi) / 2`.
        eps: above 0.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape of `x`.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: a number out of its range, or an unknown reduction.
    """
    name = "gaussian_nll_loss"
    check_reduction(name, reduction)
    is_full, least = strict_flag(full, f"{name}: full"), within(eps, f"{name}: eps", 1e-37)
    made, target = alike(name, x, t)
    spread = raised(_variances(name, var, made), least)
    apart = made - target
    terms = (_log(spread) + apart * apart / spread) * 0.5
    if is_full:
        terms = terms + 0.5 * math.log(2 * math.pi)
    return reduced(terms, reduction, result_dtype(x))


def _variances(name: str, var: Any, x: Tensor) -> Tensor:
    made = like(name, var, x)
    if made.shape == x.shape[:-1] and made.shape != x.shape:
        made = made.unsqueeze(-1) if x.rank else made
    if made.shape not in (x.shape, (*x.shape[:-1], 1), (), (1,) * x.rank):
        want = "a number, the same, or that without the last axis"
        raise ShapeError(f"{name}: got shapes {x.shape}, variances {made.shape}, want {want}")
    return made


@public(precision="wide")
def bce_loss(x: Tensor, t: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """The cross entropy of probabilities `x` with `t`, whose logarithms are -100 at least (PyTorch
    binary_cross_entropy). `binary_cross_entropy` is SINGA's; that of logits,
    `binary_cross_entropy_with_logits`, is exact.

    Args:
        x: probabilities of any shape, which are not checked: outside of [0, 1] the loss is NaN.
            16-bit floats are computed in float32.
        t: probabilities, of the same shape.
        weight: factors of the terms; broadcasts to `x`.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape of `x`.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: an unknown reduction.
    """
    check_reduction("bce_loss", reduction)
    made, target = alike("bce_loss", x, t)
    logs = [_BoundedLog()(one)[0] for one in (made, 1 - made)]
    terms = -(target * logs[0] + (1 - target) * logs[1])
    terms = weighted("bce_loss", "weight", terms, weight)
    return reduced(terms, reduction, result_dtype(x))


class _BoundedLog(Rule):
    """Logarithms, -100 at least; the gradient is 1e12 at most, so that probabilities of 0 rise."""

    keeps = ("xs",)

    def forward(self, x: Tensor) -> Tensor:
        return ops.scalar_op("maximum", -100)(ops.op("unary", f="log")(x))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy / max(x, 1e-12)`."""
        return (ops.div(dys[0], ops.scalar_op("maximum", 1e-12)(self.load(0))),)
