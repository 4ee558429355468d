"""The operators of `Tensor` and its methods that are recorded for backward."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from .. import _core
from .._core import DTypeError
from ..errors import named
from ..tensor import Tensor, as_tensor
from . import binary, contract, inplace, reduce, shape, unary
from .casting import cast
from .engine import leave_gradients
from .index import getitem
from .matmul import matmul
from .reduce import softmax
from .repeat import repeat
from .tape import Dummy, Operator, Port, retain

Operation = Callable[[Any, Any], Tensor]

_binary, _classes = binary.FUNCTIONS, binary.CLASSES
_product = named(matmul, Tensor.__module__)


def _comparison(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Any]:
    """A comparison that leaves None and text to Python instead of raising an error."""

    def compare(a: Tensor, b: Any) -> Any:
        if b is None or isinstance(b, (str, bytes)):
            return NotImplemented
        return function(a, b)

    compare.__doc__ = function.__doc__
    return compare


def _both(function: Callable[[Any, Any], Tensor]) -> tuple[Operation, Operation]:
    """An operator, and its reflected form."""

    def reflected(a: Tensor, b: Any) -> Tensor:
        return function(b, a)

    reflected.__doc__ = function.__doc__
    return function, reflected


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


def _clip(self: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """`min(max(x, min), max)`; a bound that is None does not bind."""
    return unary.clip(self, min, max)


class Methods(unary.Elementwise):
    """What `Tensor` gets from this package. To type checkers it is a base class of `Tensor`."""

    __add__, __radd__ = _both(_binary["add"])
    __sub__, __rsub__ = _both(_binary["sub"])
    __mul__, __rmul__ = _both(_binary["mul"])
    __truediv__, __rtruediv__ = __div__, __rdiv__ = _both(_binary["div"])
    __floordiv__, __rfloordiv__ = _both(_binary["floor_divide"])
    __mod__, __rmod__ = _both(_binary["remainder"])
    __pow__, __rpow__ = _both(_binary["pow"])
    __matmul__, __rmatmul__ = _both(_product)
    __iadd__ = inplace.operator(_classes["Add"])
    __isub__ = inplace.operator(_classes["Sub"])
    __imul__ = inplace.operator(_classes["Mul"])
    __itruediv__ = inplace.operator(_classes["Div"])
    __ifloordiv__ = inplace.operator(_classes["FloorDivide"])
    __imod__ = inplace.operator(_classes["Remainder"])
    __ipow__ = inplace.operator(_classes["Pow"])
    __lt__ = _comparison(_binary["less"])
    __le__ = _comparison(_binary["less_equal"])
    __gt__ = _comparison(_binary["greater"])
    __ge__ = _comparison(_binary["greater_equal"])
    __eq__ = _comparison(_binary["equal"])
    __ne__ = _comparison(_binary["not_equal"])
    __and__ = __rand__ = _bools("and", _binary["_and"])
    __or__ = __ror__ = _bools("or", _binary["_or"])
    __xor__ = __rxor__ = _bools("xor", _binary["_xor"])
    __invert__ = _bools("not", unary.FUNCTIONS["_not"])
    __neg__ = unary.FUNCTIONS["negative"]
    __abs__ = unary.FUNCTIONS["abs"]
    __pos__ = shape.clone
    __getitem__ = getitem
    __setitem__ = named(inplace.setitem, Tensor.__module__, "index")

    sum = _reduction(reduce.reduce_sum)
    mean = _reduction(reduce.reduce_mean)
    max = _reduction(reduce.reduce_max)
    min = _reduction(reduce.reduce_min)
    prod = _reduction(reduce.reduce_prod)
    any = _reduction(reduce.any)
    all = _reduction(reduce.all)
    argmax = _reduction(reduce.argmax)
    argmin = _reduction(reduce.argmin)
    dot = matmul
    reshape = shape.plain_reshape
    flatten, squeeze, unsqueeze = shape.flatten, shape.squeeze, shape.unsqueeze
    expand, split, clone = shape.expand, shape.split, shape.clone
    repeat = repeat
    backward = leave_gradients
    softmax, contiguous, clip = _softmax, _contiguous, _clip
    T = transpose = _transpose
    astype = as_type = _as_type

    @property
    def creator(self: Tensor) -> Operator:
        """The operation that made the tensor; a Dummy for a leaf (SINGA creator)."""
        creator = self._creator
        if creator is None:
            return Dummy(self, self._name)
        return creator.node if type(creator) is Port else creator

    @creator.setter
    def creator(self: Tensor, creator: Operator | None) -> None:
        self._creator = None if isinstance(creator, Dummy) else creator

    def _made_name(self: Tensor) -> str:
        creator = self._creator
        return self.creator.output_name(creator.index if type(creator) is Port else 0)

    #: What the functions and the other methods of `tensor` call.
    _concatenated, _einsum = staticmethod(shape.cat), staticmethod(contract.einsum)
    _tensordot = contract.tensordot
    _overwritten, _parted, _shared = inplace.overwritten, inplace.parted, inplace.shared
    _retain, _set_shape = retain, named(shape.set_shape, Tensor.__module__, "shape")


def _give(name: str, method: Any) -> None:
    """Gives `Tensor` a method, whose errors name it; the functions in tables do so themselves."""
    names_itself = (
        name in unary.TABLE or name.startswith("_") or not isinstance(method, FunctionType)
    )
    setattr(Tensor, name, method if names_itself else named(method, Tensor.__module__, name))


for _name, _function in unary.FUNCTIONS.items():
    if _name not in vars(Methods) and not _name.startswith("_"):
        _give(_name, _function)
for _name, _method in vars(Methods).items():
    if isinstance(_method, (FunctionType, property, staticmethod)):
        _give(_name, _method)
