"""Making a layer's tensors."""

from __future__ import annotations

import math
from typing import Any

from .. import initializer
from ..autograd.precision import stored_in
from ..record import making_state
from ..tensor import Tensor, float32
from ..tensor.dtypes import promote


def _dtype(like: Tensor, wide: bool) -> Any:
    """That of a parameter: what `like` has, or float32 in mixed precision and, if it is to be
    `wide`, instead of 16-bit floats."""
    stored = stored_in(like.dtype)
    return promote(stored, float32) if wide else stored


def parameter(
    shape: tuple[int, ...], like: Tensor, fill: Any, argument: str, wide: bool = False
) -> Tensor:
    """A tensor that stores its gradient, with the device and dtype of `like` (float32 in mixed
    precision, or in place of 16-bit floats if `wide`), filled by an initialiser or its name."""
    with making_state():
        dtype = _dtype(like, wide)
        made = Tensor(shape, like.device, dtype, stores_grad=True)
        made.set_account("parameters")
        initializer.get(fill, argument)(made)
    return made


def state(shape: tuple[int, ...], like: Tensor, value: float, wide: bool = False) -> Tensor:
    """A tensor without a gradient, with the device and dtype of `like`, as for `parameter`."""
    with making_state():
        dtype = _dtype(like, wide)
        made = Tensor(shape, like.device, dtype, requires_grad=False)
        made.set_account("states")
        return made.set_value(value)


def normal(variance: float) -> initializer.Initializer:
    """An initialiser: normal with mean 0."""
    return lambda t: t.gaussian(0.0, math.sqrt(variance))
