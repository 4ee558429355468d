"""The methods that `Tensor` gets from this package: operators, and functions as methods."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from typing import Any

from .. import _core
from .._core import DTypeError
from ..naming import named
from ..tensor import Tensor, as_tensor
from . import contract, inplace, math, reduce, shape, unary
from .casting import cast
from .engine import leave_gradients
from .index import getitem
from .matmul import matmul
from .repeat import repeat
from .softmax import softmax
from .tape import Dummy, Operator, Port, retain

_binary = math.FUNCTIONS


def _comparison(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Any]:
    """A comparison that leaves None and text to Python instead of raising an error."""

    def compare(a: Tensor, b: Any) -> Any:
        if b is None or isinstance(b, (str, bytes)):
            return NotImplemented
        return function(a, b)

    compare.__doc__ = function.__doc__
    return compare


def _reflected(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    def reflected(a: Tensor, b: Any) -> Tensor:
        return function(b, a)

    reflected.__doc__ = function.__doc__
    return reflected


def _bools(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`&`, `|`, `^` and `~`: of bool tensors only, as integers have no bitwise operations."""

    def logical(*xs: Any) -> Tensor:
        tensors = [as_tensor(x) for x in xs]
        if any(t.dtype != _core.bool_ for t in tensors):
            got = ", ".join(t.dtype.name for t in tensors)
            raise DTypeError(f"{name}: got dtype {got}, want bool")
        return function(*tensors)

    logical.__doc__ = function.__doc__
    return named(logical, Tensor.__module__, name)


_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "pow": "pow",
    "floordiv": "floor_divide",
    "mod": "remainder",
}
_COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
_LOGICAL = {"and": "_and", "or": "_or", "xor": "_xor"}


def _operators() -> dict[str, Any]:
    product = named(matmul, Tensor.__module__)
    made: dict[str, Any] = {"__matmul__": product, "__neg__": unary.FUNCTIONS["negative"]}
    made["__rmatmul__"] = _reflected(product)
    made["__abs__"] = unary.FUNCTIONS["abs"]
    made["__pos__"] = shape.clone
    made["__invert__"] = _bools("not", unary.FUNCTIONS["_not"])
    for name, function in _OPERATORS.items():
        made[f"__{name}__"] = _binary[function]
        made[f"__r{name}__"] = _reflected(_binary[function])
    made["__div__"], made["__rdiv__"] = made["__truediv__"], made["__rtruediv__"]
    for name, function in _COMPARISONS.items():
        made[f"__{name}__"] = _comparison(_binary[function])
    for name, function in _LOGICAL.items():
        made[f"__{name}__"] = made[f"__r{name}__"] = _bools(name, _binary[function])
    return {**made, **inplace.IN_PLACE}


def _reduction(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """NumPy's spelling: `axis` and `keepdims`, which is False by default."""

    def method(self: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        return function(self, axis, keepdims)

    method.__doc__ = function.__doc__
    return method


def _softmax(self: Tensor, axis: int = -1) -> Tensor:
    """Softmax over one axis."""
    return softmax(self, axis)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """A view with the axes in another order, reversed by default."""
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return shape.transpose(self, order)


def _contiguous(self: Tensor) -> Tensor:
    """The tensor itself if it is row-major, else a row-major copy."""
    return self if self.is_contiguous() else shape.clone(self)


def _as_type(self: Tensor, dtype: Any) -> Tensor:
    """A new tensor of the same values in a dtype ('int' is int32, 'float' float32)."""
    made = cast(self, dtype)
    return shape.clone(self) if made is self else made


def _astype(self: Tensor, dtype: Any) -> Tensor:
    """`as_type` under NumPy's name."""
    return _as_type(self, dtype)


def _clip(self: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """`min(max(x, min), max)`; a bound that is None does not bind."""
    return unary.clip(self, min, max)


def _concatenated(self: Tensor, rest: list[Tensor], axis: int) -> Tensor:
    return shape.cat([self, *rest], axis)


def _einsum(self: Tensor, formula: str, args: Any) -> Tensor:
    return contract.einsum(formula, args)


def _creator(self: Tensor) -> Operator:
    """The operation that made the tensor; a Dummy for a leaf (SINGA creator)."""
    creator = self._creator
    if creator is None:
        return Dummy(self, self._name)
    return creator.node if type(creator) is Port else creator


def _set_creator(self: Tensor, creator: Operator | None) -> None:
    self._creator = None if isinstance(creator, Dummy) else creator


def _made_name(self: Tensor) -> str:
    creator = self._creator
    return self.creator.output_name(creator.index if type(creator) is Port else 0)


_METHODS = {
    **{n: f for n, f in unary.FUNCTIONS.items() if n not in ("clip", "_not")},
    "sum": _reduction(reduce.reduce_sum),
    "mean": _reduction(reduce.reduce_mean),
    "max": _reduction(reduce.reduce_max),
    "min": _reduction(reduce.reduce_min),
    "prod": _reduction(reduce.reduce_prod),
    "any": _reduction(reduce.any),
    "all": _reduction(reduce.all),
    "argmax": _reduction(reduce.argmax),
    "argmin": _reduction(reduce.argmin),
    "softmax": _softmax,
    "clip": _clip,
    "reshape": shape.plain_reshape,
    "transpose": _transpose,
    "T": _transpose,
    "flatten": shape.flatten,
    "squeeze": shape.squeeze,
    "unsqueeze": shape.unsqueeze,
    "expand": shape.expand,
    "split": shape.split,
    "repeat": repeat,
    "clone": shape.clone,
    "contiguous": _contiguous,
    "as_type": _as_type,
    "astype": _astype,
    "dot": matmul,
    "backward": leave_gradients,
    "__getitem__": getitem,
    "__setitem__": named(inplace.setitem, Tensor.__module__, "index"),
    "_concatenated": _concatenated,
    "_einsum": _einsum,
    "_tensordot": contract.tensordot,
    "_overwritten": inplace.overwritten,
    "_parted": inplace.parted,
    "_shared": inplace.shared,
    "_made_name": _made_name,
    "_retain": retain,
    "creator": property(_creator, _set_creator),
}

#: Functions whose errors already name them.
_QUIET = {*_operators(), *unary.TABLE}
for _name, _method in {**_operators(), **_METHODS}.items():
    is_public = isfunction(_method) and (_name not in _QUIET and _name[0] != "_")
    setattr(Tensor, _name, named(_method, Tensor.__module__, _name) if is_public else _method)
