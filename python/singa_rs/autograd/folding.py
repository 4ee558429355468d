"""Windows as columns, and columns added up in images again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import whole, wholes
from . import ops
from .differentiable import Linear
from .index import getitem
from .reduce import as_axes
from .repeat import pad
from .shape import cat, plain_reshape
from .table import as_method, public
from .windows import MOST_AXES, Numbers, along, around, extents


class _Columns(NamedTuple):
    """How many windows there are along each axis, and where their elements stand."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    counts: tuple[int, ...]

    def starts(self) -> list[tuple[int, ...]]:
        """The places of the first window's elements, in row-major order."""
        steps = zip(self.kernel, self.dilation, strict=True)
        return list(itertools.product(*(range(0, k * d, d) for k, d in steps)))

    def ranges(self, start: Sequence[int]) -> list[tuple[int, int, int]]:
        """Start, count and step along each axis of one element of all windows."""
        return list(zip(start, self.counts, self.stride, strict=True))


def _columns(op: str, size: Sequence[int], kernel: Any, stride: Any, dilation: Any) -> _Columns:
    """The windows in images of a size, which has the padding.

    Raises:
        ValueError: a window that does not fit; a number below 1.
    """
    axes = len(size)
    given = [
        along(one, axes, f"{op}: {what}")
        for one, what in ((kernel, "kernel_size"), (stride, "stride"), (dilation, "dilation"))
    ]
    if any(n < 1 for one in given for n in one):
        got = f"kernel_size {kernel}, stride {stride}, dilation {dilation}"
        raise ValueError(f"{op}: got {got}, want at least 1")
    k, s, d = given
    reach = extents(k, d)
    if any(r > n for r, n in zip(reach, size, strict=True)):
        raise ShapeError(f"{op}: got windows of {reach} for padded images of {tuple(size)}")
    counts = tuple((n - r) // by + 1 for n, r, by in zip(size, reach, s, strict=True))
    return _Columns(k, s, d, counts)


def _margins(op: str, padding: Any, axes: int) -> tuple[int, ...]:
    found = around(padding, axes, f"{op}: padding")
    if min(found) < 0:
        raise ValueError(f"{op}: got padding {padding}, want at least 0")
    return found


@public()
def unfold(
    x: Tensor,
    kernel_size: Numbers,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    stride: Numbers = 1,
) -> Tensor:
    """The elements of all windows as columns (PyTorch unfold): (N, C, *spatial) to
    (N, C * elements of a window, windows). A convolution is the product of its weights with them.

    Args:
        x: one to three spatial axes, of any dtype.
        kernel_size: the extents of a window.
        dilation: how far apart its elements are.
        padding: zeros before and after each axis; two numbers for each, all before and then all
            after, if they differ.
        stride: how far apart windows are.

    Raises:
        ShapeError: another number of axes; a window that does not fit.
        ValueError: a number below 1, or padding below 0.
    """
    axes = x.rank - 2
    if not 1 <= axes <= MOST_AXES:
        raise ShapeError(f"unfold: got shape {x.shape}, want (N, C) and one to three more axes")
    sides = _margins("unfold", padding, axes)
    wider = [0, 0, *sides[:axes], 0, 0, *sides[axes:]]
    x = pad(x, "constant", wider) if any(wider) else x
    windows = _columns("unfold", x.shape[2:], kernel_size, stride, dilation)
    parts = []
    for start in windows.starts():
        cuts = (slice(a, a + (n - 1) * by + 1, by) for a, n, by in windows.ranges(start))
        parts.append(getitem(x, (slice(None), slice(None), None, *cuts)))
    made = cat(parts, 2)
    n, channels = x.shape[:2]
    return plain_reshape(made, (n, channels * len(parts), math.prod(windows.counts)))


class _Folding:
    """Columns added up where their elements stand in images, and images taken apart again."""

    def __init__(self, windows: _Columns, columns: tuple[int, ...], size: tuple[int, ...]) -> None:
        self.windows, self.columns = windows, columns
        self.image = (columns[0], columns[1] // math.prod(windows.kernel), *size)

    def _parts(self, image: Tensor) -> list[Tensor]:
        whole_ = [(0, n, 1) for n in self.image[:2]]
        starts = self.windows.starts()
        return [image.view_slice((*whole_, *self.windows.ranges(at))) for at in starts]

    def run(self, x: Tensor) -> Tensor:
        """The images."""
        image, starts = ops.full(self.image, 0, x), self.windows.starts()
        split = ops.reshape(x, (*self.image[:2], len(starts), *self.windows.counts))
        whole_, rest = [(0, n, 1) for n in self.image[:2]], [(0, n, 1) for n in self.windows.counts]
        for i, part in enumerate(self._parts(image)):
            piece = split.view_slice((*whole_, (i, 1, 1), *rest))
            ops.add.into([part, ops.reshape(piece, part.shape)], [part])
        return image

    def adjoint(self, dy: Tensor) -> Tensor:
        """The columns."""
        parts = self._parts(dy)
        shape = (*self.image[:2], 1, *self.windows.counts)
        joined = ops.op("concat", axis=2)(*(ops.reshape(part, shape) for part in parts))
        return ops.reshape(joined, self.columns)


@public()
def fold(
    x: Tensor,
    output_size: Numbers,
    kernel_size: Numbers,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    stride: Numbers = 1,
) -> Tensor:
    """The sum of all windows in images of a size (PyTorch fold, ONNX Col2Im), which is the gradient
    of `unfold`: (N, C * elements of a window, windows) to (N, C, *output_size).

    Args:
        x: columns as `unfold` makes them.
        output_size: the extents of the images, one for each axis.
        kernel_size, dilation, padding, stride: as in `unfold`.

    Raises:
        ShapeError: columns that do not fit; a window that does not fit.
        ValueError: a number below 1, or padding below 0.
        DTypeError: bools.
    """
    size = wholes(output_size, "fold: output_size")
    axes = len(size)
    if not 1 <= axes <= MOST_AXES or min(size) < 0:
        raise ValueError(f"fold: got output_size {output_size}, want one to three extents")
    sides = _margins("fold", padding, axes)
    padded = tuple(a + n + b for a, n, b in zip(sides[:axes], size, sides[axes:], strict=True))
    windows = _columns("fold", padded, kernel_size, stride, dilation)
    elements, count = math.prod(windows.kernel), math.prod(windows.counts)
    if x.rank != 3 or x.shape[1] % elements or x.shape[2] != count:
        want = f"(N, a multiple of {elements}, {count})"
        raise ShapeError(f"fold: got shape {x.shape}, want {want}")
    folding = _Folding(windows, x.shape, padded)
    made = Linear(folding.run, folding.adjoint)(x)[0]
    if not any(sides):
        return made
    inner = (slice(a, a + n) for a, n in zip(sides, size, strict=False))
    return getitem(made, (..., *inner))


@as_method("unfold")
def _unfold(self: Tensor, axis: int, size: int, step: int = 1) -> Tensor:
    """All slices of `size` elements along an axis, `step` apart, with their elements along a new
    last axis, as a copy (PyTorch Tensor.unfold and NumPy sliding_window_view, which give a view).

    Raises:
        ValueError: an axis that the tensor does not have; a size or step below 1; a size beyond the
            axis.
    """
    (at,) = as_axes(whole(axis, "unfold: axis"), self.rank, "unfold")
    count, by = whole(size, "unfold: size"), whole(step, "unfold: step")
    extent = self.shape[at]
    if not 1 <= count <= extent or by < 1:
        got = f"size {count}, step {by} for an axis of {extent}"
        raise ValueError(f"unfold: got {got}, want 1 at least, and no more than there are")
    stop = (extent - count) // by * by + 1
    before = (slice(None),) * at
    parts = [getitem(self, (*before, slice(i, i + stop, by), ..., None)) for i in range(count)]
    return cat(parts, self.rank)
