"""Methods under PyTorch's names: other shapes and dtypes, those of another tensor, new tensors like
one."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Device, DType, Handle, ShapeError
from ..errors import called
from ..refusals import is_integral
from ..tensor import Tensor, as_tensor
from ..tensor.creation import as_shape, extents_of, filled, moved
from ..tensor.numbers import as_array
from ..tensor.placing import is_device, located, placed
from .casting import cast
from .leaves import ask
from .rule import Rule
from .shape import expand, plain_reshape, resolve
from .table import as_method

#: By the names of methods: dtypes.
_DTYPES = {
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64",
    "char": "int8", "byte": "uint8", "int": "int32", "long": "int64", "bool": "bool",
}  # fmt: skip


def _converted(name: str, dtype: str) -> None:
    to = _core.dtype(dtype)

    def convert(self: Tensor) -> Tensor:
        return cast(self, to)

    doc = f"The tensor in {dtype}, itself if it already is (PyTorch {name}); floats truncate."
    as_method(name)(called(convert, name, doc if not to.is_float else doc[:-18] + ".", __package__))


for _name, _dtype in _DTYPES.items():
    _converted(_name, _dtype)


@as_method("to")
def _to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in a dtype, on a device, or in and on those of another tensor; itself if that
    changes nothing (PyTorch to).

    Raises:
        DeviceError: there is no such device.
        TypeError: anything else.
    """
    made, given = self, [*args, *(kwargs.pop(n) for n in ("device", "dtype") if n in kwargs)]
    if not given or kwargs:
        got = ", ".join(kwargs) or "nothing"
        raise TypeError(f"to: got {got}, want a dtype, a device or a Tensor")
    for one in given:
        if isinstance(one, Handle):
            made = cast(_on(made, one.device), one.dtype)
        elif isinstance(one, Device) or is_device(one):
            made = _on(made, located(one))
        elif isinstance(one, (str, type, DType)) or hasattr(one, "kind"):
            made = cast(made, one)
        else:
            raise TypeError(f"to: got {one!r}, want a dtype, a device or a Tensor")
    return made


class Move(Rule):
    """The same values on another device."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def forward(self, x: Tensor) -> Tensor:
        self.source = x.device
        return moved(x, self.device)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor | None]:
        """The gradient on the input's device."""
        return (moved(dys[0], self.source),)


def _on(x: Tensor, device: Device) -> Tensor:
    return x if device == x.device else Move(device)(x)[0]


@as_method("cpu")
def _cpu(self: Tensor) -> Tensor:
    """The tensor itself if it is on the CPU, else a copy there (PyTorch cpu)."""
    return _on(self, _core.cpu())


@as_method("cuda")
def _cuda(self: Tensor, device: Any = 0) -> Tensor:
    """The tensor itself if it is on that CUDA device, else a copy there (PyTorch cuda).

    Raises:
        DeviceError: there is no such device.
        TypeError: neither a Device nor a number, the name of one or None, which means 0.
    """
    if device is None or is_integral(device):
        return _on(self, located(f"cuda:{int(device or 0)}"))
    placed("cuda", device)
    return _on(self, located(device))


@as_method("type_as")
def _type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another one, itself if it has it (PyTorch type_as)."""
    return cast(self, other.dtype)


@as_method("view")
def _view(self: Tensor, *shape: Any) -> Tensor:
    """The same memory in another shape, one of whose extents may be -1 (PyTorch view). `reshape`
    also copies.

    Raises:
        ShapeError: another number of elements, or strides that would require a copy.
    """
    to = resolve(extents_of(shape), self.numel, "view")
    if math.prod(to) != self.numel or self.view_reshape(to) is None:
        got = f"{to} for shape {self.shape}, strides {self.strides}"
        raise ShapeError(f"view: got {got}, want as many elements in memory order; see reshape")
    return plain_reshape(self, to)


@as_method("view_as")
def _view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of another tensor (PyTorch view_as)."""
    return _view(self, other.shape)


@as_method("reshape_as")
def _reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor (PyTorch reshape_as).

    Raises:
        ShapeError: another number of elements.
    """
    if self.numel != other.numel:
        raise ShapeError(
            f"reshape_as: got shapes {self.shape}, {other.shape}, want as many elements"
        )
    return plain_reshape(self, other.shape)


@as_method("expand_as")
def _expand_as(self: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of another tensor, to which it broadcasts (PyTorch expand_as).

    Raises:
        ShapeError: a shape that it does not broadcast to.
    """
    made = expand(self, other.shape)
    if made.shape != other.shape:
        got = f"shape {self.shape} for {other.shape}"
        raise ShapeError(f"expand_as: got {got}, want one that broadcasts")
    return made


# ---- new tensors ---------------------------------------------------------------------------------


def _new(name: str, value: int) -> None:
    def new(self: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
        kind = self.dtype if dtype is None else dtype
        return filled(name, extents_of(shape), value, kind, self.device)

    what = "ones" if value else "zeros"
    doc = f"New {what} of the dtype of the tensor, or of another (PyTorch {name})."
    as_method(name)(called(new, name, doc, __package__))


_new("new_zeros", 0)
_new("new_ones", 1)
_new("new_empty", 0)


@as_method("new_full")
def _new_full(self: Tensor, shape: Any, value: Any, dtype: Any = None) -> Tensor:
    """A new tensor filled with a value, of the dtype of the tensor, or of another (PyTorch
    new_full)."""
    kind = self.dtype if dtype is None else dtype
    return filled("new_full", as_shape(shape), value, kind, self.device)


@as_method("new_tensor")
def _new_tensor(self: Tensor, data: Any, dtype: Any = None) -> Tensor:
    """A new tensor of host data (a number, a list, an array), of the dtype of the tensor, or of
    another (PyTorch new_tensor).

    Raises:
        DTypeError: a value that the dtype cannot hold.
    """
    array = as_array(data, "new_tensor")
    return as_tensor(array, self.device, self.dtype if dtype is None else _core.dtype(dtype))


# ---- what a tensor is ----------------------------------------------------------------------------


@as_method("dim")
def _dim(self: Tensor) -> int:
    """The number of dimensions (PyTorch dim)."""
    return self.rank


@as_method("nelement")
def _nelement(self: Tensor) -> int:
    """The number of elements (PyTorch nelement)."""
    return self.numel


@as_method("element_size")
def _element_size(self: Tensor) -> int:
    """The number of bytes of an element (PyTorch element_size)."""
    return self.dtype.itemsize


@as_method("is_floating_point")
def _is_floating_point(self: Tensor) -> bool:
    """Whether the dtype is of floats (PyTorch is_floating_point)."""
    return self.dtype.is_float


@as_method("numpy")
def _numpy(self: Tensor) -> Any:
    """`to_numpy`: a copy, where PyTorch's shares the memory (PyTorch numpy)."""
    return self.to_numpy()


@as_method("requires_grad_")
def _requires_grad(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Sets whether operations are recorded for backward, and for a leaf whether its gradient is
    stored; returns the tensor (PyTorch requires_grad_). Optimizers without `params` do not train
    it, unless a layer has it as an attribute."""
    wanted = bool(requires_grad)
    self.requires_grad = wanted
    if self._creator is None:
        ask(self, wanted)
    return self
