"""Whether a program that was traced for some sizes of the dynamic axes is that for others, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import InternalError
from ..record import Operations
from ..tensor import Tensor
from .extents import Extent, Number, Quotient, Reciprocal, Sizes
from .fitting import FLOATS, same
from .program import Leaf, Numbered, Program, is_same

#: Traces a call for these sizes; raises what the model does for sizes that it does not take.
Trace = Callable[[Sizes], Operations]

#: Sizes that are looked at because clamping shows at small ones.
_SMALL = 64
#: The most sizes below and above those of the inputs that are traced because of slices.
_MOST = 3


def check_other_sizes(made: Program, base: Sizes, trace: Trace) -> None:
    """Refuses a program that does something else, takes other parts of its tensors, or has results
    of other shapes, for sizes far from those that it was traced for, unless the model raises for
    them.

    Raises:
        ValueError: it does.
    """
    others = [
        {**base, label: n}
        for label, size in base.items()
        for n in (1, size * max(4, -(-_SMALL // size)), *_of_other_rests(made, size))
    ]
    for one in _slices(made):
        for sizes in one.off(base):
            if _traced(trace, sizes) is not None:
                raise ValueError(
                    f"export: {one} takes other elements for {sizes} than follows from {base}; "
                    "want a slice that the axis does not cut short, or a model that raises an "
                    "error for such sizes"
                )
        others += (sizes for sizes in one.empty(base) if sizes not in others)
    for sizes in others:
        found = _traced(trace, sizes)
        if found is not None:
            _check_shapes(made, found, sizes)
            _check_numbers(made, found, sizes)


def _of_other_rests(made: Program, size: int) -> list[int]:
    """Larger sizes that leave other rests where sizes are divided."""
    numbers = (n for meta in made.metas for n in meta.shape if isinstance(n, Extent))
    by = max((one.by for n in numbers for one in n.parts() if isinstance(one, Quotient)), default=0)
    return [size + 3, size + by // 2 + 1, size + by - 1] if by else []


def _traced(trace: Trace, sizes: Sizes) -> Operations | None:
    """None for sizes that the model does not take: it raises an error."""
    try:
        return trace(sizes)
    except (InternalError, MemoryError):
        raise
    except Exception:
        return None


def _check_shapes(made: Program, found: Operations, sizes: Sizes) -> None:
    got = [one.shape for one in found.results]
    shapes = (made.metas[i].shape for i in made.results)
    want = [tuple(max(_at(n, sizes), 0) for n in shape) for shape in shapes]
    if got != want:
        raise ValueError(
            f"export: got results of shapes {got} for {sizes}, want {want}, which follow from "
            "other sizes: the program is not the same for all sizes"
        )


def _slices(made: Program) -> Iterator[_Slice]:
    """The slices that depend on sizes."""
    for step in made.steps:
        if step.name == "view_index":
            shape, of = made.metas[step.inputs[0]].shape, step.attrs["of"]
            known = zip(shape, of["bounds"], of["ranges"], strict=True)
            slices = (_Slice(*one) for one in known if one[1] is not None)
            yield from (one for one in slices if one.labels)


class _Slice:
    """A slice along an axis, as the program has it, and as it was traced."""

    def __init__(
        self,
        extent: Number,
        bounds: tuple[Number | None, Number | None],
        taken: tuple[Number, Number, Number],
    ) -> None:
        self._extent, self._bounds, self._taken = extent, bounds, taken
        self._numbers = [one for one in (extent, *bounds, *taken) if one is not None]
        known = (one.parts() for one in self._numbers if isinstance(one, Extent))
        #: The dynamic axes that it depends on.
        self.labels = sorted({name for of in known for name in of if isinstance(name, str)})

    def __str__(self) -> str:
        start, stop = ("" if one is None else one for one in self._bounds)
        step = "" if self._taken[2] == 1 else f":{self._taken[2]}"
        return f"the slice [{start}:{stop}{step}] of an axis of size {self._extent}"

    def off(self, base: Sizes) -> Iterator[Sizes]:
        """Sizes for which it is not what was traced, those nearest to `base` first."""
        return self._where(base, lambda sizes: not self._fits(sizes))

    def empty(self, base: Sizes) -> Iterator[Sizes]:
        """Sizes for which it is empty, and less than that follows from those traced."""
        return self._where(base, lambda sizes: _at(self._taken[1], sizes) < 0)

    def _where(self, base: Sizes, is_wanted: Callable[[Sizes], bool]) -> Iterator[Sizes]:
        for label in self.labels:
            size = base[label]
            others = sorted(self._candidates(size), key=lambda n: abs(n - size))
            found = [n for n in others if is_wanted({**base, label: n})]
            for side in ([n for n in found if n <= size], [n for n in found if n > size]):
                for n in dict.fromkeys((*side[:_MOST], *side[-1:])):
                    yield {**base, label: n}

    def _candidates(self, size: int) -> set[int]:
        """Small sizes, those around constants, and multiples and parts of a size."""
        constants = {abs(one) for one in self._numbers if isinstance(one, int)}
        near = {n + more for n in constants for more in (-1, 0, 1)}
        powers = {size << i for i in range(7)} | {size >> i for i in range(1, 7)}
        far = {2 * n + 1 for n in constants}
        return {n for n in (*range(1, _SMALL), *near, *powers, *far) if n > 0}

    def _fits(self, sizes: Sizes) -> bool:
        """Whether the traced part is the slice's for these sizes; none may be one of any start."""
        start, count, step = (_at(one, sizes) for one in self._taken)
        begin, end = (None if one is None else _at(one, sizes) for one in self._bounds)
        extent = max(_at(self._extent, sizes), 0)
        if not step or (step < 0 and begin is not None and begin < -extent):
            return False  # ONNX begins with the first element, Python with none
        taken = range(*slice(begin, end, step).indices(extent))
        return count <= 0 if not taken else (start, count) == (taken.start, len(taken))


