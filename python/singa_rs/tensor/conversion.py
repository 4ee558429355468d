"""Tensors as Python and NumPy see them: arrays, numbers, sequences, text, pickles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .numbers import whole

if TYPE_CHECKING:
    from . import Tensor


class CallableInt(int):
    """An int that may be called: NumPy reads `t.size`, SINGA calls `t.size()`."""

    def __call__(self) -> int:
        """The int itself."""
        return int(self)


class Size(CallableInt):
    """The number of elements; called with an axis, the extent of that axis, as in PyTorch."""

    shape: tuple[int, ...]

    def __call__(self, axis: int | None = None, *, dim: int | None = None) -> int:
        """The number of elements, or the extent of an axis, or `dim`, PyTorch's name for it.

        Raises:
            TypeError: both.
            ValueError: an axis that there is not.
        """
        if axis is not None and dim is not None:
            raise TypeError("size: got both axis and dim, want one of them")
        axis = dim if axis is None else axis
        if axis is None:
            return int(self)
        at, rank = whole(axis, "size: axis"), len(self.shape)
        if not -rank <= at < rank:
            raise ValueError(f"size: got axis {at} for shape {self.shape}, want one of {rank}")
        return self.shape[at]


def _rebuild(
    array: np.ndarray,
    dtype: str,
    state: dict[str, Any],
    kind: type[Tensor] | None = None,
    device: Any = None,
) -> Tensor:
    from . import Tensor

    made = Tensor(data=array, device=device, dtype=dtype)
    made.__dict__.update(state)
    if kind is not None:
        made.__class__ = kind
    return made


#: NumPy's functions that write into their first argument.
_WRITERS = {"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"}
_COPY = "copy_from(array)"
#: NumPy's functions that are operators of arrays, and what a tensor has for them.
_REFLECTED = {
    np.add: "__radd__",
    np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__",
    np.divide: "__rtruediv__",
    np.divmod: "__rdivmod__",
    np.equal: "__eq__",
    np.floor_divide: "__rfloordiv__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
    np.left_shift: "__rlshift__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.matmul: "__rmatmul__",
    np.multiply: "__rmul__",
    np.not_equal: "__ne__",
    np.power: "__rpow__",
    np.remainder: "__rmod__",
    np.right_shift: "__rrshift__",
    np.subtract: "__rsub__",
}


def _arrays(value: Any) -> Any:
    """Arguments of NumPy's functions with arrays in place of tensors."""
    if isinstance(value, _core.Handle):
        return value.to_numpy()
    if isinstance(value, (list, tuple)):  # NumPy reads named tuples as it does others
        return (list if isinstance(value, list) else tuple)(map(_arrays, value))
    return {k: _arrays(v) for k, v in value.items()} if isinstance(value, dict) else value


