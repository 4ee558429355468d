"""Repeating, padding and interleaving: views of expanded axes, copied once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import ShapeError
from ..refusals import is_integral
from ..tensor import Tensor
from ..tensor.creation import as_shape
from ..tensor.numbers import as_array, number, whole, wholes
from . import ops
from .borders import unpadded
from .index import gather
from .mode import as_one
from .reduce import as_axes
from .rule import KeepsShape, function
from .table import public


def fresh(y: Tensor, x: Tensor) -> Tensor:
    """`y`, copied if it shares the memory of `x`, which writes into `y` must not reach."""
    return ops.copy(y) if y.shares_block(x) else y


class _Repetition(KeepsShape):
    """Each axis becomes two, one of which is repeated before both are merged again."""

    def counts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """How often each axis is repeated."""
        raise NotImplementedError

    #: Whether the repetitions come before the axis (whole copies) or after it (each element).
    outer: bool

    def forward(self, x: Tensor) -> Tensor:
        counts = self.counts(x.shape)
        self.whole = (1,) * (len(counts) - x.rank) + x.shape
        pairs = [(c, n) if self.outer else (n, c) for c, n in zip(counts, self.whole, strict=True)]
        self.pairs = tuple(n for pair in pairs for n in pair)
        ones = [(1, n) if self.outer else (n, 1) for n in self.whole]
        spread = ops.reshape(x, tuple(n for pair in ones for n in pair)).view_expand(self.pairs)
        return fresh(ops.reshape(spread, tuple(c * n for c, n in pairs)), x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` summed over the repetitions."""
        dy = ops.reshape(dys[0], self.pairs)
        axes = tuple(range(0 if self.outer else 1, len(self.pairs), 2))
        total = ops.op("reduce", f="sum", axes=axes, keepdims=False)(dy) if axes else dy
        return (ops.reshape(total, self.shape),)


class Tile(_Repetition):
    """The tensor `repeats` times along each axis; more repeats than axes add axes (ONNX Tile)."""

    outer = True

    def __init__(self, repeats: int | Sequence[int]) -> None:
        self.repeats = as_shape(repeats)

    def counts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) * (len(shape) - len(self.repeats)) + self.repeats


class Repeat(_Repetition):
    """Each element `repeats` times along an axis (NumPy repeat)."""

    outer = False

    def __init__(self, repeats: int, axis: int) -> None:
        self.repeats, self.axis = whole(repeats, "repeat: repeats"), axis

    def counts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        (axis,) = as_axes(self.axis, len(shape), "repeat")
        return tuple(self.repeats if i == axis else 1 for i in range(len(shape)))


class UpSample(_Repetition):
    """Enlarged by whole factors, one per axis, by repeating elements (ONNX Upsample, nearest)."""

    outer = False

    def __init__(self, mode: str, scales: Any) -> None:
        if mode not in ("nearest", b"nearest"):
            raise ValueError(f"upsample: got mode {mode!r}, want 'nearest'")
        self.mode = mode
        self.scales = wholes(as_array(scales, "upsample: scales").ravel(), "upsample: scales")
        if min(self.scales, default=1) < 1:
            raise ValueError(f"upsample: got scales {self.scales}, want whole numbers from 1")

    def counts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(self.scales) != len(shape):
            raise ShapeError(f"upsample: got scales {self.scales} for shape {shape}")
        return self.scales


tile = function(Tile, "tile")
upsample = function(UpSample, "upsample")


