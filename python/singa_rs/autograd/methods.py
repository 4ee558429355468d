"""The operators of `Tensor`, and its methods that differ from the functions of `autograd`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import ShapeError
from ..errors import named
from ..tensor import Tensor, as_tensor
from ..tensor.creation import as_shape
from ..tensor.numbers import whole
from . import binary, inplace, shape
from .axes import swapaxes
from .casting import cast
from .contract import tensordot
from .index import getitem
from .pairs import bitwise_not
from .pieces import around
from .reduce import as_axes, softmax
from .shape import expand, plain_reshape
from .table import METHODS, as_method
from .tape import Dummy, Operator, Port, retain

Operation = Callable[[Any, Any], Any]


def _comparison(function: Operation) -> Operation:
    """A comparison that leaves None and text to Python instead of raising an error."""

    def compare(a: Tensor, b: Any) -> Tensor:
        if b is None or isinstance(b, (str, bytes)):
            return NotImplemented
        return function(a, b)

    compare.__doc__ = function.__doc__
    return compare


def _reflected(function: Operation) -> Operation:
    def reflected(a: Tensor, b: Any) -> Tensor:
        return function(b, a)

    reflected.__doc__ = function.__doc__
    return reflected


def _bitwise(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`&`, `|`, `^`, `<<` and `>>`: True and False are bools, not integers."""

    def bits(a: Tensor, b: Any) -> Tensor:
        return function(a, as_tensor(b, a.device) if isinstance(b, (bool, np.bool_)) else b)

    bits.__doc__ = function.__doc__
    return named(bits, Tensor.__module__, name)


def _forms(sign: str, rule: type[binary.Binary], function: Operation) -> dict[str, Any]:
    """The methods of an operator: for a tensor on its left, on its right, and in place."""
    if sign in binary.COMPARISONS:
        return {binary.COMPARISONS[sign]: _comparison(function)}
    if sign in binary.BITWISE:
        name = binary.BITWISE[sign]
        return {form: _bitwise(form, one) for form, one in _sides(name, rule, function).items()}
    return _sides(binary.ARITHMETIC[sign], rule, function)


def _sides(name: str, rule: type[binary.Binary], function: Operation) -> dict[str, Any]:
    return {name: function, f"r{name}": _reflected(function), f"i{name}": inplace.operator(rule)}


for (_kind, _name), _row in binary.ROWS.items():
    if _row.operator:
        _made = _forms(_row.operator, binary.CLASSES[_kind], binary.FUNCTIONS[_name])
        METHODS.update((f"__{form}__", function) for form, function in _made.items())
METHODS["__matmul__"] = METHODS["dot"]  # whose own rule is below
METHODS["__rmatmul__"] = _reflected(METHODS["dot"])
METHODS["__div__"], METHODS["__rdiv__"] = METHODS["__truediv__"], METHODS["__rtruediv__"]
METHODS["__invert__"] = bitwise_not
METHODS["__getitem__"] = getitem


def _rounded(self: Tensor, ndigits: int | None = None) -> Tensor:
    """Python's `round(t, ndigits)`: as `t.round(ndigits)`, half to even."""
    return around(self, 0 if ndigits is None else ndigits)


