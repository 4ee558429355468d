"""Writing into tensors by operators and by index.

Writes into parameters and their views are not recorded, nor are those into tensors that were there
before the step began. A write into a tensor that an operation made, or of a value with a gradient
into one that was created in the step, is noted on the tape, so that gradients are those of the new
value, also through views that were taken before; what an operation had saved of the old value is
found to be stale when backward needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import DTypeError, ShapeError
from ..errors import called
from ..tensor import Tensor
from ..tensor.dtypes import bool_
from ..tensor.indexing import Selection, parse
from ..tensor.numbers import as_array, as_number
from ..tensor.writing import is_expanded, write_array, write_tensor
from . import binary, ops
from .casting import cast, convert
from .index import getitem, positions, where
from .mode import mode, no_grad
from .order import has_history, is_traced
from .patches import Constant, Part, Run, Through, patched
from .scalar import is_beyond
from .segments import combined, replace_rows
from .shape import clone, plain_reshape
from .table import METHODS
from .tape import edge, made_by, output_of, remake, retain
from .views import (
    Expand,
    Identity,
    Index,
    Select,
    Transpose,
    broadcasts,
    is_followed,
    live_views,
    note_view,
)


def operator(cls: type[binary.Binary]) -> Callable[[Tensor, Any], Tensor]:
    """The in-place form of an operator: `a f= b`."""
    f, op = cls.f, ops.op("binary", f=cls.f)

    def assign(a: Tensor, b: Any) -> Tensor:
        if join(a, b):
            old = clone(a) if _needs_old(cls, b) else a
            return assigned(a, f, lambda: binary.compute(cls, old, b))
        if isinstance(b, Tensor) and b.dtype == a.dtype and a.shape == _shape_with(a, b):
            op.into([a, b], [a])
            return a
        number = as_number(b)
        if number is not None and a.dtype.is_float:
            try:
                ops.scalar_op(f, number).into([a], [a])
                return a
            except ValueError:
                if not is_beyond(number, a.dtype):
                    raise
        return assigned(a, f, lambda: binary.compute(cls, a, b))

    return called(assign, f"i{f}", f"`{f}` into the tensor's own memory.")


def _needs_old(cls: type[binary.Binary], b: Any) -> bool:
    """Whether a gradient needs the left operand's value, which is about to be overwritten."""
    is_wanted = isinstance(b, Tensor) and b.requires_grad
    return cls.f == "pow" or ("a" in cls.saves and is_wanted)


def assigned(a: Tensor, op: str, compute: Callable[[], Tensor]) -> Tensor:
    """`a`, with the value that `compute` gives it for the operation `op`."""
    if is_recorded(a):
        made = compute()
        _write(a, made, op)
        _replace(a, cast(made, a.dtype)._creator)
        return a
    with no_grad():
        _write(a, compute(), op)
    return a


def _shape_with(a: Tensor, b: Tensor) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return ()


def _write(a: Tensor, made: Tensor, op: str) -> None:
    """Writes a result into `a` if PyTorch's in-place operators would: floats into floats, integers
    into integers."""
    if made.shape != a.shape:
        raise ShapeError(f"{op}: got a result of shape {made.shape} for a tensor of {a.shape}")
    have, want = made.dtype, a.dtype
    is_of_kind = have.is_float == want.is_float and bool_ not in (have, want)
    if have != want and not is_of_kind:
        raise DTypeError(f"{op}: got a result of dtype {have.name} for a tensor of {want.name}")
    # The cast overflows as all arithmetic does.
    (ops.copy if have == want else ops.op("cast", dtype=want.name)).into([made], [a])


def join(a: Tensor, *values: Any) -> bool:
    """Puts a tensor that was created in the step on the tape if one of the values that are written
    into it has a gradient. Returns whether the write must be noted."""
    if mode.tape and any(map(is_traced, values)):
        _enter(a)
    return is_recorded(a)


def is_recorded(a: Tensor) -> bool:
    """Whether a write into `a` must be noted on the tape."""
    return mode.tape and is_intermediate(a) and not _is_data(a)


def _is_data(a: Tensor) -> bool:
    """Whether an earlier step made a tensor of data alone: it takes values, and no gradients, as
    tensors do that were created before the step."""
    return not (a.is_new or has_history(a))


def _enter(a: Tensor) -> None:
    """Puts the tensor that `a` shows on the tape, unless it is there, as one without a gradient."""
    while a._base is not None:
        a = a._base[0]
    if a._creator is None and a.dtype.is_float and is_followed(a):
        remake(a, Constant())
        a.requires_grad = True
        _renew_views(a)


