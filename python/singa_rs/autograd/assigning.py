"""Methods that write into the tensor's own memory: the names of others with `_` at the end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .._core import ShapeError
from ..errors import called
from ..tensor import Tensor
from ..tensor.numbers import as_number
from . import (
    aliases,
    angles,
    arrange,
    binary,
    finite,
    ops,
    pairs,
    parametrised,
    powers,
    products,
    putting,
    scan,
    scattering,
    special,
)
from .inplace import assigned, join, put
from .shape import clone
from .table import FUNCTIONS, METHODS, as_method
from .unary import Elementwise

#: Where the methods come from, which have to be there first.
_HOMES = (
    aliases, angles, arrange, finite, pairs, parametrised, powers, products, putting, scan,
    scattering, special,
)  # fmt: skip
#: Functions element by element, which need no other memory, ...
_UNARY = [name for name in vars(Elementwise) if not name.startswith("_")]
#: ... and other methods whose results have the tensor's shape and dtype.
_OTHERS = """
    add sub mul div remainder floor_divide pow fmod hypot copysign heaviside xlogy xlog1py lerp
    addcmul addcdiv polygamma
    cbrt rsqrt sinc deg2rad rad2deg trunc frac logit
    clip leakyrelu elu selu hardsigmoid nan_to_num masked_fill tril triu cumsum cumprod
    index_add index_copy index_fill scatter_add addmm baddbmm
    clamp atan2 ldexp addmv addr addbmm scatter scatter_reduce index_put masked_scatter
    absolute neg multiply subtract divide
""".split()
#: Those whose gradients do not need the old value. Others get a copy of it.
_FORGET = {
    *"""
    add sub masked_fill tril triu cumsum index_add index_copy index_fill scatter_add addmm baddbmm
    deg2rad rad2deg addmv addr addbmm index_put masked_scatter neg subtract
""".split()
}


def _forgets(name: str) -> bool:
    """Whether what a method keeps for its gradient does not include the tensor's value."""
    if name in _UNARY:
        row = getattr(Elementwise, name)
        return FUNCTIONS[row.kind].saves != "x"
    return name in _FORGET


def _in_place(name: str) -> Callable[..., Tensor]:
    """The method `name_`, of the method `name`."""
    function = METHODS[name] if name != "pow" else binary.FUNCTIONS["pow"]
    computed = "rounde" if name == "round" else name
    row = getattr(Elementwise, computed, None)
    forgets = _forgets(name)
    op = None if row is None else ops.op("unary", f=row.f or computed)

    def assign(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        is_recorded = join(self, *args, *kwargs.values())
        if op is not None and self.dtype.is_float and not (args or kwargs or is_recorded):
            op.into([self], [self])
            return self
        old = clone(self) if is_recorded and not forgets else self
        return assigned(self, f"{name}_", lambda: function(old, *args, **kwargs))

    first, *rest = inspect.signature(function).parameters.values()
    own = first.replace(name="self", annotation="Tensor")
    assign.__signature__ = inspect.Signature([own, *rest], return_annotation="Tensor")
    doc = f"`{name}`, written into the tensor's own memory, whose shape and dtype stay."
    return called(assign, f"{name}_", doc, __package__)


for _name in (*_UNARY, *_OTHERS):
    as_method(f"{_name}_")(_in_place(_name))


@as_method("fill_")
def _fill(self: Tensor, value: Any) -> Tensor:
    """Writes a number, or a tensor of one element, which gets the gradient, into every element
    (PyTorch fill_).

    Raises:
        ShapeError: several elements.
        ValueError, DTypeError: a number that the dtype cannot hold.
    """
    number = None if isinstance(value, Tensor) else as_number(value)
    if number is not None:
        return self.set_value(number)
    if not isinstance(value, Tensor):
        raise TypeError(f"fill_: got {type(value).__name__}, want a number or a Tensor")
    if value.numel != 1:
        raise ShapeError(f"fill_: got a value of shape {value.shape}, want one element")
    put(self, Ellipsis, value.reshape(()), "fill_")
    return self


@as_method("zero_")
def _zero(self: Tensor) -> Tensor:
    """Writes zeros (PyTorch zero_)."""
    return self.set_value(0)


@as_method("copy_")
def _copy(self: Tensor, source: Any) -> Tensor:
    """Writes a tensor, an array or a number that broadcasts to the shape (PyTorch copy_); a tensor
    gets the gradient.

    Raises:
        ShapeError: a shape that does not broadcast.
        DTypeError: a value that the dtype cannot hold.
    """
    put(self, Ellipsis, source, "copy_")
    return self


@as_method("normal_")
def _normal(self: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Writes normally distributed numbers (PyTorch normal_): `gaussian` with defaults."""
    return self.gaussian(mean, std)


@as_method("uniform_")
def _uniform(self: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Writes numbers drawn uniformly from [low, high) (PyTorch uniform_)."""
    return self.uniform(low, high)


@as_method("bernoulli_")
def _bernoulli(self: Tensor, p: float = 0.5) -> Tensor:
    """Writes ones with probability `p`, else zeros (PyTorch bernoulli_)."""
    return self.bernoulli(p)
