"""NumPy arrays in place of tensors: how they become tensors before a function runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._core import Handle
from .creation import as_operand, from_numpy
from .numbers import as_array
from .takers import ARRAYS, takers, types

if TYPE_CHECKING:
    from . import Tensor


def operand(value: Any, op: str, others: Iterable[Any] = ()) -> Tensor:
    """An array as a tensor on the device of those among `others`, which it is combined with. Floats
    take the dtype of the first of them that has floats; else the rules of `as_operand` hold.

    Raises:
        DTypeError: values that are not bools, integers or floats, or masked.
    """
    array, beside = as_array(value, op), [t for t in others if isinstance(t, Handle)]
    device = beside[0].device if beside else None
    like = next((t.dtype for t in beside if t.dtype.is_float), None)
    if like is not None and array.dtype.kind == "f":
        return from_numpy(array, device, like)
    return as_operand(array, [t.dtype for t in beside], device)


def operands(values: tuple[Any, ...], op: str) -> tuple[Any, ...]:
    """Values that are combined, with tensors in place of arrays; the same tuple if there are no
    arrays."""
    if not any(isinstance(x, ARRAYS) for x in values):
        return values
    return tuple(operand(x, op, values) if isinstance(x, ARRAYS) else x for x in values)


class Admission:
    """Copies the arrays among the arguments of a function into tensors."""

    def __init__(self, op: str, found: dict[int, inspect.Parameter]) -> None:
        from . import Tensor

        stars = [at for at, one in found.items() if one.kind is one.VAR_POSITIONAL]
        self.op = op
        #: The class of arguments that stay as they are.
        self.kind = Tensor
        #: The position from which on all arguments are tensors, and those before it that are.
        self.rest = stars[0] if stars else None
        self.places = tuple(at for at in found if at not in stars)
        self.words = frozenset(found[at].name for at in self.places)
        #: Where a number of NumPy's is a number.
        counts = [at for at, one in found.items() if "int" in types(one)]
        self._counts = {*counts, *(found[at].name for at in counts)}

    def __call__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with tensors in place of arrays."""
        places = [at for at in self.places if at < len(args) and self._admits(at, args[at])]
        if self.rest is not None:
            places += [at for at in range(self.rest, len(args)) if self._admits(at, args[at])]
        words = [name for name in kwargs if name in self.words and self._admits(name, kwargs[name])]
        if not places and not words:
            return args, kwargs
        beside = (*args, *kwargs.values())
        made = [operand(x, self.op, beside) if at in places else x for at, x in enumerate(args)]
        return tuple(made), kwargs | {n: operand(kwargs[n], self.op, beside) for n in words}

    def _admits(self, where: int | str, value: Any) -> bool:
        return isinstance(value, ARRAYS) and (where not in self._counts or value.ndim > 0)


def admission(function: Callable[..., Any], op: str) -> Admission | None:
    """How arrays become tensors for a function; None if no parameter of it takes them."""
    found = takers(function)
    return Admission(op, found) if found else None
