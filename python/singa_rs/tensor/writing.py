"""Writing into tensors: values, arrays, other tensors, random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._core import DividedError, DTypeError, GraphError, Handle, ShapeError
from ..shown import kind_of
from .dtypes import bfloat16, promote, to_storage
from .numbers import as_array, number, real, whole
from .takers import tensors_only

if TYPE_CHECKING:
    from . import Tensor

_copy = _core.Op("copy")


def write_array(to: Tensor, array: np.ndarray, op: str = "copy_from_numpy") -> None:
    """Writes an array with the same number of elements into a tensor, converting its dtype."""
    array = to_storage(op, as_array(array, op).reshape(to.shape), to.dtype)
    if to.dtype == bfloat16:
        staged = _core.from_numpy(array, to.device)
        _core.Op("cast", dtype="bfloat16").into([staged], [to])
    else:
        try:
            Handle.copy_from_numpy(to, array)
        except DividedError:
            write_divided(to, _core.from_numpy(array, to.device))


def write_tensor(to: Tensor, source: Tensor) -> None:
    """Writes a tensor into another of the same shape, whose dtype must be able to hold it."""
    try:
        if source.dtype == to.dtype:
            _copy.into([source], [to])
        else:
            _core.Op("convert", dtype=to.dtype.name).into([source], [to])
    except DividedError:
        write_divided(to, source)


def write_divided(to: Tensor, source: Tensor) -> None:
    """Writes a tensor into one that is divided among ranks, of which each takes its part.

    Raises:
        DividedError: `to` is a part of such a tensor.
    """
    if to._divided is None or not to._is_alone:
        raise DividedError(
            f"copy_from: got a part, of shape {to.shape}, of a parameter that is divided among "
            "ranks (shard=3), want the whole: p.copy_from(value)"
        )
    unit, index = to._divided
    unit.write(index, source)


def is_expanded(t: Tensor) -> bool:
    """Whether several elements of a tensor are in one place."""
    pairs = zip(t.strides, t.shape, strict=True)
    return t.numel > 0 and any(s == 0 < n - 1 for s, n in pairs)


def flat_range(t: Tensor, offset: int, count: int, op: str) -> Tensor:
    """A view of `count` elements of a row-major tensor from `offset` on."""
    offset, count = whole(offset, f"{op}: offset"), whole(count, f"{op}: size")
    if offset < 0 or count < 0 or offset + count > t.numel:
        raise ShapeError(f"{op}: {count} elements at {offset} do not fit shape {t.shape}")
    flat = t.view_reshape((t.numel,))
    if flat is None:
        raise ShapeError(f"{op}: got a tensor of strides {t.strides}, want a row-major one")
    return flat.view_slice(((offset, count, 1),))


def _is_of(array: np.ndarray, others: Mapping[int, Sequence[Tensor]]) -> bool:
    """Whether an array may share tensors' memory, as one exported from a tensor does."""
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return bool(others) and not isinstance(base, (np.ndarray, bytes, bytearray, memoryview))


