"""Layers that pad the last axes: with a constant, the reflection, the nearest element, or from the
other end. Negative padding crops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import autograd
from ..errors import ShapeError
from ..tensor import Tensor
from .base import Layer
from .check import axes, count, number

_MOST = 2**31
_WANT = {1: "an int or a pair", 2: "an int or four", 3: "an int or six"}


class _Pad(Layer):
    """Padding is one int for all sides, or one for each: before and after the last axis, then those
    of the axis before it, as in PyTorch. Where it is negative, as many elements are left out."""

    spatial: ClassVar[int]
    mode: ClassVar[str] = "constant"
    value: float = 0.0

    def __init__(self, padding: int | Sequence[int]) -> None:
        """`padding`: one int for all sides, or two for each axis, the last axis first.

        Raises:
            TypeError, ValueError: anything else.
        """
        super().__init__()
        self.padding = _sides(padding, f"{type(self).__name__}: padding", self.spatial)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial) or (C, *spatial).

        Raises:
            ShapeError: a different number of axes, or more is left out than there is.
        """
        axes(x, type(self).__name__, self.spatial + 1, self.spatial + 2)
        if min(self.padding) >= 0:
            return self._pad(x)
        self._check_left(x)
        # What goes on at the other end is what is left there.
        return self._pad(self._crop(x)) if self.mode == "wrap" else self._crop(self._pad(x))

    def _pad(self, x: Tensor) -> Tensor:
        wide = [max(0, n) for n in self.padding]
        none = [0] * (x.rank - self.spatial)
        pads = [*none, *wide[-2::-2], *none, *wide[::-2]]
        return autograd.pad(x, self.mode, pads, self.value)

    def _cuts(self, x: Tensor) -> list[tuple[int, int, int]]:
        """What is left out at both ends of each axis, and its extent."""
        cut = [max(0, -n) for n in self.padding]
        return list(zip(cut[-2::-2], cut[::-2], x.shape[-self.spatial :], strict=True))

    def _crop(self, x: Tensor) -> Tensor:
        return x[(..., *(slice(begin, size - end) for begin, end, size in self._cuts(x)))]

    def _check_left(self, x: Tensor) -> None:
        if any(begin + end > size for begin, end, size in self._cuts(x)):
            got = f"shape {x.shape} for padding {self.padding}"
            raise ShapeError(
                f"{type(self).__name__}: got {got}, want no more left out than there is"
            )


def _sides(value: Any, argument: str, spatial: int) -> tuple[int, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != 2 * spatial:
            raise ValueError(f"{argument}: got {value!r}, want {_WANT[spatial]}")
        return tuple(count(one, argument, -_MOST) for one in value)
    return (count(value, argument, -_MOST),) * (2 * spatial)


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float = 0.0) -> None:
        """`padding`: one int for all sides, or two for each axis, the last axis first. `value`:
        what stands there.

        Raises:
            TypeError, ValueError: anything else.
        """
        super().__init__(padding)
        self.value = number(value, f"{type(self).__name__}: value")


class ConstantPad1d(_ConstantPad):
    """Lines with a constant at both ends (PyTorch ConstantPad1d)."""

    spatial = 1


class ConstantPad2d(_ConstantPad):
    """Images with a constant around them (PyTorch ConstantPad2d)."""

    spatial = 2


class ConstantPad3d(_ConstantPad):
    """Volumes with a constant around them (PyTorch ConstantPad3d)."""

    spatial = 3


class ZeroPad1d(_Pad):
    """Lines with zeros at both ends (PyTorch ZeroPad1d)."""

    spatial = 1


class ZeroPad2d(_Pad):
    """Images with zeros around them (PyTorch ZeroPad2d)."""

    spatial = 2


class ZeroPad3d(_Pad):
    """Volumes with zeros around them (PyTorch ZeroPad3d)."""

    spatial = 3


class ReflectionPad1d(_Pad):
    """Lines with their reflection at both ends (PyTorch ReflectionPad1d), however wide."""

    spatial, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Images with their reflection around them (PyTorch ReflectionPad2d), however wide."""

    spatial, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Volumes with their reflection around them (PyTorch ReflectionPad3d), however wide."""

    spatial, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Lines with their outermost elements at both ends (PyTorch ReplicationPad1d)."""

    spatial, mode = 1, "edge"


class ReplicationPad2d(_Pad):
    """Images with their outermost elements around them (PyTorch ReplicationPad2d)."""

    spatial, mode = 2, "edge"


class ReplicationPad3d(_Pad):
    """Volumes with their outermost elements around them (PyTorch ReplicationPad3d)."""

    spatial, mode = 3, "edge"


class CircularPad1d(_Pad):
    """Lines that go on at their other end (PyTorch CircularPad1d), however wide."""

    spatial, mode = 1, "wrap"


class CircularPad2d(_Pad):
    """Images that go on at their other side (PyTorch CircularPad2d), however wide."""

    spatial, mode = 2, "wrap"


class CircularPad3d(_Pad):
    """Volumes that go on at their other side (PyTorch CircularPad3d), however wide."""

    spatial, mode = 3, "wrap"
