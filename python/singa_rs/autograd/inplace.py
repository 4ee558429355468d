"""Writing into tensors by operators and by index.

A leaf (a parameter) and its views are written without a trace. A tensor that an operation made is
written and the tape notes it, so that gradients are those of the new value, also through views
that were taken before; what an operation had kept of the old value is found to be stale when
backward needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import DTypeError, GraphError, ShapeError
from .._dtypes import to_storage
from .._indexing import parse
from .._numbers import as_array, as_number
from .._writing import write_array, write_tensor
from ..tensor import Tensor, as_tensor
from . import binary, ops
from .casting import convert
from .mode import mode, no_grad
from .tape import Port, Rule, edge, note
from .views import Expand, Identity, Select, View


def operator(cls: type[binary.Binary]) -> Callable[[Tensor, Any], Tensor]:
    """The in-place form of an operator: `a f= b`."""
    f, op = cls.f, ops.op("binary", f=cls.f)

    def assign(a: Tensor, b: Any) -> Tensor:
        if recorded(a):
            made = binary.compute(cls, a, b)
            _write(a, made, f)
            _replace(a, made._creator)
            return a
        if isinstance(b, Tensor) and b.dtype == a.dtype and a.shape == _shape_with(a, b):
            op.into([a, b], [a])
            return a
        number = as_number(b)
        if number is not None and a.dtype.is_float:
            ops.scalar_op(f, number).into([a], [a])
            return a
        with no_grad():
            _write(a, binary.compute(cls, a, b), f)
        return a

    assign.__name__ = assign.__qualname__ = f"i{f}"
    assign.__doc__ = f"`{f}` into the tensor's own memory."
    return assign


def _shape_with(a: Tensor, b: Tensor) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return ()


def _write(a: Tensor, made: Tensor, op: str) -> None:
    """Writes a result into `a` if NumPy's in-place operators would."""
    if made.shape != a.shape:
        raise ShapeError(f"{op}: got a result of shape {made.shape} for a tensor of {a.shape}")
    have, want = made.dtype, a.dtype
    if have != want and not (have.is_float and want.is_float):
        raise DTypeError(f"{op}: got a result of dtype {have.name} for a tensor of {want.name}")
    # Overflows as all arithmetic does.
    (ops.copy if have == want else ops.op("cast", dtype=want.name)).into([made], [a])


def recorded(a: Tensor) -> bool:
    """Whether a write into `a` has to be noted."""
    return bool(mode.tape) and is_intermediate(a)


def is_intermediate(a: Tensor) -> bool:
    """Whether an operation made a tensor, and it is no view of one that none made."""
    node = a._creator
    if node is None:
        return False
    while isinstance(node, View) and node.edges:
        source = node.edges[0]
        if isinstance(source, Tensor):
            return not source.shares_block(a)
        node = source
    return True


class _Patch(Rule):
    """A tensor of which a part got a new value through a view."""

    def __init__(self, view: View) -> None:
        self.view = view

    def gradients(
        self, dys: tuple[Tensor, ...], wanted: Any
    ) -> tuple[Tensor | None, Tensor | None]:
        """Of the rest of the old value, and of the part."""
        (dy,) = dys
        part = self.view.forward(dy) if wanted[1] else None
        rest = ops.copy(dy) if wanted[0] else None
        if rest is not None:
            hole = self.view.forward(rest)
            ops.op("fill", value=0, shape=hole.shape, dtype=hole.dtype.name).into([], [hole])
        return rest, part


def _replace(a: Tensor, creator: Any) -> None:
    """Notes that `a` was written: `creator` made its value, None where nothing did."""
    a._creator = creator
    if creator is not None:
        note(creator.node if type(creator) is Port else creator, (a,))
    a.stores_grad = a._stores_grad
    _renew_views(a)
    while a._base is not None:
        base, view = a._base
        node = _Patch(view)
        node.edges = (edge(base), edge(a))
        base._creator = node
        note(node, (base,))
        base.stores_grad = base._stores_grad
        _renew_views(base, a)
        a = base


