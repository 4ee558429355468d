"""Which elements of a gradient are exchanged: those above a threshold, or the largest."""

from __future__ import annotations

import math
from typing import Any

from .. import autograd
from ..refusals import is_real
from ..tensor import Tensor, zeros_like


def check_sparsity(spars: Any, top_k: bool, name: str) -> float:
    """A threshold, or the share of the elements that are chosen.

    Raises:
        TypeError: not a number.
        ValueError: a share that is not above 0 and at most 1, a threshold below 0.
    """
    if not is_real(spars):
        raise TypeError(f"{name}: got spars {spars!r:.80}, want a number")
    value = float(spars)
    if top_k and not 0 < value <= 1:
        raise ValueError(f"{name}: got spars {spars!r}, want a share above 0 and at most 1")
    if not value >= 0 or math.isinf(value):
        raise ValueError(f"{name}: got spars {spars!r}, want a threshold from 0")
    return value


def chosen(x: Tensor, spars: float, top_k: bool) -> Tensor:
    """A tensor of one axis with zeros in the place of all elements except those whose absolute
    value is at least `spars`, or, for `top_k`, the `ceil(spars * size)` of the largest.

    NaN is chosen, so that it is not lost.
    """
    size = autograd.abs(x)
    if not top_k:
        return autograd.where(size < spars, zeros_like(x), x)
    count = math.ceil(spars * x.numel)
    indices = autograd.topk(size, count, 0).indices
    values = autograd.gather(x, 0, indices)
    return autograd.scatter_elements(zeros_like(x), indices, values, 0)
