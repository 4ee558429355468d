"""Symbolic numbers: what a step that is being recorded finds in place of numbers that change from
call to call, such as counters.

What it computes from one is known as an expression, which replays evaluate; every decision that it
takes on one, from `n % 100 == 0` to the use of its very value, becomes a guard. So a recording
holds for all numbers for which the decisions come out the same.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..tensor.keys import key_of
from .items import Item
from .places import Place

#: The types of numbers for which symbols stand.
NUMBERS = (int, float)
#: How snapshots begin what they hold of a number.
_NUMBERS = tuple((kind,) for kind in NUMBERS)
#: Expressions of more operations than this are numbers that are guarded.
LARGEST = 64
#: A recording that takes more decisions than this holds for its numbers alone.
MOST_DECISIONS = 64

_SIGNS = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}


def holds_number(item: Item | None) -> bool:
    """Whether there is a number."""
    return item is not None and type(item.value) is tuple and item.value[:1] in _NUMBERS


def is_number(item: Item | None) -> bool:
    """Whether there is a number, at a place where another one can be written."""
    return item is not None and holds_number(item) and item.key is not None and not item.is_fixed


class Path(str):
    """The path of a number, where it stands for the number."""

    __slots__ = ()


class Expression(NamedTuple):
    """What a step computes from numbers: each operand is a number, the path of one, or another
    expression."""

    operation: Callable[..., Any]
    operands: tuple[Any, ...]

    @property
    def _key(self) -> Hashable:
        """Tells 2 from 2.0, which are equal."""
        kinds = (str, Expression)
        return self.operation, *(x if isinstance(x, kinds) else key_of(x) for x in self.operands)

    def __eq__(self, other: object) -> bool:
        return type(other) is Expression and self._key == other._key

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        shown = [f"({one})" if type(one) is Expression else str(one) for one in self.operands]
        if sign := _SIGNS.get(self.operation):
            return f" {sign} ".join(shown)
        return f"{self.operation.__name__}({', '.join(map(str, self.operands))})"


Evaluate = Callable[[Mapping[str, Any]], Any]


def evaluator(operand: Any) -> Evaluate:
    """A function that computes the value of an operand, given the numbers at all paths."""
    if type(operand) is Path:
        return operator.itemgetter(operand)
    if type(operand) is not Expression:
        return lambda numbers: operand
    operation, (first, *rest) = operand.operation, map(evaluator, operand.operands)
    if not rest:
        return lambda numbers: operation(first(numbers))
    (second,) = rest
    return lambda numbers: operation(first(numbers), second(numbers))


class Guards:
    """What must hold of numbers for a recording to hold."""

    def __init__(self, places: dict[str, tuple[Place, type]], outcomes: dict[Any, Any]) -> None:
        #: Where the numbers are, and their types.
        self.places = places
        #: What was decided, and how.
        self.outcomes = outcomes
        self._tests = [(evaluator(asked), outcome) for asked, outcome in outcomes.items()]

    def hold(self, numbers: Mapping[str, Any]) -> bool:
        """Whether all decisions come out the same for these numbers."""
        for path, (_, kind) in self.places.items():
            if type(numbers[path]) is not kind:
                return False
        return all(_comes_out(evaluate, numbers, outcome) for evaluate, outcome in self._tests)

    def mismatch(self, root: Any) -> str | None:
        """Which decision comes out otherwise, as text; None if none does."""
        numbers = self.numbers(root)
        for path, (_, kind) in self.places.items():
            if type(numbers[path]) is not kind:
                return f"attribute {path} is no {kind.__name__} any more"
        for asked, (evaluate, outcome) in zip(self.outcomes, self._tests, strict=True):
            if not _comes_out(evaluate, numbers, outcome):
                return f"{asked} is not {outcome!r}, of the attributes that change"
        return None

    def numbers(self, root: Any) -> dict[str, Any]:
        """The numbers, by path."""
        return {path: place.read(root) for path, (place, _) in self.places.items()}

    def shown(self) -> list[str]:
        """The decisions as text."""
        return [f"{asked} is {outcome!r}" for asked, outcome in self.outcomes.items()]


def _comes_out(evaluate: Evaluate, numbers: Mapping[str, Any], outcome: Any) -> bool:
    try:
        value = evaluate(numbers)
    except Exception:  # a question that cannot be asked, such as one of a division by zero
        return False
    return value is outcome or key_of(value) == key_of(outcome)


class Symbols:
    """A context in which some of the numbers in the attributes of a model are symbolic."""

    def __init__(self, items: Mapping[str, Item], symbolic: Collection[str], root: Any) -> None:
        """`items`: the attributes; `symbolic`: the paths of the numbers."""
        self._items, self._root = items, root
        found = ((path, items.get(path)) for path in symbolic)
        self._places = {path: item.place for path, item in found if is_number(item)}
        numbers = {path: place.read(root) for path, place in self._places.items()}
        self._numbers = {path: n for path, n in numbers.items() if type(n) in NUMBERS}
        self.outcomes: dict[Any, Any] = {}
        #: The numbers that the step has set, and to what: an expression, or a number.
        self.results: dict[str, tuple[Place, Any]] = {}
        self.is_open = False
        self._made: list[weakref.ref[Symbol]] = []

    @property
    def guards(self) -> Guards:
        """What must hold of the numbers for the recording to hold."""
        found = {p: (self._places[p], type(number)) for p, number in self._numbers.items()}
        return Guards(found, dict(self.outcomes))

    @property
    def are_kept(self) -> bool:
        """Whether the program has kept symbols where numbers cannot take their place."""
        return any(made() is not None for made in self._made)

    def around(self, run: Callable[[], Any], plain: Callable[[Any, Any], Any]) -> Callable[[], Any]:
        """A function that calls another one in this context, and returns its results, in which
        `plain` replaces the leaves."""

        def watched() -> Any:
            with self:
                return plain(run(), number_of)

        if self._numbers:
            return watched
        self._root, self._items = None, {}
        return run

    def __enter__(self) -> None:
        self.is_open = True
        for path, number in list(self._numbers.items()):
            # Another path of the same number.
            if type(self._places[path].read(self._root)) is Symbol:
                del self._numbers[path]
                continue
            self._places[path].write(self._root, Symbol(self, Path(path), 0, number))

    def __exit__(self, *_: object) -> None:
        """Puts numbers in the place of all symbols, and forgets the model."""
        self.is_open = False
        for path, number in self._numbers.items():
            found = self._replace(self._places[path])
            if found != path and type(found) in (Expression, Path, type(number)):
                self.results[path] = self._places[path], found
        if self.are_kept:
            self._replace_others()
        self._root, self._items = None, {}

    def _replace(self, place: Place) -> Any:
        """The value at a place, where a symbol is replaced: then what it stands for."""
        found = place.read(self._root)
        if type(found) is not Symbol:
            return found
        place.write(self._root, found._number)
        return found._operand

    def _replace_others(self) -> None:
        """Replaces the symbols that the step has put in the place of other numbers."""
        for path, item in self._items.items():
            if path not in self._numbers and is_number(item):
                place = item.place
                found = self._replace(place)
                if type(found) in (Expression, Path):
                    self.results[path] = place, found

    def decide(self, asked: Any, outcome: Any) -> None:
        """Notes a decision; after too many, that the recording holds for these numbers alone."""
        if self.is_open and len(self.outcomes) < MOST_DECISIONS:
            self.outcomes[asked] = outcome
        elif self.is_open:
            self.outcomes.update((Path(path), number) for path, number in self._numbers.items())

    def compute(self, operation: Callable[..., Any], *operands: Any) -> Any:
        """What an operation makes of numbers, some of them symbolic."""
        operands = tuple(
            one if _symbols_of(one) in (None, self) else number_of(one) for one in operands
        )
        size = 1 + sum(one._size for one in operands if type(one) is Symbol)
        if operation in (operator.eq, operator.ne) and isinstance(operands[1], (str, type(None))):
            return operation(0, operands[1])  # no number equals these
        if not (self.is_open and all(map(_is_operand, operands))) or size > LARGEST:
            return operation(*map(number_of, operands))
        try:
            number = operation(*(one._number if type(one) is Symbol else one for one in operands))
        except Exception:  # the program may go on from there
            return operation(*map(number_of, operands))
        made = Expression(operation, tuple(map(_operand, operands)))
        if type(number) is bool:
            self.decide(made, number)
            return number
        if type(number) not in NUMBERS:
            return operation(*map(number_of, operands))
        return Symbol(self, *_summed(made, operands, size), number)

    def remember(self, symbol: Symbol) -> None:
        """Notes a symbol, to look later whether the program has kept it."""
        self._made.append(weakref.ref(symbol))


def _is_operand(one: Any) -> bool:
    return type(one) is Symbol or type(one) in NUMBERS or type(one) is bool


def _symbols_of(one: Any) -> Symbols | None:
    return one._symbols if type(one) is Symbol else None


def _operand(one: Any) -> Any:
    return one._operand if type(one) is Symbol else one


def number_of(one: Any) -> Any:
    """The number that a symbol stands for, on whose very value the step depends from then on; any
    other object as it is."""
    if type(one) is not Symbol:
        return one
    one._symbols.decide(one._operand, one._number)
    return one._number


def _summed(made: Expression, operands: tuple[Any, ...], size: int) -> tuple[Any, int]:
    """An expression and its size, with `(n + 1) + 1` as `n + 2` if these are integers, as of
    counters in loops."""
    known, by = made.operands[0], made.operands[-1]
    is_sum = made.operation in (operator.add, operator.sub) and type(by) is int
    if not is_sum or type(operands[0]._number) is not int:
        return made, size
    by = by if made.operation is operator.add else -by
    if type(known) is Expression and known.operation is operator.add:
        inner, before = known.operands
        if type(before) is int:
            known, by, size = inner, by + before, size - 1
    return (Expression(operator.add, (known, by)), size) if by else (known, size - 1)


class Symbol:
    """Stands for a number. It computes and compares as the number does, and notes what it is asked.
    What is no arithmetic gets the number itself."""

    #: NumPy leaves operators to this class, and refuses to call its functions with symbols.
    __array_ufunc__ = None
    __slots__ = ("__weakref__", "_number", "_operand", "_size", "_symbols")

    def __init__(self, symbols: Symbols, operand: Any, size: int, number: Any) -> None:
        self._symbols, self._operand, self._size, self._number = symbols, operand, size, number
        symbols.remember(self)

    @property
    def __class__(self) -> type:
        return type(self._number)

    def __getattr__(self, name: str) -> Any:
        return getattr(number_of(self), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(number_of(self), dtype)

    def __bool__(self) -> bool:
        return self._symbols.compute(bool, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self._number), (number_of(self),)

    def __format__(self, form: str) -> str:
        return format(number_of(self), form)

    def __round__(self, *digits: int) -> Any:
        return round(number_of(self), *digits)

    def __pow__(self, exponent: Any, *modulus: Any) -> Any:
        if modulus:
            return pow(number_of(self), number_of(exponent), *map(number_of, modulus))
        return self._symbols.compute(operator.pow, self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return self._symbols.compute(operator.pow, base, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


def _forward(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *others: self._symbols.compute(operation, self, *others)


def _backward(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: self._symbols.compute(operation, other, self)


def _exactly(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: operation(number_of(self))


def _complete() -> None:
    """Gives symbols the remaining methods of numbers."""
    for operation in _SIGNS.keys() - {operator.pow}:
        name = operation.__name__.strip("_")
        setattr(Symbol, f"__{name}__", _forward(operation))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift"):
        setattr(Symbol, f"__r{name}__", _backward(getattr(operator, name)))
    for name, operation in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
        setattr(Symbol, f"__r{name}__", _backward(operation))
    for operation in (operator.neg, operator.pos, operator.abs, operator.invert):
        setattr(Symbol, f"__{operation.__name__}__", _forward(operation))
    conversions = (int, float, complex, str, repr, hash, operator.index)
    for function in (*conversions, math.trunc, math.floor, math.ceil):
        setattr(Symbol, f"__{function.__name__}__", _exactly(function))


_complete()
