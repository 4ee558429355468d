"""Sequences, which are lists, and optional values, which are None where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import autograd
from ...tensor import Tensor
from ...tensor.numbers import wholes
from ..body import Body
from ..running import Frame
from ..table import reads
from ..values import to_tensor
from .arranging import axis_of
from .shapes import extents


def tensor(x: Any, frame: Frame) -> Tensor:
    """A value on the device."""
    return x if isinstance(x, Tensor) else to_tensor(x, frame.device)


def joined(values: list[Any], axis: int, frame: Frame, is_new: bool) -> Any:
    """Values joined along an axis, a new one or theirs; on the host if all of them are there."""
    if not any(isinstance(x, Tensor) for x in values):
        return (np.stack if is_new else np.concatenate)(values, axis)
    given = [tensor(x, frame) for x in values]
    return autograd.stack(given, axis) if is_new else autograd.cat(given, axis)


# ---- sequences -----------------------------------------------------------------------------------


@reads("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> list[Any]:
    """No values."""
    return []


@reads("SequenceConstruct", raw=True)
def sequence_construct(*xs: Any) -> list[Any]:
    """These values."""
    return list(xs)


@reads("SequenceLength", raw=True)
def sequence_length(xs: list[Any]) -> np.ndarray:
    """The number of values."""
    return np.array(len(xs), np.int64)


def _place(op: str, position: Any, count: int, last: int, frame: Frame) -> int:
    """A position counted from the start, up to `last`.

    Raises:
        ValueError: there is no such position.
    """
    (at,) = wholes(np.ravel(frame.read(position)), f"{op}: position")
    if not -count <= at <= last:
        raise ValueError(f"{op}: got position {at}, want one from {-count} to {last}")
    return at + count if at < 0 else at


@reads("SequenceAt", raw=True)
def sequence_at(xs: list[Any], position: Any, *, frame: Frame) -> Any:
    """The value at a position."""
    return xs[_place("SequenceAt", position, len(xs), len(xs) - 1, frame)]


@reads("SequenceInsert", raw=True)
def sequence_insert(xs: list[Any], x: Any, position: Any = None, *, frame: Frame) -> list[Any]:
    """A sequence with one more value, at the end by default."""
    count = len(xs)
    given = count if position is None else position
    at = _place("SequenceInsert", given, count, count, frame)
    return [*xs[:at], x, *xs[at:]]


@reads("SequenceErase", raw=True)
def sequence_erase(xs: list[Any], position: Any = None, *, frame: Frame) -> list[Any]:
    """A sequence without a value, the last one by default."""
    given = -1 if position is None else position
    at = _place("SequenceErase", given, len(xs), len(xs) - 1, frame)
    return [*xs[:at], *xs[at + 1 :]]


@reads("SequenceMap", raw=True)
def sequence_map(xs: list[Any], *more: Any, body: Body, frame: Frame) -> tuple[list[Any], ...]:
    """The outputs of a body for each value of sequences, beside values that stay the same."""
    every = [one if isinstance(one, list) else [one] * len(xs) for one in more]
    found = [frame.call(body, given) for given in zip(xs, *every, strict=True)]
    return tuple([one[i] for one in found] for i in range(len(body.outputs)))


@reads("SplitToSequence", raw=True)
def split_to_sequence(
    x: Any, split: Any = None, *, axis: int = 0, keepdims: int = 1, frame: Frame
) -> list[Any]:
    """Parts along an axis: of one size, of sizes, or of one element."""
    along = axis_of(axis, len(extents(x)), "SplitToSequence")
    sizes = _sizes(extents(x)[along], 1 if split is None else frame.read(split))
    if isinstance(x, Tensor):
        is_single = split is None and not keepdims
        return list(autograd.unbind(x, along) if is_single else autograd.split(x, along, sizes))
    parts = np.split(x, np.cumsum(sizes)[:-1], along)
    return [one.squeeze(along) for one in parts] if split is None and not keepdims else parts


def _sizes(extent: int, split: Any) -> tuple[int, ...]:
    """The sizes of parts of an axis, from one size or from several."""
    given = wholes(split, "SplitToSequence: split")
    if np.ndim(split):
        return given
    if given[0] < 1:
        raise ValueError(f"SplitToSequence: got split {given[0]}, want at least 1")
    return tuple(min(given[0], extent - at) for at in range(0, extent, given[0]))


@reads("ConcatFromSequence", raw=True)
def concat_from_sequence(xs: list[Any], *, axis: int, new_axis: int = 0, frame: Frame) -> Any:
    """The values joined along an axis."""
    if not xs:
        raise ValueError("ConcatFromSequence: got an empty sequence, want a value")
    return joined(xs, axis, frame, bool(new_axis))


# ---- optional values -----------------------------------------------------------------------------


@reads("Optional", raw=True)
def optional(x: Any = None, *, type: Any = None) -> tuple[Any]:
    """The value, if there is one."""
    return (x,)


@reads("OptionalHasElement", raw=True)
def optional_has_element(x: Any = None) -> np.ndarray:
    """Whether there is a value."""
    return np.array(x is not None)


@reads("OptionalGetElement", raw=True)
def optional_get_element(x: Any) -> tuple[Any]:
    """The value, which there must be."""
    if x is None:
        raise ValueError("OptionalGetElement: got an empty optional, want a value")
    return (x,)
