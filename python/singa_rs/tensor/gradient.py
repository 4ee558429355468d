"""The gradient that a tensor keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import Handle, ShapeError

if TYPE_CHECKING:
    from . import Tensor


def _get(self: Tensor) -> Tensor | None:
    """The sum of the gradients that `Tensor.backward` has left, None before the first one. One that
    is assigned has the tensor's shape."""
    return self.__dict__.get("grad")


def _set(self: Tensor, value: Tensor | None) -> None:
    if value is not None:
        if not isinstance(value, Handle):
            raise TypeError(f"grad: got {type(value).__name__}, want a Tensor or None")
        if value.shape != self.shape:
            raise ShapeError(f"grad: got shape {value.shape} for a tensor of {self.shape}")
    self.__dict__["grad"] = value


def _delete(self: Tensor) -> None:
    self.__dict__.pop("grad", None)


grad = property(_get, _set, _delete)
