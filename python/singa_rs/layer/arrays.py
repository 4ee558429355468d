"""NumPy arrays among the arguments of layers and models: they are copied into tensors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..record.trees import inside, is_leaf, is_numeric, replace
from ..tensor import Tensor, from_numpy
from ..tensor.arrays import operand
from ..tensor.numbers import as_array
from .node import now

if TYPE_CHECKING:
    from ..device import Device
    from .base import Layer


#: What an annotation has that allows for tensors.
_TENSORS = re.compile("Tensor|Given|Any")


def admit(value: Any, to: Any) -> Any:
    """An argument of a model with its NumPy arrays copied to a device."""
    return _replaced(value, lambda array: from_numpy(array, to))


def _replaced(value: Any, make: Callable[[np.ndarray], Tensor]) -> Any:
    """Containers without arrays stay themselves, so that the callee may fill them."""
    return replace(value, lambda leaf: make(leaf) if is_numeric(leaf) else leaf)


def holds_array(value: Any) -> bool:
    """Whether there is a NumPy array among arguments that `admit` copies."""
    if type(value) is Tensor:  # as most are
        return False
    return is_numeric(value) if is_leaf(value) else any(map(holds_array, inside(value)))


def admitted(
    layer: Layer, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a layer's `forward` with tensors in place of arrays, by the rules of
    `operand` beside tensors, by those of `from_numpy` on the layer's device without. Parameters
    that are declared without `Tensor`, such as a shape, keep their arrays."""
    if not (holds_array(args) or holds_array(kwargs)):
        return args, kwargs
    beside = [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)]
    to = None if beside else _device_of(layer)

    def make(array: np.ndarray) -> Tensor:
        name = type(layer).__name__
        return operand(array, name, beside) if beside else from_numpy(as_array(array, name), to)

    places, words = _keeping(function)
    made = tuple(x if at in places else _replaced(x, make) for at, x in enumerate(args, 1))
    return made, {name: x if name in words else _replaced(x, make) for name, x in kwargs.items()}


def _device_of(layer: Layer) -> Device | None:
    """Where a layer's tensors are or, if it has none, those of the module that calls it."""
    own = (t.device for t in vars(layer).values() if isinstance(t, Tensor))
    around = (vars(one).get("_device") for one in reversed(now.running))
    return next((one for one in (*own, *around) if one is not None), None)


@lru_cache(maxsize=512)
def _keeping(function: Callable[..., Any]) -> tuple[set[int], set[str]]:
    """The positions and names of the parameters for which arrays stay arrays."""
    found = {
        at: one.name
        for at, one in enumerate(inspect.signature(function).parameters.values())
        if one.annotation is not one.empty and not _TENSORS.search(str(one.annotation))
    }
    return set(found), set(found.values())
