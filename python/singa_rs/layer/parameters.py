"""Making a layer's tensors."""

from __future__ import annotations

import math
from typing import Any

from .. import autograd, initializer
from ..record import making_state
from ..tensor import Tensor


def parameter(shape: tuple[int, ...], like: Tensor, fill: Any, argument: str) -> Tensor:
    """A tensor that stores its gradient, with the device and dtype of `like` (float32 in mixed
    precision), filled by an initialiser or its name."""
    with making_state():
        dtype = autograd._stored_in(like.dtype)
        made = Tensor(shape, like.device, dtype, stores_grad=True)
        made.set_account("parameters")
        initializer.get(fill, argument)(made)
    return made


def state(shape: tuple[int, ...], like: Tensor, value: float) -> Tensor:
    """A tensor without a gradient, with the device and dtype of `like`."""
    with making_state():
        dtype = autograd._stored_in(like.dtype)
        made = Tensor(shape, like.device, dtype, requires_grad=False)
        made.set_account("states")
        return made.set_value(value)


def normal(variance: float) -> initializer.Initializer:
    """An initialiser: normal with mean 0."""
    return lambda t: t.gaussian(0.0, math.sqrt(variance))
