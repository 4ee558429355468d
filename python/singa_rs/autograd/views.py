"""Views: reshaping, transposing, slicing, expanding. They share the tensor's memory."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.creation import as_shape
from ..tensor.indexing import span
from ..tensor.numbers import whole, wholes
from . import ops
from .reduce import as_axes
from .rule import KeepsShape, Rule

Ints = int | Sequence[int]


class View(KeepsShape):
    """An operation whose output shares its input's memory, if strides can express it."""

    is_view = True

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        (x,) = xs
        self.shape = x.shape
        if is_followed(x) and x.shares_block(ys[0]):
            note_view(x, ys[0], self)


def is_followed(x: Tensor) -> bool:
    """Whether a write into a tensor may be noted on the tape: operations made it, or it was created
    in this step and is no parameter."""
    return x._creator is not None or (not x._stores_grad and x.is_new)


#: From so many noted views on, those that are gone are dropped whenever their number has doubled.
_FEW = 32


def note_view(x: Tensor, y: Tensor, node: Rule) -> None:
    """Links a view `y` to `x`, so that the tape notes writes through either for both."""
    y._base = (x, node)
    if not x._views:
        x._views = []
    x._views.append(weakref.ref(y))
    count = len(x._views)
    if count > _FEW and not count & (count - 1):
        live_views(x)


def live_views(x: Tensor) -> list[Tensor]:
    """The views of `x` that are still alive; the others are dropped from its list."""
    views = [view for r in x._views if (view := r()) is not None and _is_view(view, x)]
    if len(views) < len(x._views):
        x._views = [weakref.ref(view) for view in views]
    return views


def _is_view(view: Tensor, x: Tensor) -> bool:
    return view._base is not None and view._base[0] is x


class _Reshaping(View):
    """The same elements in row-major order in another shape."""

    def target(self, x: Tensor) -> tuple[int, ...]:
        """The output's shape."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return ops.reshape(x, self.target(x))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` in the input's shape."""
        return (ops.reshape(dys[0], self.shape),)