def _renew_views(a: Tensor, but: Tensor | None = None) -> None:
    """Derives the live views of `a` from its new value."""
    for reference in a._views:
        view = reference()
        if view is not None and view is not but:
            node = view._base[1].again()
            node.shape, node.edges = a.shape, (edge(a),)
            view._creator = node
            note(node, (view,))
            _renew_views(view)


def setitem(a: Tensor, key: Any, value: Any) -> None:
    """`a[key] = value` by NumPy's rules.

    Raises:
        GraphError: an array as key while the write has to be recorded.
        IndexError, ShapeError, DTypeError: what does not fit.
    """
    found = parse(key, a.shape)
    if found.places is not None:
        _set_places(a, key, value)
        return
    if not recorded(a):
        part = a.view_slice(found.ranges).view_reshape(found.shape)
        _assign(part, value)
        return
    part = Select(found.ranges, found.shape)(a)[0]
    value = _fitting(value, part)
    write_tensor(part, value)
    _replace(part, value._creator)


def _assign(part: Tensor, value: Any) -> None:
    """Writes a number, array or tensor into every element of a view."""
    number = as_number(value)
    if number is not None:
        part.set_value(number)
        return
    with no_grad():
        write_tensor(part, _fitting(value, part))


def _fitting(value: Any, part: Tensor) -> Tensor:
    """`value` as a recorded tensor of the shape of `part`, which must be able to hold it."""
    if not isinstance(value, Tensor):
        array = as_array(value, "setitem")
        drop = max(0, array.ndim - part.rank)
        if any(n != 1 for n in array.shape[:drop]):
            raise ShapeError(f"setitem: got shape {array.shape} for a part of {part.shape}")
        array = np.broadcast_to(array.reshape(array.shape[drop:]), part.shape)
        made = Tensor(part.shape, part.device, part.dtype)
        write_array(made, array, "setitem")
        return made
    if value.shape != part.shape:
        drop = max(0, value.rank - part.rank)
        if any(n != 1 for n in value.shape[:drop]):
            raise ShapeError(f"setitem: got shape {value.shape} for a part of {part.shape}")
        value = value.reshape(value.shape[drop:])
        value = Expand(part.shape)(value)[0]
        if value.shape != part.shape:
            raise ShapeError(f"setitem: got shape {value.shape} for a part of {part.shape}")
    if value.dtype != part.dtype and value.dtype.is_float and part.dtype.is_float:
        value = convert(value, part.dtype)
    return Identity()(value)[0] if mode.tape else value


def _set_places(a: Tensor, key: Any, value: Any) -> None:
    if recorded(a):
        raise GraphError(
            "setitem: an array as index of a recorded tensor; use autograd.where, or no_grad"
        )
    keys = key if isinstance(key, tuple) else (key,)
    keys = tuple(k.to_numpy() if isinstance(k, Tensor) else k for k in keys)
    array = a.to_numpy()
    whole = value.to_numpy() if isinstance(value, Tensor) else as_array(value, "setitem")
    array[keys] = to_storage("setitem", whole, a.dtype)
    write_array(a, array, "setitem")


def overwritten(a: Tensor, written: Tensor, source: Any = None) -> None:
    """Notes that `a`, or a range of it, got a new value by `copy_from` and the like."""
    if not recorded(a):
        return
    if written is not a:
        raise GraphError("copy_from: got an offset into a recorded tensor; assign to a slice")
    if not isinstance(source, Tensor):
        _replace(a, None)
        return
    made = Identity()(convert(as_tensor(source), a.dtype).reshape(a.shape))[0]
    _replace(a, made._creator)


IN_PLACE = {
    "__iadd__": operator(binary.Add),
    "__isub__": operator(binary.Sub),
    "__imul__": operator(binary.Mul),
    "__itruediv__": operator(binary.Div),
    "__ifloordiv__": operator(binary.FloorDivide),
    "__imod__": operator(binary.Remainder),
    "__ipow__": operator(binary.Pow),
}
