"""A traced program: the operations and views of a call, with extents for what depends on sizes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from ..record import Event, Operations, place
from ..tensor import Tensor
from .extents import Extent, Number, Reciprocal, Sizes
from .fitting import Known, likely, merged, same, solve_scalar
from .regions import region


class Meta(NamedTuple):
    """What is known of a value."""

    shape: tuple[Number, ...]
    dtype: str


class Step(NamedTuple):
    """An operation or a view, with its values by number."""

    name: str
    attrs: dict[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


#: A tensor that was there before, a parameter or a state; a constant from NumPy; a number that
#: depends on sizes.
Leaf = Tensor | np.ndarray | Extent | Reciprocal


class Program(NamedTuple):
    """Steps, and the values that they begin and end with."""

    steps: list[Step]
    arguments: list[int]
    results: list[int]
    leaves: dict[int, Leaf]
    metas: list[Meta]


class Numbered:
    """Numbers of the values of one trace, in the order in which they are met."""

    def __init__(self, given: Operations) -> None:
        self.by_place: dict[Any, int] = {}
        self.tensors: list[Tensor] = []
        self.leaves: dict[int, Tensor | np.ndarray] = {}
        self.constants = given.constants
        #: By block, the value that is the whole of it, and a tensor of its place.
        self.wholes: dict[int, tuple[int, Tensor]] = {}
        #: By place, the last view of it.
        self._views: dict[Any, Event] = {}
        self.steps: list[Step] = []
        self.arguments = [self._new(one) for one in given.arguments]
        for event in given.events:
            self._add(event)
        self.results = [self._of(one) for one in given.results]

    def _new(self, t: Tensor) -> int:
        self.tensors.append(t)
        self.by_place[place(t)] = len(self.tensors) - 1
        return len(self.tensors) - 1

    def _of(self, t: Tensor) -> int:
        found = self.by_place.get(place(t))
        if found is None and t.block_id in self.wholes:
            return self._viewed(t)
        if found is None:
            found = self._new(t)
            self.leaves[found] = self.constants.get(place(t), t)
            if place(t) in self.constants:  # which the call has made, and may write into
                self.wholes[t.block_id] = found, t
        return found

    def _viewed(self, t: Tensor) -> int:
        """A view from before its tensor was written into, which shows what that has become."""
        event = self._views.pop(place(t), None)
        if event is None:
            raise ValueError("export: got a view of a tensor from before it was written into")
        self._add(event)
        return self.by_place[place(t)]

    def _add(self, event: Event) -> None:
        inputs = tuple(self._of(one) for one in event.inputs)
        if event.writes:
            return self._write(event, inputs)
        is_all = [place(one) for one in event.outputs] == [place(one) for one in event.inputs]
        if is_all and not _is_else_of_other_sizes(event):
            return None  # a view of everything
        if event.name == "copy":  # whether there is one may depend on an extent being 1
            self._same(event.outputs[0], inputs[0])
            return None
        attrs = event.attrs
        if event.name == "view_index":
            attrs = {"of": _ranges(attrs["of"], event.inputs[0].shape)}
        outputs = tuple(self._new(one) for one in event.outputs)
        if event.name.startswith("view_"):
            if not is_all:
                self._views[place(event.outputs[0])] = event
        else:
            made = zip(event.outputs, outputs, strict=True)
            self.wholes.update((t.block_id, (i, t)) for t, i in made)
        self.steps.append(Step(event.name, attrs, inputs, outputs))
        return None

    def _same(self, t: Tensor, value: int) -> None:
        """Other memory has the elements of a value."""
        self.by_place[place(t)] = value
        self.wholes[t.block_id] = value, t

    def _write(self, event: Event, inputs: tuple[int, ...]) -> None:
        """A write into a part makes a new value of the whole."""
        if len(event.outputs) > 1:
            raise NotImplementedError(f"export: {event.name}: writes into several tensors")
        (part,) = event.outputs
        known = self.wholes.get(part.block_id)
        if known is None and (event.writes != "new" or part.offset or not part.is_contiguous()):
            raise ValueError(f"export: {event.name}: writes into a tensor that was there before")
        for key in [key for key in self.by_place if key[0] == part.block_id]:
            del self.by_place[key]
        before, whole = (0, part) if known is None else known
        if place(part) == place(whole):
            made = self._new(whole)
            self.steps.append(Step(event.name, event.attrs, inputs, (made,)))
        else:
            made = self._write_part(event, inputs, before, whole)
        self.wholes[part.block_id] = made, whole

    def _write_part(self, event: Event, inputs: tuple[int, ...], before: int, whole: Tensor) -> int:
        """What is written, and the whole with it: two values, as nothing is written in place."""
        (part,) = event.outputs
        if event.name == "copy":
            (written,) = inputs
            self.by_place[place(part)] = written
        else:
            written = self._new(part)
            self.steps.append(Step(event.name, event.attrs, inputs, (written,)))
        made = self._new(whole)
        self.steps.append(Step("write", region(whole, part), (before, written), (made,)))
        return made


def _keys(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_else_of_other_sizes(event: Event) -> bool:
    """Whether it is a slice that may be of everything for this size alone, another order of axes
    that are alike for it, or a new size that is the old one."""
    if event.name == "resample":
        return True
    if event.name == "view_permute":
        return tuple(event.attrs["of"]) != tuple(range(event.inputs[0].rank))
    if event.name != "view_index":
        return False
    slices = [one for one in _keys(event.attrs["of"]) if isinstance(one, slice)]
    return any(one.start not in (None, 0) or one.stop is not None for one in slices)


def _ranges(key: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """A key of ints and slices as starts, counts and steps, the bounds of the slices as they were
    given, and the axes that are left out."""
    keys = _keys(key)
    found, dropped = [], []
    bounds: list[tuple[int | None, ...] | None] = []
    for axis, extent in enumerate(shape):
        one = keys[axis] if axis < len(keys) else slice(None)
        if isinstance(one, slice):
            start, stop, step = one.indices(extent)
            found.append((start, len(range(start, stop, step)), step))
            bounds.append(tuple(None if n is None else index(n) for n in (one.start, one.stop)))
        else:
            found.append((index(one), 1, 1))  # from the end, if negative, for all sizes
            bounds.append(None)
            dropped.append(axis)
    return {"ranges": tuple(found), "bounds": tuple(bounds), "dropped": tuple(dropped)}


def program(traces: Sequence[Operations], sizes: Sequence[Sizes]) -> Program:
    """The program of which these are traces for different sizes.

    Raises:
        ValueError: they are not traces of one program.
    """
    found = [Numbered(one) for one in traces]
    first = found[0]
    for other, at in zip(found[1:], sizes[1:], strict=True):
        _same_steps(first, other, sizes[0], at)
    known = Known(sizes)
    leaves = {i: _merged_leaf([one.leaves[i] for one in found], known) for i in first.leaves}
    steps, metas = _merged(found, known)
    return Program(steps, first.arguments, first.results, leaves, metas)


def _merged(found: Sequence[Numbered], known: Known) -> tuple[list[Step], list[Meta]]:
    """The steps and values of traces in their order: extents follow from those before."""
    steps: list[Step] = []
    metas: list[Meta] = []

    def note(end: int) -> None:
        for i in range(len(metas), end):
            shape = merged([one.tensors[i].shape for one in found], known, "a shape")
            metas.append(Meta(shape, found[0].tensors[i].dtype.name))

    for i, step in enumerate(found[0].steps):
        note(min(step.outputs))
        every = [one.steps[i].attrs for one in found]
        known.near = likely(step.name, every, [metas[value].shape for value in step.inputs])
        attrs = merged(every, known, step.name)
        note(max(step.outputs) + 1)
        known.near = []
        steps.append(step._replace(attrs=attrs))
    note(len(found[0].tensors))
    return steps, metas


def _same_steps(a: Numbered, b: Numbered, sizes: Sizes, others: Sizes) -> None:
    for one, other in zip(a.steps, b.steps, strict=False):
        if one[:1] + one[2:] != other[:1] + other[2:]:
            what = f"{one.name} for {sizes} is {other.name} or has other operands for {others}"
            raise ValueError(f"export: {what}: the program is not the same for all sizes")
    if len(a.steps) != len(b.steps) or a.results != b.results or list(a.leaves) != list(b.leaves):
        raise ValueError(f"export: the program for {sizes} is not that for {others}")


def is_same(a: Tensor | np.ndarray, b: Tensor | np.ndarray) -> bool:
    """Whether two constants are one tensor, or have equal elements."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and place(a) == place(b):
        return True
    return a.shape == b.shape and same(np.asarray(a), np.asarray(b))


def _merged_leaf(every: Sequence[Tensor | np.ndarray], known: Known) -> Leaf:
    """A constant that is the same for all sizes, or a number that follows from them."""
    first = every[0]
    other = next((i for i, one in enumerate(every) if not is_same(first, one)), None)
    if other is None:
        return first
    arrays, found = [np.asarray(one) for one in every], None
    if arrays[0].size == 1 and all(a.shape == first.shape and a.dtype.kind != "b" for a in arrays):
        numbers = [float(one.item()) for one in arrays]
        found = solve_scalar(numbers, known, arrays[0].dtype.type)
    if found is None:
        raise ValueError(
            f"export: a constant of shape {first.shape} for {known.sizes[0]} is another one for "
            f"{known.sizes[other]}: it was made outside of the program's operations from the size "
            "of an axis"
        )
    return found