def _divided(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    """Python's `divmod(t, other)`: `t // other` and `t % other`."""
    return self // other, self % other


def _dividing(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    """Python's `divmod(other, t)`."""
    return other // self, other % self


METHODS["__round__"] = named(_rounded, Tensor.__module__, "round")
METHODS["__divmod__"] = named(_divided, Tensor.__module__, "divmod")
METHODS["__rdivmod__"] = named(_dividing, Tensor.__module__, "divmod")
METHODS["__setitem__"] = named(inplace.setitem, Tensor.__module__, "index")


@as_method("softmax", precision="wide")
def _softmax(self: Tensor, axis: int = -1) -> Tensor:
    """Softmax over one axis."""
    return softmax(self, axis)


@as_method("dot")
def _dot(self: Tensor, w: Tensor) -> Tensor:
    """The matrix product; with an operand of more than two dimensions the sums of products over the
    last axis and the one before the last of `w`, for all pairs of the others (NumPy dot).

    Raises:
        ShapeError: extents that differ.
    """
    w = as_tensor(w, self.device)
    if w.rank < 3:
        return self @ w
    return tensordot(self, w, ((-1,), (-2,)))


@as_method("expand")
def _expand(self: Tensor, *shape: Any) -> Tensor:
    """A view in a shape, given as several numbers or as one sequence, that the tensor broadcasts
    to; -1 keeps an extent (PyTorch expand, ONNX Expand).

    Raises:
        ShapeError: a shape that it does not broadcast to.
    """
    to = as_shape(shape[0] if len(shape) == 1 else shape)
    own = (1,) * (len(to) - self.rank) + self.shape[-len(to) :]
    kept = [have if n == -1 else n for n, have in zip(to, own, strict=True)]
    return expand(self, kept)


@as_method("flatten")
def _flatten(self: Tensor, start_dim: int | str = 0, end_dim: int = -1) -> Tensor:
    """The axes from one to another as one, all by default (NumPy flatten, PyTorch flatten): a view
    where strides allow one, as in PyTorch, else a copy. (`autograd.flatten` is ONNX's, which makes
    a matrix.)

    Raises:
        ValueError: axes that the tensor does not have, or in another order.
        TypeError: an order of elements other than NumPy's "C".
    """
    if isinstance(start_dim, str):
        if start_dim != "C":
            raise TypeError(f"flatten: got order {start_dim!r}, want 'C'")
        start_dim = 0
    have = self.shape
    if not have:
        return plain_reshape(self, (1,))
    (first,) = as_axes(whole(start_dim, "flatten: start_dim"), len(have), "flatten")
    (last,) = as_axes(whole(end_dim, "flatten: end_dim"), len(have), "flatten")
    if first > last:
        raise ValueError(f"flatten: got axes {first} to {last}, want them in order")
    one = math.prod(have[first : last + 1])
    return plain_reshape(self, (*have[:first], one, *have[last + 1 :]))


class Turned(Tensor):
    """A transposed view that may be called: `t.T` is NumPy's, `t.T()` SINGA's."""

    def __call__(self, *axes: Any) -> Tensor:
        """The view itself, or one of the original with its axes in another order."""
        return _transpose(shape.transpose(self), *axes) if axes else self


def _turned(self: Tensor) -> Any:
    """A view with the axes in the opposite order, which may be called (NumPy T, SINGA T)."""
    made = shape.transpose(self)
    made.__class__ = Turned
    return made


def _swapped(self: Tensor) -> Tensor:
    """A view of matrices, the last two axes, with these exchanged (NumPy mT).

    Raises:
        ShapeError: fewer than two dimensions.
    """
    if self.rank < 2:
        raise ShapeError(f"mT: got shape {self.shape}, want two dimensions at least")
    return shape.transpose(self, (*range(self.rank - 2), self.rank - 1, self.rank - 2))


METHODS["T"], METHODS["mT"] = property(_turned), property(_swapped)


@as_method("transpose")
def _transpose(
    self: Tensor, *order: Any, axes: Any = None, dim0: int | None = None, dim1: int | None = None
) -> Tensor:
    """A view with the axes in another order, reversed by default; `axes` is that order by name.
    `dim0` and `dim1` are exchanged, as in PyTorch, and so are two axes of a tensor that has not
    just these.

    Raises:
        TypeError: only one of `dim0` and `dim1`, or axes besides; `(0, 1)` for a matrix, which is
            NumPy's identity and PyTorch's exchange.
    """
    if dim0 is not None or dim1 is not None:
        if order or axes is not None or dim0 is None or dim1 is None:
            got = f"{len(order)} axes, dim0 {dim0} and dim1 {dim1}"
            raise TypeError(f"transpose: got {got}, want axes, or dim0 and dim1")
        return swapaxes(self, dim0, dim1)
    if axes is not None:
        if order:
            raise TypeError(f"transpose: got {order} and axes {axes}, want one of them")
        return shape.transpose(self, axes)
    if len(order) == 2 and self.rank != 2:
        return swapaxes(self, *order)
    if len(order) == 2 and order[0] % 2 == 0 and order[1] % 2 == 1:
        raise TypeError(
            f"transpose: got {order}, which leaves the axes as they are in NumPy and exchanges "
            "them in PyTorch, want T, swapaxes(0, 1) or permute(0, 1)"
        )
    single = len(order) == 1 and not isinstance(order[0], int)
    return shape.transpose(self, order[0] if single else order or None)


@as_method("pow")
def _pow(self: Tensor, exponent: Any) -> Tensor:
    """`self ** exponent`, of a number or a tensor (ONNX Pow)."""
    return self**exponent


@as_method("contiguous")
def _contiguous(self: Tensor) -> Tensor:
    """The tensor itself if it is row-major, else a row-major copy."""
    return self if self.is_contiguous() else shape.clone(self)


@as_method("astype", "as_type")
def _as_type(self: Tensor, dtype: Any) -> Tensor:
    """A new tensor of the same values in a dtype ('int' is int32, 'float' float32)."""
    made = cast(self, dtype)
    return shape.clone(self) if made is self else made


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


METHODS["creator"] = property(_creator, _set_creator)
#: What methods of `Tensor` itself call.
METHODS["_overwritten"], METHODS["_parted"] = inplace.overwritten, inplace.parted
METHODS["_shared"], METHODS["_retain"], METHODS["_made_name"] = inplace.shared, retain, _made_name
METHODS["_set_shape"] = named(shape.set_shape, Tensor.__module__, "shape")
