"""What the numbers in a program have to be for any sizes: that follows from how they differ between
traces for several."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..autograd.windows import extents
from .extents import Extent, Number, Reciprocal, Sizes, plus, quotient, times

#: What is not 1 over any number of elements.
_LEAST = 2.0**-63
#: The most values that an error shows.
_MOST_SHOWN = 4
#: The greatest number that a program is taken to divide an extent by, windows aside.
_MOST_BY = 16
#: The greatest denominator of a scale.
_FINEST = 1000


class Known:
    """The sizes of traces, and the extents that have been found."""

    def __init__(self, sizes: Sequence[Sizes]) -> None:
        self.sizes = sizes
        #: Those that the next numbers are likely to be.
        self.near: list[Extent] = []
        self._found: dict[Extent, None] = {}

    def solve(self, values: Sequence[int]) -> Number | None:
        """The number that takes these values; None if none is found."""
        if all(value == values[0] for value in values):
            return values[0]
        exact = (one for one in self.near if self._at(one) == tuple(values))
        made = next(exact, None) or _solve(values, self.sizes) or self._made_of_known(values)
        if isinstance(made, Extent):
            self._found[made] = None
        return made

    def _at(self, one: Extent) -> tuple[int, ...]:
        return tuple(one.at(sizes) for sizes in self.sizes)

    def _made_of_known(self, values: Sequence[int]) -> Number | None:
        """A multiple of a known extent, or of its share, and more; one and a multiple of another; a
        product of up to three."""
        names = (Extent({(name,): 1}) for name in self.sizes[0])
        known = [(one, self._at(one)) for one in dict.fromkeys((*self.near, *self._found, *names))]
        lines = (_line(values, [one]) for one in known)
        sums = (_sum(values, *pair) for pair in itertools.permutations(known, 2))
        many = (itertools.combinations_with_replacement(known, n) for n in (2, 3))
        products = (_line(values, of) for of in itertools.chain(*many))
        shares = (_line(values, [(one, self._at(one))]) for one in _shares(of for of, _ in known))
        return next(filter(None, itertools.chain(lines, sums, products, shares)), None)


def _shares(of: Iterable[Extent]) -> Iterator[Extent]:
    """Extents divided by small numbers, and rounded down, up or in between."""
    for one in of:
        for by in range(2, _MOST_BY + 1):
            found = (quotient(plus(one, more), by) for more in range(by))
            yield from (share for share in found if isinstance(share, Extent))


#: Of the inputs of an operation.
Shapes = Sequence[Sequence[Number]]
_Valued = tuple[Extent, tuple[int, ...]]


def _line(values: Sequence[int], of: Sequence[_Valued]) -> Number | None:
    """A multiple of a product, and a constant, that takes these values."""
    at = [math.prod(each) for each in zip(*(one for _, one in of), strict=True)]
    run = next((i for i, n in enumerate(at) if n != at[0]), 0)
    slope, rest = divmod(values[run] - values[0], (at[run] - at[0]) or 1)
    more = values[0] - slope * at[0]
    if rest or more and len(of) > 1 or [slope * n + more for n in at] != list(values):
        return None
    made: Number = slope
    for one, _ in of:
        made = times(made, one)
    return plus(made, more)


def _sum(values: Sequence[int], a: _Valued, b: _Valued) -> Number | None:
    made = _line([value - n for value, n in zip(values, a[1], strict=True)], [b])
    return None if made is None else plus(a[0], made)


# ---- what extents are likely ---------------------------------------------------------------------


def likely(name: str, attrs: Sequence[Any], shapes: Shapes) -> list[Extent]:
    """The extents that numbers of an operation with these attributes in each trace may be, those of
    its results before those of its inputs, which have these shapes."""
    is_fixed = all(isinstance(n, int) for filters in shapes[1:] for n in filters[2:])
    find = is_fixed and _FINDERS.get(name)
    found = find(attrs if name == "resample" else attrs[0], shapes) if find else ()
    return [one for one in (*found, *(n for of in shapes for n in of)) if isinstance(one, Extent)]


def _windows(a: dict[str, Any], shapes: Shapes) -> Iterator[Number]:
    """How many windows there are along each axis. The last one begins in the image, or before."""
    kernel, axes = a.get("kernel") or shapes[1][2:], len(a["stride"])
    reach = extents(kernel, a.get("dilation"))
    for d, (n, by) in enumerate(zip(shapes[0][2:], a["stride"], strict=True)):
        before, after = a["padding"][d], a["padding"][axes + d]
        more = after - reach[d]
        if a.get("ceil_mode"):
            more = by - 1 - max(-more, by)
        yield plus(quotient(plus(n, before + more), by), 1)


def _places(a: dict[str, Any], shapes: Shapes) -> Iterator[Number]:
    """How many places of slices there are, in steps."""
    known = zip(shapes[0], a["of"]["ranges"], a["of"]["bounds"], strict=True)
    for n, (_, _, step), bounds in known:
        start, stop = (one or 0 for one in bounds or (0, 0))
        by = abs(step)
        yield quotient(plus(n, by - 1 - max(start, 0) + min(stop, 0)), by)


def _transposed(a: dict[str, Any], shapes: Shapes) -> Iterator[Number]:
    """The extents that as many windows have, and those for which there are no more of them."""
    reach, axes = extents(shapes[1][2:], a["dilation"]), len(a["stride"])
    for d, (n, by) in enumerate(zip(shapes[0][2:], a["stride"], strict=True)):
        least = reach[d] - a["padding"][d] - a["padding"][axes + d]
        yield from (plus(times(plus(n, -1), by), least + more) for more in range(by))


def _resampled(attrs: Sequence[Any], shapes: Shapes) -> Iterator[Number]:
    """Extents times scales, if it is not sizes that were given."""
    steps = zip(*(a["steps"] for a in attrs), strict=True)
    for n, each in zip(shapes[0], steps, strict=True):
        (step, _), *others = each
        if all(one[0] == step for one in others):
            by = Fraction(1 / step).limit_denominator(_FINEST)
            yield quotient(times(n, by.numerator), by.denominator)


_FINDERS: dict[str, Any] = {
    **dict.fromkeys(("conv", "max_pool", "avg_pool"), _windows),
    "conv_grad_input": _transposed,
    "view_index": _places,
    "resample": _resampled,
}


# ---- sums of products ----------------------------------------------------------------------------


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


def _solve(values: Sequence[int], sizes: Sequence[Sizes]) -> Number | None:
    """The sum of products of at most two axes that takes these values for these sizes."""
    base, names = sizes[0], list(sizes[0])
    found = _differences(values, sizes, base, names)
    made = None if found is None else _expanded(values[0], found, base)
    is_right = made and all(made.at(one) == value for one, value in zip(sizes, values, strict=True))
    return made if is_right else None


#: The attributes that may be floats that depend on sizes.
FLOATS = ("scalar", "value", "min", "max")


def solve_scalar(
    values: Sequence[float], known: Known, rounded: Callable[[float], Any] = float
) -> Number | Reciprocal | None:
    """As `Known.solve`, for floats that are whole, or 1 or -1 over what is whole, as it is
    rounded."""
    if not all(map(math.isfinite, values)):
        return None
    if all(one.is_integer() for one in values):
        return known.solve([int(one) for one in values])
    sign = 1 if values[0] > 0 else -1
    below = [round(sign / one) if abs(one) > _LEAST else 0 for one in values]
    if not all(n > 0 and rounded(sign / n) == one for n, one in zip(below, values, strict=True)):
        return None
    found = known.solve(below)
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


def merged(values: Sequence[Any], known: Known, where: str) -> Any:
    """One value for those of several traces, with extents for the whole numbers that differ.

    Raises:
        ValueError: something else differs.
    """
    first = values[0]
    if isinstance(first, dict) and all(list(one) == list(first) for one in values):
        return {k: _merged_entry(k, [one[k] for one in values], known, where) for k in first}
    if isinstance(first, (list, tuple)) and all(len(one) == len(first) for one in values):
        return tuple(merged(one, known, where) for one in zip(*values, strict=True))
    if all(same(one, first) for one in values):
        return first
    if all(type(one) is int for one in values) and (found := known.solve(values)) is not None:
        return found
    raise ValueError(
        f"export: {where}: got {_shown(values, known.sizes)}, want what does not depend on the "
        "sizes, or whole sums of their products, also divided by a number"
    )


def _merged_entry(key: str, values: Sequence[Any], known: Known, where: str) -> Any:
    """As `merged`; some may be floats that depend on sizes, and the steps of resampling what sizes
    give, which None stands for."""
    if key == "steps":
        return tuple(_merged_step(each, known, where) for each in zip(*values, strict=True))
    if key in FLOATS and all(type(one) is float for one in values) and len(set(values)) > 1:
        found = solve_scalar(values, known)
        if found is not None:
            return found
    return merged(values, known, f"{where}, {key}")


def _merged_step(values: Sequence[Any], known: Known, where: str) -> float | None:
    steps = [step for step, _ in values]
    is_free = len(set(steps)) > 1 and all(is_of_sizes for _, is_of_sizes in values)
    return None if is_free else merged(steps, known, where)


def _shown(values: Sequence[Any], sizes: Sequence[Sizes]) -> str:
    """The different ones of some values, and the sizes that they are for."""
    found: list[tuple[Any, Sizes]] = []
    for value, at in zip(values, sizes, strict=True):
        if len(found) < _MOST_SHOWN and not any(same(value, one) for one, _ in found):
            found.append((value, at))
    *others, last = [f"{value} for {at}" for value, at in found]
    return f"{', '.join(others)} and {last}"
