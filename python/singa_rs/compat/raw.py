"""SINGA's raw C++ tensor, which programs get from `Tensor.data`: here an ordinary tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import _core
from ..tensor import Tensor
from ..tensor.numbers import as_array, wholes


class CallableShape(tuple):
    """A shape that may also be called: `shape()`, `shape(0)`."""

    def __call__(self, axis: int | None = None) -> Any:
        """All extents, or that of one axis."""
        return tuple(self) if axis is None else self[axis]


class RawTensor(Tensor):
    """A tensor that also has the methods of SINGA's C++ tensor.

    `RawTensor(shape[, dtype])`, `RawTensor(shape, device[, dtype])`, or `RawTensor(t)`, on the same
    memory.
    """

    def __init__(self, shape: Any = (), device: Any = None, dtype: Any = None) -> None:
        if device is not None and not isinstance(device, _core.Device):
            device, dtype = None, device
        is_copy = isinstance(shape, Tensor)
        super().__init__(() if is_copy else shape, device, dtype, requires_grad=False)
        if is_copy:
            self.rebind(shape)

    @property
    def shape(self) -> CallableShape:
        """The extents, as a tuple that may be called."""
        return CallableShape(_core.Handle.shape.__get__(self))

    @shape.setter
    def shape(self, value: Any) -> None:
        Tensor.shape.__set__(self, value)

    def data_type(self) -> _core.DType:
        """The element type."""
        return self.dtype

    def Size(self) -> int:
        """The number of elements."""
        return self.numel

    def MemSize(self) -> int:
        """The size of the elements in bytes."""
        return self.nbytes

    def transpose(self, axes: Any = None) -> Any:
        """`is_transpose()`, or a view with axes in another order."""
        return self.is_transpose() if axes is None else super().transpose(axes)

    def nDim(self) -> int:
        """The number of dimensions."""
        return self.rank

    def GetFloatValue(self, n: int) -> list[float]:
        """The first `n` elements as floats."""
        return self.to_numpy().ravel()[:n].astype(float).tolist()

    def GetHalfFloatValue(self, n: int) -> list[float]:
        """`GetFloatValue(n)`."""
        return self.GetFloatValue(n)

    def GetIntValue(self, n: int) -> list[int]:
        """The first `n` elements, which must be integers, as ints."""
        return list(wholes(self.to_numpy().ravel()[:n], "GetIntValue"))

    def SetFloatValue(self, x: float) -> None:
        """Writes the number into every element."""
        self.set_value(x)

    def SetIntValue(self, x: int) -> None:
        """Writes the number into every element."""
        self.set_value(x)

    def CopyFloatDataFromHostPtr(self, values: Any, offset: int = 0) -> None:
        """Writes an array, from element `offset` on."""
        self.copy_from_numpy(as_array(values, "copy_from_numpy"), offset)

    def CopyIntDataFromHostPtr(self, values: Any, offset: int = 0) -> None:
        """Writes an array, from element `offset` on."""
        self.copy_from_numpy(as_array(values, "copy_from_numpy"), offset)

    def CopyHalfFloatDataFromHostPtr(self, values: Any, offset: int = 0) -> None:
        """Writes an array, from element `offset` on."""
        self.copy_from_numpy(as_array(values, "copy_from_numpy"), offset)

    def CopyData(self, other: Tensor) -> None:
        """Writes a tensor with the same number of elements."""
        self.copy_from(other)

    def ResetLike(self, other: Tensor) -> None:
        """New, zeroed memory with the shape, device and dtype of another tensor."""
        self.reset_like(other)

    def L1(self) -> float:
        """The mean of the absolute values."""
        return self.l1()

    def L2(self) -> float:
        """The Euclidean norm divided by the number of elements."""
        return self.l2()

    def Repeat(self, repeats: Sequence[int], axis: int) -> Tensor:
        """Each element as often as `repeats`, one number or one for each, says along an axis."""
        counts = list(repeats)
        return raw(self.repeat(counts[0] if len(counts) == 1 else counts, axis))

    def AsType(self, dtype: Any) -> Tensor:
        """A raw tensor of the same values in another dtype."""
        return raw(self.as_type(dtype))

    def ToDevice(self, device: Any) -> None:
        """Moves this tensor to another device, in place."""
        self.to_device(device)

    def ToHost(self) -> None:
        """Moves this tensor to the CPU, in place."""
        self.to_host()

    def Clone(self) -> Tensor:
        """A copy with its own memory."""
        return raw(self.clone())


class FromRaw(Tensor):
    """A tensor that was empty, and got a raw tensor as its data. SINGA's programs then also assign
    its `shape`, `device` and `dtype`, which they have read from the raw tensor."""

    @property
    def device(self) -> _core.Device:
        """The device; assigning one moves the tensor there."""
        return _core.Handle.device.__get__(self)

    @device.setter
    def device(self, to: _core.Device) -> None:
        self.to_device(to)

    @property
    def dtype(self) -> _core.DType:
        """The element type; only the one that it has can be assigned."""
        return _core.Handle.dtype.__get__(self)

    @dtype.setter
    def dtype(self, to: Any) -> None:
        if _core.dtype(to) != self.dtype:
            got = f"{_core.dtype(to).name} for a tensor of {self.dtype.name}"
            raise _core.DTypeError(f"dtype: got {got}; to_type converts it")


def raw_if(tensors: Sequence[Tensor | None], given: Iterable[object]) -> tuple[Tensor | None, ...]:
    """The tensors, raw if one of what was given is raw."""
    if any(isinstance(one, RawTensor) for one in given):
        return tuple(None if t is None else raw(t) for t in tensors)
    return tuple(tensors)


def raw(tensor: Tensor) -> RawTensor:
    """A RawTensor that shares the memory of `tensor` and requires no gradient."""
    made = tensor.alias()
    made.__class__ = RawTensor
    made.requires_grad = False
    return made