class Writes:
    """The methods that write into a tensor. None of them is recorded for a leaf."""

    def copy_from_numpy(self: Tensor, np_array: np.ndarray, offset: int = 0) -> None:
        """Writes an array with the same number of elements, of any shape (SINGA copy_from_numpy).

        Conversions between floats round; those to or from integers must keep every value. With an
        `offset` (in elements) the array may be shorter.

        Raises:
            TypeError: anything but a NumPy array.
            ShapeError: a different number of elements.
            DTypeError: a value that the tensor's dtype cannot hold, that is masked or not a number.
        """
        if not isinstance(np_array, np.ndarray):
            raise TypeError(f"copy_from_numpy: got {kind_of(np_array)}, want a NumPy array")
        to = self._target(np_array.shape, np_array.size, offset, "copy_from_numpy")
        write_array(to, np_array)
        self._overwritten(to, None, offset)

    def copy_from(self: Tensor, t: Any, offset: int = 0) -> None:
        """Writes a tensor or array with the same number of elements into this tensor's memory.

        The dtype is converted as in `copy_from_numpy`.
        """
        if not isinstance(t, Handle):
            self.copy_from_numpy(as_array(t, "copy_from"), offset)
            return
        to = self._target(t.shape, t.numel, offset, "copy_from")
        source = t if t.shape == to.shape else _reshaped(t, to.shape)
        write_tensor(to, source)
        self._overwritten(to, t, offset)

    def copy_data(self: Tensor, t: Any) -> None:
        """`copy_from(t)` (SINGA copy_data)."""
        self.copy_from(t)

    def set_value(self: Tensor, x: float, inplace: bool = True) -> Tensor:
        """Writes the number `x` into every element, in place or in a copy (SINGA set_value).
        Returns the tensor that was written.

        Raises:
            TypeError: anything but a number (DTypeError: one with a fraction, for integers).
            ValueError: a number that the dtype cannot hold.
        """
        to = self if inplace else _core.Handle.alias(self.clone())
        fill = _core.Op("fill", value=number(x, "set_value"), shape=to.shape, dtype=to.dtype.name)
        _fill(fill, [], to)
        to._overwritten(to)
        return to

    def gaussian(self: Tensor, mean: float, std: float, inplace: bool = True) -> Tensor:
        """Writes normally distributed numbers, in place or into a new tensor; returns it."""
        return self._draw("gaussian", "normal", inplace, mean=mean, std=std)

    def uniform(self: Tensor, low: float, high: float, inplace: bool = True) -> Tensor:
        """Writes numbers drawn uniformly from [low, high), in place or into a new tensor; returns
        it."""
        return self._draw("uniform", "uniform", inplace, low=low, high=high)

    def bernoulli(self: Tensor, p: float, inplace: bool = True) -> Tensor:
        """Writes ones with probability `p`, else zeros, in place or into a new tensor; returns
        it."""
        return self._draw("bernoulli", "bernoulli", inplace, p=p)

    def fitting(
        self: Tensor, value: Tensor | np.ndarray, op: str, written: Mapping[int, Sequence[Tensor]]
    ) -> Tensor | np.ndarray:
        """A value of this tensor's shape, prepared so that `copy_from` cannot fail: in its dtype,
        and copied if tensors that share its memory (`written`, by block) are overwritten first.

        Raises:
            DTypeError: a value that the dtype cannot hold.
        """
        if not isinstance(value, Handle):
            made = to_storage(op, value, self.dtype)
            # Identity does not show sharing: NumPy makes a view of a subclass of ndarray.
            is_shared = np.may_share_memory(made, value)
            return made.copy() if is_shared and _is_of(value, written) else made
        if value.dtype != self.dtype and not _core.recording():
            return to_storage(op, value.to_numpy(), self.dtype)
        is_own = all(to is self for to in written.get(value.block_id, ()))
        return value if is_own else _copy(value)

    def make_room(self: Tensor, allocates: bool = True) -> None:
        """Checks that the tensor can be written into, and allocates its memory, keeping its value;
        with `allocates=False` the first write does, which then draws no initial value in vain.

        Raises:
            OutOfMemoryError: there is not enough memory.
            ShapeError: several of its elements share memory, so that it cannot be written.
        """
        if is_expanded(self):
            raise ShapeError(
                f"write: got an expanded tensor of shape {self.shape}, whose elements share memory"
            )
        if not allocates or self.is_allocated or self.is_recorded or _core.recording():
            return
        if self.numel:
            first = tuple((0, 1, 1) for _ in self.shape)
            self.view_slice(first).item()

    def _draw(self: Tensor, name: str, dist: str, inplace: bool, **parameters: float) -> Tensor:
        """Fills with numbers from the random stream of initial values, for the method `name`."""
        numbers = {key: real(value, f"{name}: {key}") for key, value in parameters.items()}
        to = self if inplace else type(self)(self.shape, self.device, self.dtype)
        op = _core.Op("random", dist={dist: numbers}, shape=to.shape, dtype=to.dtype.name)
        _fill(op, [_core.random_state(to.device, "init")], to)
        to._overwritten(to)
        return to

    def _target(self: Tensor, shape: tuple[int, ...], count: int, offset: int, op: str) -> Tensor:
        if offset == 0 and count == self.numel:
            return self
        if offset == 0:
            raise ShapeError(f"{op}: got shape {shape}, want as many elements as {self.shape}")
        return flat_range(self, offset, count, op)

    def _overwritten(self: Tensor, written: Tensor, source: Any = None, start: int = 0) -> None:
        """Notes that a recorded tensor got a new value, which no operation made."""
        if self._creator is None:
            return
        if written is not self:
            raise GraphError("copy_from: a part of a recorded tensor was overwritten")
        self._creator = None