def _check_numbers(made: Program, found: Operations, sizes: Sizes) -> None:
    """Compares the numbers of a program with those of a trace, if that has the same operations: it
    may have shorter ways for extents of 1.

    Raises:
        ValueError: numbers differ.
    """
    try:
        numbered = Numbered(found)
    except (NotImplementedError, ValueError):  # where a part is the whole, for extents of 1
        return
    if [one[:1] + one[2:] for one in made.steps] != [one[:1] + one[2:] for one in numbered.steps]:
        return
    if list(made.leaves) != list(numbered.leaves):
        return
    for meta, t in zip(made.metas, numbered.tensors, strict=True):
        if not _agree(meta.shape, t.shape, sizes):
            raise ValueError(
                f"export: got shape {t.shape} for {sizes}, want {meta.shape}, which follows from "
                "other sizes: the program is not the same for all sizes"
            )
    for want, got in zip(made.leaves.values(), numbered.leaves.values(), strict=True):
        if not _is_leaf(want, got, sizes):
            raise ValueError(
                f"export: a constant of shape {got.shape} is another one for {sizes}: it was made "
                "outside of the program's operations from the size of an axis"
            )
    for want, got in zip(made.steps, numbered.steps, strict=True):
        if not _agree(want.attrs, got.attrs, sizes):
            raise ValueError(
                f"export: {want.name}: got {got.attrs} for {sizes}, want {want.attrs}, which "
                "follow from other sizes: the program is not the same for all sizes"
            )


def _is_leaf(want: Leaf, got: Tensor | np.ndarray, sizes: Sizes) -> bool:
    if isinstance(want, (Extent, Reciprocal)):
        known = np.asarray(got)
        return known.size == 1 and bool(np.float64(want.at(sizes)).astype(known.dtype) == known)
    return is_same(want, got)


def _agree(want: Any, got: Any, sizes: Sizes, key: str = "") -> bool:
    """Whether an attribute is what follows from the sizes. What is empty may have any place, and
    be of less than no elements."""
    if isinstance(want, dict):
        is_alike = list(want) == list(got)
        return is_alike and all(
            _agree(one, got[k], sizes, k) for k, one in want.items() if k != "bounds"
        )
    if key == "steps":
        return all(
            own if step is None else step == n for step, (n, own) in zip(want, got, strict=True)
        )
    if key == "ranges" and want is not None and got is not None:
        return all(_same_range(*pair, sizes) for pair in zip(want, got, strict=True))
    if isinstance(want, (tuple, list)):
        pairs = list(zip(want, got, strict=False))
        return len(want) == len(got) and all(_agree(a, b, sizes) for a, b in pairs)
    if isinstance(want, Reciprocal):
        return bool(want.at(sizes) == got)
    if isinstance(want, Extent):
        value = want.at(sizes)
        return value == got or (key not in FLOATS and value < 0 and got == 0)
    return same(want, got)


def _same_range(want: tuple[Number, ...], got: tuple[int, ...], sizes: Sizes) -> bool:
    """Whether a range is what follows from the sizes: an empty one has no place, one of a single
    place no step."""
    start, count, step = (_at(one, sizes) for one in want)
    if got[1] == 0:
        return count <= 0
    return (start, count) == got[:2] and (count == 1 or step == got[2])


def _at(number: Number, sizes: Sizes) -> int:
    return number.at(sizes) if isinstance(number, Extent) else number
