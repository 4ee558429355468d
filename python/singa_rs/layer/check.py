"""Checks of arguments, of layers and of what builds on them. Each error names the argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import device
from ..errors import DTypeError, ShapeError
from ..refusals import count as count
from ..refusals import flag as flag
from ..shown import misgiven, shown
from ..tensor import Tensor
from ..tensor.numbers import plain_real
from ..tensor.numbers import within as number


def count_or_none(value: Any, argument: str, least: int = 1) -> int | None:
    """An int from `least`, or None."""
    return None if value is None else count(value, argument, least)


def below_one(value: Any, argument: str) -> float:
    """A number in [0, 1)."""
    found = number(value, argument, 0.0, 1.0)
    if found == 1:
        raise ValueError(f"{argument}: got 1, want a number below 1")
    return found


_WANT = {1: "an int", 2: "an int or a pair", 3: "an int or three of them"}


def numbers(value: Any, argument: str, axes: int, least: int = 1) -> tuple[int, ...]:
    """Ints from `least`: one for all axes, or a sequence of one for each."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != axes:
            raise ValueError(f"{argument}: got {value!r}, want {_WANT[axes]}")
        return tuple(count(one, argument, least) for one in value)
    return (count(value, argument, least),) * axes


def paddings(value: Any, argument: str, axes: int) -> tuple[int, ...]:
    """Padding before each axis, then after each: from one int, from one for each axis, or from
    all."""
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2 * axes:
        return tuple(count(one, argument, 0) for one in value)
    return numbers(value, argument, axes, 0) * 2


def exponent(value: Any, argument: str) -> float:
    """A number from 1, also infinity."""
    made = plain_real(value, argument)
    if not made >= 1:
        raise ValueError(f"{argument}: got {value}, want at least 1")
    return made


def at_most(layer: str, given: int, most: int) -> None:
    """Rejects too many positional arguments."""
    if given > most:
        raise TypeError(f"{layer}: got {given} arguments in order, want at most {most}")


def tensors(values: Sequence[Any], op: str) -> None:
    """Rejects values that are not tensors."""
    for value in values:
        if not isinstance(value, Tensor):
            raise TypeError(f"{op}: {misgiven(value)}")


def device_check(self: Any, *inputs: Tensor) -> None:
    """Moves tensors, in place, to the device of the first."""
    if device.on_one_device(*inputs):
        return
    tensors(inputs, type(self).__name__)
    for other in inputs[1:]:
        if other.device != inputs[0].device:
            other.to_device(inputs[0].device)


def mapping(value: Any, argument: str) -> dict[Any, Any]:
    """A mapping, copied to a dictionary."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument}: got {type(value).__name__}, want a mapping")
    return dict(value)


def one_of(value: Any, argument: str, allowed: Sequence[str]) -> str:
    """One of the strings allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{argument}: got {shown(value)}, want one of {', '.join(allowed)}")
    return str(value)


def float_input(x: Tensor, layer: str) -> None:
    """Rejects an input that is not a tensor of floats, as a layer's weights take its dtype."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{layer}: {misgiven(x)}")
    if not x.dtype.is_float:
        raise DTypeError(f"{layer}: got dtype {x.dtype.name}, want a float dtype")


def axes(x: Tensor, layer: str, *allowed: int) -> None:
    """Rejects an input whose number of axes is not among those allowed."""
    if x.rank not in allowed:
        want = " or ".join(map(str, allowed))
        raise ShapeError(f"{layer}: got shape {x.shape}, want {want} axes")


def features(x: Tensor, layer: str, axis: int, want: int | None, least: int = 2) -> int:
    """The size of an axis, which must be `want` if that is given, of at least `least` axes."""
    shape = x.shape
    if len(shape) < least:
        some = "an axis" if least == 1 else f"at least {least} axes"
        raise ShapeError(f"{layer}: got shape {shape}, want {some}")
    if want is not None and shape[axis] != want:
        raise ShapeError(f"{layer}: got shape {shape}, want {want} on axis {axis}")
    return shape[axis]