@public(Repeat, methods="repeat")
def repeat(x: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element `repeats` times (one number, or one per element) (NumPy repeat)."""
    if axis is None:
        x, axis = x.reshape((-1,) if x.numel else (0,)), 0
    counts = wholes(as_array(repeats, "repeat: repeats").ravel(), "repeat: repeats")
    if min(counts, default=0) < 0:
        raise ValueError(f"repeat: got repeats {counts}, want none below 0")
    if len(counts) == 1:
        return Repeat(counts[0], axis)(x)[0]
    (along,) = as_axes(axis, x.rank, "repeat")
    if len(counts) != x.shape[along]:
        raise ShapeError(f"repeat: got {len(counts)} repeats for an axis of {x.shape[along]}")
    return gather(x, along, np.repeat(np.arange(len(counts)), counts))


#: By the names of modes, NumPy's and ONNX's first, then PyTorch's others: NumPy's.
_FILLS = {name: name for name in ("constant", "reflect", "edge", "wrap", "symmetric")}
_FILLS |= {"replicate": "edge", "circular": "wrap"}


class Pad(KeepsShape):
    """Wider by `pads` (all begins, then all ends), filled by `mode`: "constant"; "edge" or
    "replicate", the nearest element; "reflect", the reflection, "symmetric" with the outermost
    element again; "wrap" or "circular", what stands at the other end (ONNX Pad, NumPy pad)."""

    def __init__(self, mode: str, pads: Sequence[int], constant: float = 0.0) -> None:
        name = mode.decode() if isinstance(mode, bytes) else mode
        self.pads, self.constant = list(wholes(pads, "pad: pads")), number(constant, "pad")
        if not isinstance(name, str) or name not in _FILLS:
            raise ValueError(f"pad: got mode {mode!r}, want one of {', '.join(_FILLS)}")
        self.mode = _FILLS[name]
        if any(not 0 <= n < 2**60 for n in self.pads):
            raise ValueError(f"pad: got pads {self.pads}, want numbers from 0 to below 2**60")

    def forward(self, x: Tensor) -> Tensor:
        rank = x.rank
        if len(self.pads) != 2 * rank:
            raise ShapeError(f"pad: got pads {self.pads} for shape {x.shape}")
        ends = list(zip(self.pads[:rank], self.pads[rank:], strict=True))
        if self.mode == "constant":
            return self._filled(x, ends)
        attrs = {"mode": self.mode, "pads": self.pads}
        return as_one("pad", attrs, x, lambda x: self._gathered(x, ends))

    def _filled(self, x: Tensor, ends: list[tuple[int, int]]) -> Tensor:
        have = x.shape
        made = tuple(a + n + b for n, (a, b) in zip(have, ends, strict=True))
        y = ops.full(made, self.constant, x)
        self.ranges = [(a if n else 0, n, 1) for n, (a, _) in zip(have, ends, strict=True)]
        ops.copy.into([x], [y.view_slice(self.ranges)])
        return y

    def _gathered(self, x: Tensor, ends: list[tuple[int, int]]) -> Tensor:
        self.places = []
        for axis, ((a, b), n) in enumerate(zip(ends, x.shape, strict=True)):
            if a or b:
                place = np.pad(np.arange(n, dtype=np.int32), (a, b), mode=self.mode)
                self.places.append((axis, n, a, b, _core.from_numpy(place, x.device)))
                x = ops.op("gather", axis=axis)(x, self.places[-1][-1])
        return x if self.places else ops.copy(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` of the interior, and of all positions that repeat an element."""
        (dy,) = dys
        if self.mode == "constant":
            return (dy.view_slice(self.ranges),)
        for axis, n, a, b, place in reversed(self.places):
            made = unpadded(dy, axis, n, a, b, self.mode)
            dy = ops.op("gather_grad", axis=axis, size=n)(dy, place) if made is None else made
        return (dy,)


@public(Pad)
def pad(x: Tensor, mode: Any, pads: Any = None, constant: float = 0.0) -> Tensor:
    """Wider by `pads` (all begins, then all ends), filled by `mode`: "constant"; "edge" or
    "replicate", the nearest element; "reflect", the reflection, "symmetric" with the outermost
    element again; "wrap" or "circular", what stands at the other end (ONNX Pad, NumPy pad).

    `pad(x, 1)` and `pad(x, ((1, 1), (0, 2)), "edge")` are NumPy's: one width, or a pair for each
    axis, and the mode.

    Raises:
        ValueError: an unknown mode, negative widths.
        TypeError: widths without a mode that are a flat sequence, as PyTorch's for the last axes.
        ShapeError: widths of another number of axes.
    """
    if not isinstance(mode, (str, bytes)):
        pads, mode = _widths(x, mode), "constant" if pads is None else pads
    return Pad(mode, pads, constant)(x)[0]


def _widths(x: Tensor, given: Any) -> list[int]:
    """NumPy's widths, all begins and then all ends."""
    if is_integral(given):
        return [int(given)] * (2 * x.rank)
    if not isinstance(given, (tuple, list)) or not all(
        isinstance(one, (tuple, list)) for one in given
    ):
        raise TypeError(
            f"pad: got {given!r:.60} for mode, want pad(x, 'constant', [all begins, all ends]), or "
            "a pair for each axis: pad(x, ((0, 0), (1, 1)))"
        )
    pairs = list(given) * x.rank if len(given) == 1 else list(given)
    if len(pairs) != x.rank or any(len(one) != 2 for one in pairs):
        raise ShapeError(f"pad: got {given!r:.60} for shape {x.shape}, want a pair for each axis")
    return [begin for begin, _ in pairs] + [end for _, end in pairs]


class _Interleaving(KeepsShape):
    """Blocks of channels to blocks of space or back: reshape, permute, reshape."""

    def __init__(self, blocksize: int, mode: str = "DCR") -> None:
        self.mode = mode.decode() if isinstance(mode, bytes) else mode
        self.blocksize = whole(blocksize, f"{type(self).__name__}: blocksize")
        if self.mode not in ("DCR", "CRD"):
            raise ValueError(f"{type(self).__name__}: got mode {mode!r}, want 'DCR' or 'CRD'")

    def _check(self, x: Tensor, divisible: Sequence[int]) -> tuple[int, int, int, int]:
        shape = x.shape
        if len(shape) != 4 or any(
            n % self.blocksize**p for n, p in zip(shape, divisible, strict=True)
        ):
            raise ShapeError(
                f"{type(self).__name__}: got shape {shape} for blocks of {self.blocksize}, want "
                "4 axes that can be divided"
            )
        return shape

    def _to_space(self, x: Tensor) -> Tensor:
        (n, c, h, w), b = self._check(x, (0, 2, 0, 0)), self.blocksize
        depth = c // (b * b)
        if self.mode == "DCR":
            split, order = (n, b, b, depth, h, w), (0, 3, 4, 1, 5, 2)
        else:
            split, order = (n, depth, b, b, h, w), (0, 1, 4, 2, 5, 3)
        return ops.reshape(ops.reshape(x, split).view_permute(order), (n, depth, h * b, w * b))

    def _to_depth(self, x: Tensor) -> Tensor:
        (n, c, h, w), b = self._check(x, (0, 0, 1, 1)), self.blocksize
        split = ops.reshape(x, (n, c, h // b, b, w // b, b))
        order = (0, 3, 5, 1, 2, 4) if self.mode == "DCR" else (0, 1, 3, 5, 2, 4)
        return ops.reshape(split.view_permute(order), (n, c * b * b, h // b, w // b))


class DepthToSpace(_Interleaving):
    """Blocks of channels to blocks of space: (N, C, H, W) to (N, C/b**2, H*b, W*b) (ONNX
    DepthToSpace)."""

    def forward(self, x: Tensor) -> Tensor:
        return fresh(self._to_space(x), x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy`, back to depth."""
        return (self._to_depth(dys[0]),)


class SpaceToDepth(_Interleaving):
    """Blocks of space to blocks of channels: (N, C, H, W) to (N, C*b**2, H/b, W/b) (ONNX
    SpaceToDepth)."""

    def forward(self, x: Tensor) -> Tensor:
        return fresh(self._to_depth(x), x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy`, back to space."""
        return (self._to_space(dys[0]),)


depth_to_space = function(DepthToSpace, "depth_to_space")
space_to_depth = function(SpaceToDepth, "space_to_depth")
