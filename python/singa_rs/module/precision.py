"""Mixed precision of a module: the type of its products, and the scale of its loss."""

from __future__ import annotations

from typing import Any

from .. import device, tensor
from ..autograd.precision import SHORT, Precision, Scale
from ..layer.base import Layer
from ..record import making_state
from ..tensor import Tensor

#: The first factor of the loss.
_FIRST = 2.0**16


class LossScale(Layer):
    """What the loss is multiplied by, and gradients divided by, in mixed precision in float16, so
    that small ones do not become 0 (Micikevicius et al., 2018). States `factor`, (1,) of float32,
    and `updates`, (1,) of int32, how many updates there were since it changed."""

    def __init__(self, to: device.Device) -> None:
        super().__init__()
        with making_state():
            self.factor = Tensor((1,), to, tensor.float32, requires_grad=False)
            self.updates = Tensor((1,), to, tensor.int32, requires_grad=False)
            for state in (self.factor, self.updates):
                state.set_account("states")
            self.factor.set_value(_FIRST)


def short_type(value: Any) -> Any:
    """The option `amp` as a dtype, None without it.

    Raises:
        ValueError: anything else.
    """
    found = {dtype.name: dtype for dtype in SHORT}
    name = getattr(value, "name", value)
    if value is None or (isinstance(name, str) and name in found):
        return found.get(name)
    raise ValueError(f'compile: got amp={value!r}, want "bfloat16", "float16" or None')


def precision_of(module: Any) -> Precision:
    """What a module that was compiled with `amp` computes in."""
    scale = module.__dict__.get("loss_scale")
    if scale is not None:
        scale = Scale(scale.factor, scale.updates)
    return Precision(module._amp, scale)
