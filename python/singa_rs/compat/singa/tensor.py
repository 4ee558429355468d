"""SINGA's `tensor`: `singa_rs.tensor`, with SINGA's rule for `softmax`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import tensor as _tensor
from ...errors import named
from ...tensor import Tensor, from_raw_tensor
from ..raw import RawTensor
from . import rules
from .names import names_of

globals().update(names_of(_tensor))

#: SINGA's name for the class of raw tensors.
CTensor = RawTensor


def _softmax(t: Tensor, out: Tensor | None = None) -> Tensor:
    """Softmax over all axes but the first (SINGA softmax), or over the only one; written into `out`
    if given."""
    made = rules.softmax(t, 1 if t.rank > 1 else 0)
    if out is None:
        return made
    out.copy_from(made)
    return out


def _call_singa_func(_singa_func: Callable[..., Any], *args: Any) -> Tensor:
    """What a function of `singa_wrap` makes of raw tensors, as a tensor (SINGA
    _call_singa_func)."""
    return from_raw_tensor(_singa_func(*args))


softmax = named(_softmax, __name__, "softmax")
