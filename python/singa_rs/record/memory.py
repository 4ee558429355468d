"""How a snapshot sees tensors, and how it compares what it sees."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, NamedTuple

from ..autograd.inplace import is_intermediate
from ..tensor import Placeholder, Tensor
from ..tensor.keys import key_of, show


class Flags(NamedTuple):
    """The properties of a tensor, besides its value, that decide how it is treated."""

    requires_grad: bool
    #: True, False, or what `requires_grad_` leaves (autograd/leaves.py).
    stores_grad: int
    #: Whether writes into it are part of the tape.
    is_intermediate: bool
    kind: type


class Spot(NamedTuple):
    """The memory of a tensor's elements, and its flags."""

    block: int
    offset: int | tuple[int, int]
    strides: tuple[int, ...]
    flags: Flags


class Memory(NamedTuple):
    """A tensor in an attribute."""

    spot: Spot
    meta: tuple[Any, ...]
    #: Whether it was made in a recording, and has no value yet.
    is_recorded: bool


def memory(tensor: Tensor) -> Hashable:
    """A tensor's representation in a key."""
    if isinstance(tensor, Placeholder):
        return key_of(tensor)
    made = is_intermediate(tensor)
    flags = Flags(tensor.requires_grad, tensor._stores_grad, made, type(tensor))
    spot = Spot(*_place(tensor), tensor.strides, flags)
    return Memory(spot, (tensor.shape, tensor.dtype, flags), tensor.is_recorded)


def is_made(value: Any) -> bool:
    """Whether what an attribute holds is a tensor that a recording makes."""
    return type(value) is Memory and value.is_recorded


def is_steady(tensor: Tensor) -> bool:
    """Whether a tensor has a value, and keeps its memory from run to run."""
    is_empty = isinstance(tensor, Placeholder) or tensor.is_recorded
    return not (is_empty or tensor.shows_runs)


def _place(tensor: Tensor) -> tuple[int, int | tuple[int, int]]:
    """A tensor's block and where it is in that; of one that is divided among ranks, this rank's
    share of its unit, which is what graphs use."""
    if tensor._divided is None:
        return tensor.block_id, tensor.offset
    unit, index = tensor._divided
    return unit.share.block_id, (index, tensor.offset)


def pattern(value: Any, captured: Collection[int]) -> Any:
    """What another snapshot's value must match: a tensor that the graph uses must be in the same
    memory, another one only of the same shape, dtype and flags."""
    if type(value) is Memory:
        return value.spot if value.spot.block in captured else value.meta
    return value


def matches(want: Any, value: Any) -> bool:
    """Whether a value matches a pattern."""
    if type(value) is Memory:
        return want == (value.spot if type(want) is Spot else value.meta)
    return want == value


def text(value: Any) -> str:
    """A value, or a pattern, as text."""
    if type(value) is Memory:
        return "a tensor of shape " + str(value.meta[0])
    if type(value) is Spot:
        return "another tensor"
    return show(value)


def is_flagged(old: Any, new: Any) -> bool:
    """Whether two values are one tensor whose `requires_grad` alone differs."""
    if type(old) is not Memory or type(new) is not Memory or old.is_recorded:
        return False
    flags = old.spot.flags._replace(requires_grad=new.spot.flags.requires_grad)
    return new.spot == old.spot._replace(flags=flags)


def changed(old: Any, new: Any) -> str:
    """How a value, or a pattern, has become another one, as text."""
    before, after = _flags(old), _flags(new)
    if before is None or after is None or before == after:
        return f"changed from {text(old)} to {text(new)}"
    both = zip(Flags._fields, before, after, strict=True)
    return "changed " + ", ".join(f"{name} from {a} to {b}" for name, a, b in both if a != b)


def _flags(value: Any) -> Flags | None:
    if type(value) is Memory:
        value = value.spot
    last = value[-1] if isinstance(value, tuple) and value else None
    return last if type(last) is Flags else None