class Conversions:
    """The protocols of Python and NumPy."""

    def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("__array__: a tensor's memory cannot be lent to NumPy without a copy")
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_function__(
        self: Tensor, function: Any, types: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """NumPy's functions get copies of tensors as arrays, and give arrays.

        Raises:
            TypeError: a function that would write into a tensor.
        """
        name = function.__name__
        if isinstance(kwargs.get("out"), _core.Handle) or (
            name in _WRITERS and isinstance(args and args[0], _core.Handle)
        ):
            raise TypeError(f"{name}: NumPy cannot write into a Tensor, want {_COPY}")
        return function(*_arrays(args), **_arrays(kwargs))

    def __array_ufunc__(self: Tensor, ufunc: Any, method: str, *xs: Any, **kwargs: Any) -> Any:
        """`array + tensor`, which NumPy computes as `np.add(array, tensor)`, is the tensor's to
        compute; other functions of NumPy are as in `__array_function__`. `array += tensor`, which
        is `np.add(array, tensor, out=array)`, writes into the array.

        Raises:
            TypeError: a function that would write into a tensor.
        """
        if xs[-1] is self and not kwargs and method == "__call__":
            reflected = _REFLECTED.get(ufunc)
            if reflected is not None and not isinstance(xs[0], _core.Handle):
                return getattr(self, reflected)(xs[0])
        if ufunc is np.divmod:
            return NotImplemented  # which Python follows by `__divmod__`
        written = (*kwargs.get("out", ()), *(xs[:1] if method == "at" else ()))
        if any(isinstance(one, _core.Handle) for one in written):
            raise TypeError(f"{ufunc.__name__}: NumPy cannot write into a Tensor, want {_COPY}")
        return getattr(ufunc, method)(*_arrays(xs), **_arrays(kwargs))

    def tolist(self: Tensor) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.to_numpy().tolist()

    def __float__(self: Tensor) -> float:
        return float(self.item())

    def __int__(self: Tensor) -> int:
        return int(self.item())

    def __index__(self: Tensor) -> int:
        if not self.dtype.is_int:
            raise TypeError(f"index: got a tensor of dtype {self.dtype.name}, want an integer")
        return int(self.item())

    def __bool__(self: Tensor) -> bool:
        if self.numel != 1:
            raise ValueError(
                f"bool: the truth value of a tensor of shape {self.shape} is ambiguous"
            )
        return bool(self.item())

    def __len__(self: Tensor) -> int:
        if self.rank == 0:
            raise TypeError("len: got a tensor of shape (), want at least one dimension")
        return self.shape[0]

    def __contains__(self: Tensor, value: Any) -> bool:
        """Whether an element equals `value`, as in NumPy."""
        equal = self == value
        return equal if isinstance(equal, bool) else bool(equal.any())

    def __iter__(self: Tensor) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self: Tensor) -> str:
        try:
            if self._divided is not None:  # of which all ranks would have to read the elements
                return f"Tensor(shape={self.shape}, dtype={self.dtype.name}, divided among ranks)"
            if _core.recording() or self.is_recorded:
                return _without_value(self)
            is_large = self.numel > _MANY
            if is_large and not self.is_allocated:  # reading a part of it would make all of it
                return f"Tensor(shape={self.shape}, dtype={self.dtype.name}, not written yet)"
            array = _corners(self.detach()) if is_large else self.to_numpy()
        except _core.GraphError:
            return _without_value(self)
        most = 0 if is_large else 100
        text = np.array2string(array, separator=", ", prefix="Tensor(", threshold=most)
        if not array.size and self.rank > 1:  # what is printed tells no shape
            text += f", shape={self.shape}"
        return f"Tensor({text}, dtype={self.dtype.name})"

    def __format__(self: Tensor, spec: str) -> str:
        if spec and self.numel != 1:
            raise _core.ShapeError(f"format: got shape {self.shape} for {spec!r}, want one element")
        return format(self.item(), spec) if spec else repr(self)

    def __reduce__(self: Tensor) -> Any:
        to = None if self.device == _core.cpu() else self.device
        return _rebuild, (self.to_numpy(), self.dtype.name, _state(self), type(self), to)

    def __copy__(self: Tensor) -> Tensor:
        return self._shallow()

    def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
        made = memo[id(self)] = _core.Op("copy")(self)
        made.__dict__.update((k, deepcopy(v, memo)) for k, v in _state(self).items())
        made.__class__ = type(self)
        return made


#: The most elements that are copied so that text shows a few of them.
_MANY = 1 << 20


def _corners(t: Tensor, index: tuple[slice, ...] = ()) -> np.ndarray:
    """The first and the last elements along each axis, in an array whose summary is that of all."""
    axis, shown = len(index), np.get_printoptions()["edgeitems"]
    if axis == t.rank:
        return t[index].to_numpy()
    parts = [slice(0, shown + 1), slice(-shown, None)]
    if not 2 * shown + 1 < t.shape[axis] or not shown:
        parts = [slice(None)]
    return np.concatenate([_corners(t, (*index, one)) for one in parts], axis)


def _without_value(t: Tensor) -> str:
    """The text of a tensor that has no value, such as one that is only recorded."""
    try:
        what, line = f"shape={t.shape}, dtype={t.dtype.name}", t._recorded_at
    except _core.GraphError:
        return "Tensor(without a value)"
    is_known = line is not None and line.rpartition(":")[2].isdigit()
    place = f"recorded at {os.path.basename(line)}" if is_known else "without a value"
    return f"Tensor({what}, {place})"


_OF_TAPE = {"_creator", "_source", "_base", "_views"}


def _state(tensor: Tensor) -> dict[str, Any]:
    """The attributes that copies and pickles carry over: all but the tape's."""
    return {k: v for k, v in tensor.__dict__.items() if k not in _OF_TAPE}
