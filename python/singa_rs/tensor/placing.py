"""The arguments of functions that make tensors: shapes, devices and dtypes, and what is taken for
one of them by programs written for NumPy or PyTorch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .. import device as devices
from .._core import Device, DeviceError, DType
from ..refusals import is_integral
from .numbers import wholes

#: What `zeros` and its kin take in order after the first extent: extents, a device, a dtype.
More = int | Device | DType | str


def is_device(value: Any) -> bool:
    """Whether a text names a device: `cpu`, `cuda`, `cuda:1`."""
    return isinstance(value, str) and bool(re.fullmatch(r"cpu(:0)?|(cuda|gpu)(:\d+)?", value))


def placed(op: str, device: Any, example: str = "") -> None:
    """Refuses what is no device that tensors can be made on; None is the default device.

    Raises:
        DeviceError: a device that this build does not have.
        TypeError: anything else.
    """
    if device is None or isinstance(device, Device):
        return
    if isinstance(device, str):
        if is_device(device):
            return
        if device.partition(":")[0] in ("mps", "xpu"):
            raise DeviceError(f"{op}: got device {device!r}, want the CPU or CUDA")
    hint = f"; {example}" if example and is_integral(device) else ""
    raise TypeError(
        f"{op}: got {device!r:.80} for device, want a Device, 'cpu', 'cuda' or None{hint}"
    )


def located(device: Device | str | None) -> Device:
    """The device that an argument names, once `placed` has let it pass; the CPU by default.

    Raises:
        DeviceError: there is no such GPU.
    """
    if isinstance(device, Device):
        return device
    name, _, number = (device or "cpu").partition(":")
    return _core.cpu() if name == "cpu" else devices.create_cuda_gpu_on(int(number or 0))


def is_dtype(value: Any) -> bool:
    """Whether it can only be meant as a dtype: a constant, NumPy's or Python's type, a name."""
    if isinstance(value, (DType, np.dtype, type)):
        return True
    try:
        return isinstance(value, str) and value != "cpu" and bool(_core.dtype(value))
    except (TypeError, ValueError):
        return False


def arranged(
    op: str, shape: Any, more: Sequence[Any], device: Any, dtype: Any
) -> tuple[tuple[int, ...], Device, Any]:
    """The shape, the device and the dtype of `zeros(shape, device, dtype)`, SINGA's order, of
    `zeros(shape, dtype)`, NumPy's, and of `zeros(2, 3)`, PyTorch's.

    Raises:
        TypeError: arguments in no such order.
        DeviceError: a device that this build does not have.
    """
    rest, extents = list(more), wholes(shape, "shape")
    while rest and is_integral(rest[0]) and is_integral(shape):
        extents += wholes(rest.pop(0), "shape")
    if rest and device is None and not is_dtype(rest[0]):
        device = rest.pop(0)
        if type(device) is str and not re.fullmatch(r"(cpu|cuda|gpu|mps|xpu)(:.*)?", device):
            raise TypeError(
                f"{op}: got {device!r:.80}, want a device such as 'cpu', or a dtype such as "
                f"'float32'"
            )
    if rest and dtype is None:
        dtype = rest.pop(0)
    if rest:
        got = ", ".join(f"{one!r:.40}" for one in (shape, *more))
        raise TypeError(f"{op}: got {got}, want a shape, a device and a dtype: {op}((2, 3))")
    placed(op, device, f"a shape is one argument: {op}((2, 3))")
    return extents, located(device), _core.float32 if dtype is None else dtype


def row_major(shape: Sequence[int]) -> list[int]:
    """The distances between neighbours along each axis of a row-major tensor, in elements."""
    strides, count = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        strides[axis], count = count, count * shape[axis]
    return strides


def values_as_shape(shape: Any) -> str | None:
    """What is wrong with a shape that looks like the values of a tensor; None if nothing is."""
    if isinstance(shape, np.ndarray) and (shape.dtype.kind not in "iu" or shape.ndim > 1):
        return f"an array of {shape.dtype} and shape {shape.shape}"
    if isinstance(shape, list) and not all(map(_is_extent, shape)):
        return f"{shape!r:.60}"
    return None


def _is_extent(value: Any) -> bool:
    return is_integral(value) or getattr(value, "shape", None) == ()