def is_intermediate(a: Tensor) -> bool:
    """Whether an operation made a tensor, other than as a view of a leaf."""
    if a._creator is None:
        return False
    node, _ = made_by(a)
    while node.is_view and node.edges:
        source = node.edges[0]
        if isinstance(source, Tensor):
            return not source.shares_block(a)
        node, _ = output_of(source)
    return True


def _replace(a: Tensor, creator: Any, part: Part | None = None) -> None:
    """Notes that `a`, or a part of it, was written with a value that `creator` made, None if no
    operation did. The tensor that `a` is a view of is patched, and all of its views, including
    `a`, are derived from it again, so that its gradient covers what was made from any of them."""
    creator = Constant() if creator is None else creator
    while a._base is not None:
        base, view = a._base
        if part is not None and is_expanded(a):  # what is written stands in other places, too
            view = Through(view, part)
        elif part is not None:
            creator = patched(a, part, creator)
        a, part = base, view
    if part is not None:
        creator = patched(a, part, creator)
    remake(a, creator)
    _renew_views(a)


def _renew_views(a: Tensor) -> None:
    """Derives the live views of `a`, and theirs, from its new value."""
    open_ = [a]
    while open_:
        base = open_.pop()
        for view in live_views(base):
            node = view._base[1]._again()
            node.shape, node.edges = base.shape, (edge(base),)
            view.requires_grad = True
            remake(view, node)
            open_.append(view)


def setitem(a: Tensor, key: Any, value: Any) -> None:
    """`a[key] = value` by NumPy's rules. A mask of the first axes stays unread where the value is
    the same for all of its places: a number, or one that broadcasts along them.

    Raises:
        GraphError: a value for each place where a mask holds that is only recorded.
        IndexError, ShapeError, DTypeError: a key or a value that does not fit.
    """
    put(a, key, value, "setitem")


def put(a: Tensor, key: Any, value: Any, op: str) -> None:
    """`setitem` for an operation of this name."""
    if type(key) is tuple and key and _is_mask(key[0], a):
        rest = (*(slice(None) for _ in key[0].shape), *key[1:])
        if len(key) == 1 or not parse(rest, a.shape).indices:
            a, key = getitem(a, rest), key[0]
    if _is_mask(key, a) and _put_masked(a, key, value, op):
        return
    part, view = a.view_index(key), Index(key)
    if part is None:
        found = parse(key, a.shape)
        if found.indices:
            _set_places(a, found, value)
            return
        view = Select(found.ranges, found.shape)
        part = view.forward(a)
    if not join(a, value):
        _assign(part, value, op)
        return
    if _is_same(part, value, a):
        return
    value = _fitting(value, part.shape, a, op)
    write_tensor(part, value)
    _replace(a, _passed(value), view)


def _is_mask(key: Any, a: Tensor) -> bool:
    """Whether a key is a tensor of bools for the elements of `a`, or for parts of it."""
    is_bool = isinstance(key, Tensor) and key.dtype == bool_
    return is_bool and key.shape == a.shape[: key.rank]


def _put_masked(a: Tensor, key: Tensor, value: Any, op: str) -> bool:
    """Writes a value that is the same for all places of a mask; whether it is."""
    rest, key = a.shape[key.rank :], key.detach().to(a.device)
    mask = key.reshape((*key.shape, *(1 for _ in rest)))
    if _is_one(value):
        one = value if isinstance(value, Tensor) else _fitting(value, (), a)
        METHODS["masked_fill_"](a, mask, one)
        return True
    value = value if isinstance(value, Tensor) else as_array(value, op)
    shape = tuple(value.shape)
    if any(n != 1 for n in shape[: max(0, len(shape) - len(rest))]):
        return False
    given = convert(_fitting(value, rest, a, op), a.dtype)
    join(a, given)
    assigned(a, op, lambda: where(mask, given, a))
    return True


def _is_one(value: Any) -> bool:
    """Whether something is a number, or a tensor of one."""
    return value.numel == 1 if isinstance(value, Tensor) else as_number(value) is not None


def _is_same(part: Tensor, value: Any, a: Tensor) -> bool:
    """Whether `value` is a view of `a` that is just this part, as after `a[key] += value`: it was
    written, and noted, through the view."""
    if not isinstance(value, Tensor) or value._base is None or value._base[0] is not a:
        return False
    where, its = (part.offset, part.shape, part.strides), (value.offset, value.shape, value.strides)
    return where == its and value.dtype == part.dtype and value.shares_block(part)


