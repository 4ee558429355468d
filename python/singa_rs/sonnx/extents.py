"""Extents that depend on the sizes of dynamic axes: sums of products of them.

They are not written down by the program that is exported. It is traced for several sizes, and
what the numbers in its operations have to be follows from how they differ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Sizes = dict[str, int]

#: What is not 1 over any number of elements.
_LEAST = 2.0**-63
#: The most values that an error shows.
_MOST_SHOWN = 4


class Extent:
    """A sum of products: whole coefficients by the names of the axes that are multiplied."""

    def __init__(self, terms: dict[tuple[str, ...], int]) -> None:
        self.terms = {names: factor for names, factor in sorted(terms.items()) if factor}

    def at(self, sizes: Sizes) -> int:
        """The value for these sizes."""
        made = 0
        for names, factor in self.terms.items():
            for name in names:
                factor *= sizes[name]
            made += factor
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(tuple(self.terms.items()))

    def __str__(self) -> str:
        """As ONNX names an axis of this size."""
        parts = [
            "*".join([*([str(f)] if f != 1 or not n else []), *n]) for n, f in self.terms.items()
        ]
        return " + ".join(parts) or "0"

    __repr__ = __str__


#: A number of an operation: the same for all sizes, or not.
Number = int | Extent


class Reciprocal:
    """1 or -1 over a number that depends on sizes, as means have it."""

    def __init__(self, sign: int, of: Extent) -> None:
        self.sign, self.of = sign, of

    def __str__(self) -> str:
        return f"{self.sign} / ({self.of})"

    __repr__ = __str__


def settings(base: Sizes, others: Callable[[str], int]) -> list[Sizes]:
    """The sizes to trace: `base`, another size of each axis, and of each pair of axes; last a
    check, in which all differ."""
    found = [dict(base)]
    for count in (1, 2):
        for names in itertools.combinations(base, count):
            found.append({**base, **{name: others(name) for name in names}})
    if len(base) > 2:
        found.append({name: others(name) for name in base})
    return found


def solve(values: Sequence[int], sizes: Sequence[Sizes]) -> Number | None:
    """The number that takes these values for these sizes; None if no sum of products of at most
    two axes does, and no single product of at most three, any of them more than once."""
    if all(value == values[0] for value in values):
        return values[0]
    base, names = sizes[0], list(sizes[0])
    found = _differences(values, sizes, base, names)
    sums = [] if found is None else [_expanded(values[0], found, base)]
    for made in itertools.chain(sums, _products(values[0], base, names)):
        if all(made.at(one) == value for one, value in zip(sizes, values, strict=True)):
            return made
    return None


def _products(value: int, base: Sizes, names: list[str]) -> Iterator[Extent]:
    """The products of axes that may have a value."""
    for count in (2, 3):
        for of in itertools.combinations_with_replacement(names, count):
            size = math.prod(base[name] for name in of)
            if value and size and value % size == 0:
                yield Extent({of: value // size})


def solve_scalar(values: Sequence[float], sizes: Sequence[Sizes]) -> Number | Reciprocal | None:
    """As `solve`, for floats that are whole, or 1 or -1 over what is whole."""
    if not all(map(math.isfinite, values)):
        return None
    if all(one.is_integer() for one in values):
        return solve([int(one) for one in values], sizes)
    sign = 1 if values[0] > 0 else -1
    below = [round(sign / one) if abs(one) > _LEAST else 0 for one in values]
    if not all(n > 0 and sign / n == one for n, one in zip(below, values, strict=True)):
        return None
    found = solve(below, sizes)
    return Reciprocal(sign, found) if isinstance(found, Extent) else None


def _differences(
    values: Sequence[int], sizes: Sequence[Sizes], base: Sizes, names: list[str]
) -> dict[tuple[str, ...], int] | None:
    """The slopes along each axis and pair of axes; None if one is not whole."""
    known: dict[tuple[str, ...], int] = {}
    for value, at in zip(values[1:], sizes[1:], strict=True):
        moved = tuple(name for name in names if at[name] != base[name])
        if len(moved) > 2:
            continue
        rest, run = value - values[0], 1
        for name in moved:
            run *= at[name] - base[name]
            rest -= known[(name,)] * (at[name] - base[name]) if len(moved) == 2 else 0
        if rest % run:
            return None
        known[moved] = rest // run
    return known


def _expanded(start: int, slopes: dict[tuple[str, ...], int], base: Sizes) -> Extent:
    """`start` and the slopes times distances from `base`, multiplied out."""
    terms: dict[tuple[str, ...], int] = {(): start}
    for names, slope in slopes.items():
        for kept in itertools.product((True, False), repeat=len(names)):
            factor = slope
            for name, is_kept in zip(names, kept, strict=True):
                factor *= 1 if is_kept else -base[name]
            left = tuple(name for name, is_kept in zip(names, kept, strict=True) if is_kept)
            terms[left] = terms.get(left, 0) + factor
    return Extent(terms)


def same(a: Any, b: Any) -> bool:
    """Whether two attributes or constants are equal; NaN is equal to NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b) or bool(np.shape(a) == np.shape(b) and _same_bytes(a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def _same_bytes(a: Any, b: Any) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def merged(values: Sequence[Any], sizes: Sequence[Sizes], where: str) -> Any:
    """One value for those of several traces, with extents for the whole numbers that differ.

    Raises:
        ValueError: something else differs.
    """
    first = values[0]
    if isinstance(first, dict) and all(list(one) == list(first) for one in values):
        return {k: _merged_entry(k, [one[k] for one in values], sizes, where) for k in first}
    if isinstance(first, (list, tuple)) and all(len(one) == len(first) for one in values):
        return tuple(merged(one, sizes, where) for one in zip(*values, strict=True))
    if all(same(one, first) for one in values):
        return first
    if all(type(one) is int for one in values) and (found := solve(values, sizes)) is not None:
        return found
    raise ValueError(
        f"export: {where}: got {_shown(values, sizes)}, want what does not depend on the sizes, or "
        "whole sums of their products"
    )


def _merged_entry(key: str, values: Sequence[Any], sizes: Sequence[Sizes], where: str) -> Any:
    """As `merged`; the scalar of an operation may be a float that depends on sizes."""
    if key == "scalar" and all(type(one) is float for one in values) and len(set(values)) > 1:
        found = solve_scalar(values, sizes)
        if found is not None:
            return found
    return merged(values, sizes, f"{where}, {key}")


def _shown(values: Sequence[Any], sizes: Sequence[Sizes]) -> str:
    """The different ones of some values, and the sizes that they are for."""
    found: list[tuple[Any, Sizes]] = []
    for value, at in zip(values, sizes, strict=True):
        if len(found) < _MOST_SHOWN and not any(same(value, one) for one, _ in found):
            found.append((value, at))
    *others, last = [f"{value} for {at}" for value, at in found]
    return f"{', '.join(others)} and {last}"