def _fill(op: _core.Op, given: list[Any], to: Tensor) -> None:
    """Writes what an operation makes into a tensor, or each rank's part of it."""
    try:
        op.into(given, [to])
    except DividedError:
        made = type(to)(to.shape, to.device, to.dtype)
        op.into(given, [made])
        write_divided(to, made)


def _reshaped(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    view = t.view_reshape(shape)
    return _copy(t).view_reshape(shape) if view is None else view


@tensors_only("dst")
def copy_data_to_from(
    dst: Tensor, src: Tensor, size: int, dst_offset: int = 0, src_offset: int = 0
) -> None:
    """Copies `size` elements between row-major tensors; offsets are in elements."""
    to = flat_range(dst, dst_offset, size, "copy_data_to_from")
    write_tensor(to, flat_range(src, src_offset, size, "copy_data_to_from"))
    if dst._creator is not None:
        first = int(src_offset)
        made = src.reshape((src.numel,))[first : first + to.numel]
        dst._overwritten(to, made, dst_offset)


@tensors_only("data")
def copy_from_numpy(data: Tensor, np_array: np.ndarray) -> None:
    """`data.copy_from_numpy(np_array)`."""
    data.copy_from_numpy(np_array)


@tensors_only("t")
def bernoulli(p: float, t: Tensor) -> Tensor:
    """Fills `t` with ones with probability `p`, else zeros; returns `t`."""
    return t.bernoulli(p)


@tensors_only("t")
def gaussian(mean: float, std: float, t: Tensor) -> Tensor:
    """Fills `t` with normally distributed numbers; returns `t`."""
    return t.gaussian(mean, std)


@tensors_only("t")
def uniform(low: float, high: float, t: Tensor) -> Tensor:
    """Fills `t` with numbers drawn uniformly from [low, high); returns `t`."""
    return t.uniform(low, high)


@tensors_only("y")
def axpy(alpha: float, x: Tensor, y: Tensor) -> Tensor:
    """`y += alpha * x`; returns `y` (BLAS axpy)."""
    if not isinstance(y, Handle):  # an array would leave `+=` to the tensor, which makes another
        raise TypeError(f"axpy: got {type(y).__name__} for y, want a Tensor")
    y += x * alpha
    return y


@tensors_only("M")
def add_column(alpha: float, v: Tensor, beta: float, M: Tensor) -> Tensor:
    """`M = alpha * v + beta * M` with `v` of shape (rows,) added to each column; returns `M`."""
    return _blend("add_column", (v * alpha).reshape((v.numel, 1)), beta, M)


@tensors_only("M")
def add_row(alpha: float, v: Tensor, beta: float, M: Tensor) -> Tensor:
    """`M = alpha * v + beta * M` with `v` of shape (columns,) added to each row; returns `M`."""
    return _blend("add_row", (v * alpha).reshape((1, v.numel)), beta, M)


def _blend(op: str, v: Tensor, beta: float, M: Tensor) -> Tensor:
    """`M = v + beta * M` in place; operands that do not fit are rejected before M is scaled."""
    if M.rank < 2 or any(n not in (1, m) for n, m in zip(v.shape, M.shape[-2:], strict=True)):
        raise ShapeError(f"{op}: got {v.numel} elements for a tensor of {M.shape}")
    if promote(v.dtype, M.dtype) != M.dtype and not (v.dtype.is_float and M.dtype.is_float):
        raise DTypeError(f"{op}: got dtype {v.dtype.name} for a tensor of {M.dtype.name}")
    M *= beta
    M += v
    return M
