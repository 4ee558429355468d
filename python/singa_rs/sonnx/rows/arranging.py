"""Joining, cutting, repeating and padding tensors, and their elements in other orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor
from ...tensor.numbers import wholes
from ..running import Frame
from ..table import reads
from ..values import to_tensor


def axis_of(axis: int, rank: int, op: str) -> int:
    """An axis counted from the first one.

    Raises:
        ValueError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"{op}: got axis {axis} for {rank} axes, want one of them")
    return axis % rank


# ---- joining and cutting -------------------------------------------------------------------------


@reads("Concat")
def concat_channels(*xs: Tensor, axis: int = 1) -> Tensor:
    """Tensors joined along an axis, that of channels by default."""
    return autograd.cat(xs, axis)


@reads("Concat", since=4)
def concat(*xs: Tensor, axis: int) -> Tensor:
    """Tensors joined along an axis."""
    return autograd.cat(xs, axis)


@reads("Split", host="split")
def split(
    x: Tensor, split: Any = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int
) -> tuple[Tensor, ...]:
    """Parts along an axis: of these sizes (an attribute below opset 13), or equal ones."""
    extent = x.shape[axis_of(axis, x.rank, "Split")]
    if split is not None:
        sizes = wholes(split, "Split: split")
        if len(sizes) != outputs:
            raise ValueError(f"Split: got sizes {sizes} for {outputs} outputs, want as many")
        return autograd.split(x, axis, sizes)
    count = outputs if num_outputs is None else num_outputs
    if count != outputs:
        raise ValueError(f"Split: got num_outputs {count} for {outputs} outputs, want as many")
    size = -(-extent // count)
    return autograd.split(x, axis, [max(0, min(size, extent - i * size)) for i in range(count)])


@reads("Slice", host="axes steps", kept="starts ends")
def slice_(
    x: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None, *, frame: Frame
) -> Tensor:
    """Ranges along axes; below opset 10 they are attributes, without steps."""
    is_plain = steps is None or np.all(np.equal(steps, 1))
    if frame.guesses is not None and isinstance(starts, Tensor) and is_plain:
        return _moving_slice(x, starts, ends, axes, frame)
    starts, ends = frame.read_small(starts), frame.read_small(ends)
    named = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    given = {k: wholes(v, f"Slice: {k}") for k, v in named.items() if v is not None}
    over = given.get("axes", range(len(given["starts"])))
    extents = [x.shape[axis_of(a, x.rank, "Slice")] for a in over]
    # A start before the first element is the first one, also of slices that go backwards.
    given["starts"] = [max(a, -n) for a, n in zip(given["starts"], extents, strict=True)]
    return autograd.slice(x, **given)


def _moving_slice(x: Tensor, starts: Tensor, ends: Any, axes: Any, frame: Frame) -> Tensor:
    """Ranges that begin at places on the device: their lengths alone are read, which are nearly
    always the same."""
    first, last = (_indices(one, frame) for one in (starts, ends))
    over = range(first.numel) if axes is None else wholes(axes, "Slice: axes")
    for i, axis in enumerate(over):
        along = axis_of(axis, x.rank, "Slice")
        extent = x.shape[along]
        begin, end = (_within(one[i : i + 1], extent) for one in (first, last))
        count = int(np.ravel(frame.read_small(end - begin))[0])
        x = autograd.gather(x, along, begin + to_tensor(np.arange(count), frame.device))
    return x


def _indices(x: Any, frame: Frame) -> Tensor:
    return autograd.cast(x if isinstance(x, Tensor) else to_tensor(x, frame.device), "int64")


def _within(place: Tensor, extent: int) -> Tensor:
    """A place counted from the first element, not before it and not behind the end."""
    return autograd.clip(autograd.where(place < 0, place + extent, place), 0, extent)


@reads("Tile", host="repeats")
def tile(x: Tensor, repeats: Any) -> Tensor:
    """Repeated along each axis."""
    counts = wholes(repeats, "Tile: repeats")
    if len(counts) != x.rank:
        raise ShapeError(f"Tile: got repeats {counts} for shape {x.shape}, want one for each axis")
    return autograd.tile(x, counts)


@reads("CenterCropPad", host="shape")
def center_crop_pad(x: Tensor, shape: Any, *, axes: Sequence[int] | None = None) -> Tensor:
    """The middle of axes that are longer than wanted, zeros around shorter ones."""
    sizes = wholes(shape, "CenterCropPad: shape")
    over = range(x.rank) if axes is None else axes
    if len(sizes) != len(over):
        raise ShapeError(f"CenterCropPad: got {sizes} for axes {tuple(over)}, want one for each")
    pads = [0] * (2 * x.rank)
    for axis, size in zip(over, sizes, strict=True):
        along = axis_of(axis, x.rank, "CenterCropPad")
        missing = size - x.shape[along]
        # The odd element comes last, in cropping as in padding.
        first = missing // 2 if missing > 0 else -(-missing // 2)
        pads[along], pads[x.rank + along] = first, missing - first
    return padded(x, pads)


# ---- padding -------------------------------------------------------------------------------------

_PAD_MODES = ("constant", "reflect", "edge", "wrap")


def padded(x: Tensor, pads: Sequence[int], mode: str = "constant", value: Any = 0) -> Tensor:
    """Wider; negative pads cut elements off first."""
    rank = x.rank
    if min(pads, default=0) < 0:
        starts = [max(0, -n) for n in pads[:rank]]
        ends = [n + min(0, by) for n, by in zip(x.shape, pads[rank:], strict=True)]
        x = autograd.slice(x, starts, [max(a, b) for a, b in zip(starts, ends, strict=True)])
    wider = [max(0, n) for n in pads]
    return autograd.pad(x, mode, wider, value) if any(wider) else x


def _all_axes(pads: Sequence[int], axes: Any, rank: int) -> list[int]:
    """Pads of all axes from those of some: all before, then all after."""
    over = range(rank) if axes is None else wholes(axes, "Pad: axes")
    if len(pads) != 2 * len(over):
        raise ShapeError(f"Pad: got pads {tuple(pads)} for {len(over)} axes, want two for each")
    made = [0] * (2 * rank)
    for i, axis in enumerate(over):
        along = axis_of(axis, rank, "Pad")
        made[along], made[rank + along] = pads[i], pads[len(over) + i]
    return made


@reads("Pad", host="pads constant_value axes")
def pad(
    x: Tensor,
    pads: Any = None,
    constant_value: Any = None,
    axes: Any = None,
    *,
    mode: str = "constant",
    value: float = 0.0,
    paddings: Any = None,
) -> Tensor:
    """Wider, or narrower where pads are negative; attributes below opset 11."""
    if mode not in _PAD_MODES:
        raise ValueError(f"Pad: got mode {mode!r}, want one of {', '.join(_PAD_MODES)}")
    given = pads if paddings is None else paddings
    wide = _all_axes(wholes(given, "Pad: pads"), axes, x.rank)
    fill = value if constant_value is None else np.reshape(constant_value, ())[()]
    return padded(x, wide, mode, fill)


# ---- other orders --------------------------------------------------------------------------------


@reads("Trilu", host="k")
def trilu(x: Tensor, k: Any = 0, *, upper: int = 1) -> Tensor:
    """The upper or the lower triangles of matrices."""
    (diagonal,) = (0,) if k is None else wholes(k, "Trilu: k")
    return (autograd.triu if upper else autograd.tril)(x, diagonal)


@reads("ReverseSequence")
def reverse_sequence(
    x: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0, frame: Frame
) -> Tensor:
    """The first steps of each row in the opposite order."""
    if {batch_axis, time_axis} != {0, 1}:
        got = f"batch_axis {batch_axis}, time_axis {time_axis}"
        raise ValueError(f"ReverseSequence: got {got}, want 0 and 1")
    rows, steps = x.shape[batch_axis], x.shape[time_axis]
    time = to_tensor(np.arange(steps), frame.device).reshape((steps, 1))
    lengths = autograd.cast(sequence_lens, "int64").reshape((1, rows))
    places = autograd.where(time < lengths, lengths - 1 - time, time)
    places = places if time_axis == 0 else autograd.transpose(places, (1, 0))
    places = places.reshape((*places.shape, *(1,) * (x.rank - 2)))
    return autograd.take_along_axis(x, places, time_axis)


@reads("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of space as channels."""
    return autograd.space_to_depth(x, blocksize, mode)


@reads("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Channels as blocks of space."""
    return autograd.depth_to_space(x, blocksize, mode)
