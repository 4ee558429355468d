"""Extents that depend on the sizes of dynamic axes: sums of products of them, and of such sums
divided by a number and rounded down, as windows that are some steps apart have them.

They are not written down by the program that is exported; `fitting` finds them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

Sizes = dict[str, int]


class Quotient(NamedTuple):
    """A sum divided by a number from 2 and rounded down, which is multiplied as sizes are."""

    of: Extent
    by: int

    def __str__(self) -> str:
        of = f"({self.of})" if len(self.of.terms) > 1 else self.of
        return f"({of} // {self.by})"


class Extent:
    """A sum of products: whole coefficients by what is multiplied, names of axes and quotients."""

    def __init__(self, terms: dict[tuple[str | Quotient, ...], int]) -> None:
        made: dict[tuple[str | Quotient, ...], int] = {}
        for names, factor in terms.items():
            key = tuple(sorted(names, key=str))
            made[key] = made.get(key, 0) + factor
        known = sorted(made.items(), key=lambda one: [str(name) for name in one[0]])
        self.terms = {names: factor for names, factor in known if factor}

    def at(self, sizes: Sizes) -> int:
        """The value for these sizes."""
        made = 0
        for names, factor in self.terms.items():
            for name in names:
                is_plain = isinstance(name, str)
                factor *= sizes[name] if is_plain else name.of.at(sizes) // name.by
            made += factor
        return made

    def parts(self) -> Iterator[str | Quotient]:
        """The names and the quotients that it is made of, at any depth."""
        for name in itertools.chain(*self.terms):
            yield name
            if isinstance(name, Quotient):
                yield from name.of.parts()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(tuple(self.terms.items()))

    def __str__(self) -> str:
        """As ONNX names an axis of this size."""
        parts = [
            "*".join([*([str(f)] if f != 1 or not n else []), *map(str, n)])
            for n, f in self.terms.items()
        ]
        return " + ".join(parts) or "0"

    __repr__ = __str__


#: A number of an operation: the same for all sizes, or not.
Number = int | Extent


Terms = dict[tuple["str | Quotient", ...], int]


def _terms(number: Number) -> Terms:
    return number.terms if isinstance(number, Extent) else {(): number}


def _number(terms: Terms) -> Number:
    made = Extent(terms)
    return made if any(made.terms) else made.at({})


def plus(a: Number, b: Number) -> Number:
    """A sum."""
    made = dict(_terms(a))
    for names, factor in _terms(b).items():
        made[names] = made.get(names, 0) + factor
    return _number(made)


def times(a: Number, b: Number) -> Number:
    """A product."""
    made: Number = 0
    for names, factor in _terms(a).items():
        one = {(*names, *others): factor * by for others, by in _terms(b).items()}
        made = plus(made, _number(one))
    return made


def quotient(of: Number, by: int) -> Number:
    """`of // by`, as a sum of what `by` divides and the simplest quotient of the rest."""
    terms = {names: factor for names, factor in _terms(of).items() if names and factor % by}
    whole = {names: factor // by for names, factor in _terms(of).items() if names not in terms}
    if not terms:
        return _number(whole)
    share = math.gcd(by, *terms.values())
    rest = _terms(of).get((), 0) % by // share
    terms, by = {names: factor // share for names, factor in terms.items()}, by // share
    ((name, *others), factor), *more = terms.items()
    if isinstance(name, Quotient) and factor == 1 and not (others or more):
        return plus(_number(whole), quotient(plus(name.of, rest * name.by), by * name.by))
    made = Quotient(Extent({**terms, (): rest}), by)
    return plus(_number(whole), Extent({(made,): 1}))


class Reciprocal:
    """1 or -1 over a number that depends on sizes, as means have it."""

    def __init__(self, sign: int, of: Extent) -> None:
        self.sign, self.of = sign, of

    def at(self, sizes: Sizes) -> float:
        """The value for these sizes, NaN if there is none."""
        below = self.of.at(sizes)
        return self.sign / below if below else math.nan

    def __str__(self) -> str:
        return f"{self.sign} / ({self.of})"

    __repr__ = __str__


#: A number of an operation that may be a float, which may also be the name of one.
Scalar = Number | Reciprocal | float | str