def _passed(value: Tensor | None) -> Identity | None:
    """A node that passes a gradient on to a value that was copied; None if it takes none."""
    if value is None or not value.requires_grad:
        return None
    node = Identity()
    node.edges = (edge(value),)
    return node


def _assign(part: Tensor, value: Any, op: str) -> None:
    """Writes a number, array or tensor into every element of a view."""
    number = as_number(value)
    if number is not None:
        part.set_value(number)
        return
    with no_grad():
        write_tensor(part, _fitting(value, part.shape, part, op))


def _fitting(value: Any, shape: tuple[int, ...], like: Tensor, op: str = "setitem") -> Tensor:
    """`value` as a recorded tensor of a shape, which a part of `like` must be able to hold."""
    if not isinstance(value, Tensor):
        array = as_array(value, op)
        value = Tensor(array.shape, like.device, like.dtype, requires_grad=False)
        write_array(value, array, op)
    if value.shape != shape:
        drop = max(0, value.rank - len(shape))
        left, kept = value.shape[:drop], value.shape[drop:]
        if any(n != 1 for n in left) or not broadcasts(kept, shape):
            raise ShapeError(f"{op}: got shape {value.shape} for a part of {shape}")
        value = Expand(shape)(value.reshape(kept))[0]
    return convert(value, like.dtype) if mode.tape else value


def _set_places(a: Tensor, found: Selection, value: Any) -> None:
    """Writes at arrays or tensors of indices; the last value stays where places repeat."""
    start, count, is_recorded = found.axis, len(found.indices), join(a, value)
    part = Select(found.ranges, found.shape)(a)[0]
    part = _ordered(part, found.order or _first(part.rank, start, count))
    extents, rest = part.shape[:count], part.shape[count:]
    places = positions(found.indices, extents, a.device)
    given = _fitting(value, (*rest[:start], *places.shape, *rest[start:]), a)
    given = _ordered(given, _first(given.rank, start, places.rank))
    updates = plain_reshape(convert(given, a.dtype), (places.numel, *rest))
    places = ops.reshape(places, (places.numel,))
    shape = (math.prod(extents), *rest)
    rows = None if is_recorded else part.view_reshape(shape)
    if rows is not None and rows.numel and places.numel:
        replace_rows(rows, places, updates)
        return

    def compute() -> Tensor:
        made = combined(plain_reshape(part, shape), places, updates, "none")
        return plain_reshape(made, part.shape)

    assigned(part, "setitem", compute)


def _first(rank: int, start: int, count: int) -> tuple[int, ...]:
    """The axes in the order in which so many from `start` on are the first."""
    axes, end = range(rank), start + count
    return (*axes[start:end], *axes[:start], *axes[end:])


def _ordered(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """A view with the axes in an order."""
    return x if order == tuple(range(x.rank)) else Transpose(order)(x)[0]


def overwritten(a: Tensor, written: Tensor, source: Any = None, start: int = 0) -> None:
    """Notes that `a`, or those of its elements from `start` on that `written` shows, got the values
    of `source`, or values that no operation made."""
    if not join(a, source) or written.numel == 0:
        return
    if isinstance(source, Tensor):
        creator = _passed(convert(source, a.dtype).reshape(written.shape))
    else:
        creator = None
    _replace(a, creator, None if written is a else Run(int(start), written.numel))


def shared(a: Tensor, made: Tensor) -> None:
    """Notes that `made` is another object for the same recorded tensor, so that a write through
    either of them is noted for both."""
    made._base, made._views = None, ()
    node = Identity()
    node.shape, node.edges = a.shape, (edge(a),)
    made._creator = node
    note_view(a, made, node)
    if made._stores_grad:
        retain(made)
    if mode.nodes is not None:
        mode.nodes.note(node, (made,))


def parted(a: Tensor, creator: Any = None) -> None:
    """Notes that `a` is about to get other memory, with a value that `creator` made. Views of its
    old memory stay on the tape, as those of a tensor that only they hold."""
    if a._creator is None:
        return
    left = a.alias()
    left.requires_grad, left._creator = a.requires_grad, a._creator
    if mode.nodes is not None:
        mode.nodes.note(made_by(left)[0], (left,))
    if a._base is not None:
        note_view(a._base[0], left, a._base[1])
    for view in live_views(a):
        note_view(left, view, view._base[1])
    a._base, a._views = None, ()
    remake(a, Constant() if creator is None else creator)
