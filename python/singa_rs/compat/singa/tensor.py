"""SINGA's `tensor`: `singa_rs.tensor`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import tensor as _tensor
from ...tensor import Tensor, from_raw_tensor
from ..raw import RawTensor
from .names import names_of

globals().update(names_of(_tensor))

#: SINGA's name for the class of raw tensors.
CTensor = RawTensor


def _call_singa_func(_singa_func: Callable[..., Any], *args: Any) -> Tensor:
    """What a function of `singa_wrap` makes of raw tensors, as a tensor (SINGA
    _call_singa_func)."""
    return from_raw_tensor(_singa_func(*args))