def resolve(shape: Sequence[int], numel: int, op: str = "reshape") -> tuple[int, ...]:
    """A shape in which one extent may be -1: whatever is left of `numel` elements."""
    if -1 not in shape:
        return tuple(shape)
    rest = math.prod(n for n in shape if n != -1)
    if list(shape).count(-1) > 1 or rest <= 0 or numel % rest:
        raise ShapeError(f"{op}: got shape {tuple(shape)} for {numel} elements, want one that fits")
    return tuple(numel // rest if n == -1 else n for n in shape)


class Reshape(_Reshaping):
    """Another shape: -1 takes what is left, 0 keeps the extent at its place (ONNX Reshape)."""

    def __init__(self, shape: Ints) -> None:
        self.to = as_shape(shape)

    def target(self, x: Tensor) -> tuple[int, ...]:
        if 0 not in self.to:
            return resolve(self.to, x.numel)
        have = x.shape
        if any(n == 0 and i >= len(have) for i, n in enumerate(self.to)):
            raise ShapeError(
                f"reshape: got shape {self.to} for {have}, which has no extent for a 0"
            )
        return resolve([have[i] if n == 0 else n for i, n in enumerate(self.to)], x.numel)


class PlainReshape(Reshape):
    """Another shape as in NumPy: 0 is an extent."""

    def target(self, x: Tensor) -> tuple[int, ...]:
        return resolve(self.to, x.numel)


class Flatten(_Reshaping):
    """A matrix: the axes before `axis` are its rows, the others its columns (ONNX Flatten)."""

    def __init__(self, axis: int = 1) -> None:
        self.axis = whole(axis, "flatten: axis")

    def target(self, x: Tensor) -> tuple[int, ...]:
        have, rank = x.shape, x.rank
        axis = self.axis + rank if self.axis < 0 else self.axis
        if not 0 <= axis <= rank:
            raise ShapeError(f"flatten: got axis {self.axis} for shape {have}")
        return math.prod(have[:axis]), math.prod(have[axis:])


class Squeeze(_Reshaping):
    """Without these axes of extent 1, without all of them by default (ONNX Squeeze). Here an empty
    list or tuple is the default, as in SINGA; to the method `t.squeeze` it is no axes."""

    def __init__(self, axis: Ints = ()) -> None:
        self.axis = as_shape(axis)

    def target(self, x: Tensor) -> tuple[int, ...]:
        have = x.shape
        if not self.axis:
            return tuple(n for n in have if n != 1)
        drop = as_axes(self.axis, len(have), "squeeze")
        if any(have[a] != 1 for a in drop):
            raise ShapeError(f"squeeze: got shape {have}, want extent 1 at axes {self.axis}")
        return tuple(n for i, n in enumerate(have) if i not in drop)


class Unsqueeze(_Reshaping):
    """With axes of extent 1 at these positions of the result (ONNX Unsqueeze)."""

    def __init__(self, axis: Ints) -> None:
        self.axis = as_shape(axis)

    def target(self, x: Tensor) -> tuple[int, ...]:
        rank = x.rank + len(self.axis)
        new, rest = as_axes(self.axis, rank, "unsqueeze"), iter(x.shape)
        return tuple(1 if i in new else next(rest) for i in range(rank))


class Transpose(View):
    """The axes in the order `perm`, reversed by default (ONNX Transpose)."""

    def __init__(self, perm: Sequence[int] | None = None) -> None:
        self.perm = perm

    def forward(self, x: Tensor) -> Tensor:
        rank = x.rank
        last_first = tuple(range(rank))[::-1]
        self.order = last_first if self.perm is None else as_axes(self.perm, rank, "transpose")
        return x.view_permute(self.order)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` with the axes back in their places."""
        back = sorted(range(len(self.order)), key=self.order.__getitem__)
        return (dys[0].view_permute(back),)


class Select(View):
    """Along each axis `count` elements from `start`, `step` apart; then another shape."""

    #: The key that the user wrote, if it is of plain ints and slices of them.
    key: Any = None

    def __init__(self, ranges: Sequence[tuple[int, int, int]], shape: tuple[int, ...]) -> None:
        self.ranges, self.to = ranges, shape

    def forward(self, x: Tensor) -> Tensor:
        part = x.view_slice(self.ranges)
        return part if part.shape == self.to else ops.reshape(part, self.to)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` at the selected elements, zero at the others."""
        made = ops.full(self.shape, 0, dys[0])
        self.put(dys[0], made, is_first=True)
        return (made,)

    def single(self) -> int | None:
        """The only axis along which one place is selected, if others are kept."""
        return None

    def put(self, dy: Tensor, whole: Tensor, is_first: bool = False) -> None:
        """Adds `dy` to the selected elements of a tensor of the input's shape, which are zero if
        nothing was added yet."""
        part, dy = self.part(whole, dy)
        if is_first:
            ops.copy.into([dy], [part])
        else:
            ops.add.into([part, dy], [part])

    def part(self, whole: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
        """A view of the selected elements, and `dy` in its shape."""
        part = whole.view_slice(self.ranges)
        return part, ops.reshape(dy, part.shape)


class Index(Select):
    """The elements at a key of plain ints, and slices of them."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def forward(self, x: Tensor) -> Tensor:
        return x.view_index(self.key)

    def at(self, axis: int) -> Any:
        """The key of an axis."""
        return self.key[axis] if type(self.key) is tuple else self.key

    def single(self) -> int | None:
        keys = self.key if type(self.key) is tuple else (self.key,)
        found = [axis for axis, key in enumerate(keys) if type(key) is int]
        return found[0] if len(found) == 1 and keys[found[0]] >= 0 else None

    def part(self, whole: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
        return whole.view_index(self.key), dy


class Slice(Select):
    """Elements from `starts` to before `ends` along `axes`, `steps` apart (ONNX Slice)."""

    def __init__(
        self,
        starts: Sequence[int],
        ends: Sequence[int],
        axes: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
    ) -> None:
        self.starts, self.ends, self.axes, self.steps = starts, ends, axes, steps

    def forward(self, x: Tensor) -> Tensor:
        have, starts = x.shape, wholes(self.starts, "slice: starts")
        ends = wholes(self.ends, "slice: ends")
        axes = range(len(starts)) if self.axes is None or len(self.axes) == 0 else self.axes
        steps = (1,) * len(starts) if self.steps is None or len(self.steps) == 0 else self.steps
        axes, steps = as_axes(axes, len(have), "slice"), wholes(steps, "slice: steps")
        counts = [len(starts), len(ends), len(axes), len(steps)]
        if len(set(counts)) > 1:
            got = "{} starts, {} ends, {} axes, {} steps".format(*counts)
            raise ValueError(f"slice: got {got}, want the same number of each")
        keys = [_slice(0, n, 1) for n in have]
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            keys[axis] = _slice(start, end, step)
        self.ranges = tuple(span(k, n) for k, n in zip(keys, have, strict=True))
        self.to = tuple(count for _, count, _ in self.ranges)
        return x.view_slice(self.ranges)


_slice = slice


class Expand(View):
    """Broadcast with `shape`, both ways (ONNX Expand)."""

    def __init__(self, shape: Ints) -> None:
        self.to = as_shape(shape)

    def forward(self, x: Tensor) -> Tensor:
        return x.view_expand(broadcast(x.shape, self.to))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` summed over the repeated axes."""
        return (ops.reduce_to(dys[0], self.shape),)


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that both broadcast to.

    Raises:
        ShapeError: there is none.
    """
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ShapeError(f"expand: got shapes {a}, {b}, want shapes that broadcast") from None


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(m in (1, n) for m, n in pairs)


class Identity(View):
    """The tensor itself, as a view (ONNX Identity)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.alias()

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy`."""
        return dys


class Clone(Identity):
    """A row-major copy with its own memory."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.copy(x)
