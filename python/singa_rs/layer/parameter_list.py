"""Parameters, and lists and dictionaries of them, which have no computation of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import DTypeError, named
from ..tensor import Tensor
from ..tensor.creation import as_tensor
from .base import Layer
from .check import flag


def _parameter(value: Any, what: str) -> Tensor:
    """A tensor that stores its gradient: the one given, or a new one of an array or list."""
    if isinstance(value, (str, bytes, Mapping)) or value is None:
        raise TypeError(f"{what}: got {value!r}, want a Tensor or an array")
    made: Tensor = as_tensor(value)
    if not made.dtype.is_float:
        raise DTypeError(f"{what}: got dtype {made.dtype.name}, want a float dtype")
    made.stores_grad = True
    made.set_account("parameters")
    return made


def Parameter(data: Any, requires_grad: bool = True) -> Tensor:
    """A parameter of the layer or module that has it as an attribute (PyTorch Parameter): a tensor
    that stores its gradient, which optimizers update and files contain.

    Args:
        data: a tensor, whose memory it shares, or an array or numbers, which are copied; floats.
        requires_grad: False for one that stays as it is.

    Raises:
        TypeError: something else. DTypeError: no floats.
    """
    learns = flag(requires_grad, "Parameter: requires_grad")
    made = _parameter(data, "Parameter").detach()
    made.requires_grad, made._stores_grad = learns, learns or 0  # of a frozen parameter
    return made


Parameter = named(Parameter, __name__)


class ParameterList(Layer):
    """A list of parameters, tensors that layers read by index (PyTorch ParameterList). Their names
    are indices."""

    def __init__(self, parameters: Iterable[Any] = ()) -> None:
        """`parameters`: tensors or arrays of floats.

        Raises:
            TypeError: anything else.
        """
        super().__init__()
        self._count = 0
        self.extend(parameters)

    def append(self, parameter: Any) -> ParameterList:
        """Adds a parameter at the end; returns the list."""
        made = _parameter(parameter, "ParameterList")
        setattr(self, str(self._count), made)
        self._count += 1
        return self

    def extend(self, parameters: Iterable[Any]) -> ParameterList:
        """Adds parameters at the end; returns the list."""
        is_text = isinstance(parameters, (str, bytes, Mapping))
        if is_text or not isinstance(parameters, Iterable):
            raise TypeError(f"ParameterList: got {parameters!r}, want parameters")
        for one in parameters:
            self.append(one)
        return self

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(self._count))

    def _place(self, index: int) -> str:
        return str(range(self._count)[index])

    def __getitem__(self, index: int) -> Tensor:
        return getattr(self, self._place(index))

    def __setitem__(self, index: int, parameter: Any) -> None:
        setattr(self, self._place(index), _parameter(parameter, "ParameterList"))


class ParameterDict(Layer):
    """A dictionary of parameters, tensors that layers read by key (PyTorch ParameterDict)."""

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        """`parameters`: tensors or arrays of floats.

        Raises:
            TypeError: anything else, or a key that is not a str.
            ValueError: a key that is empty or has a dot, which paths are divided by, or that is an
                attribute of layers.
        """
        super().__init__()
        self._keys: tuple[str, ...] = ()
        self.update({} if parameters is None else parameters)

    def update(self, parameters: Mapping[str, Any]) -> None:
        """Takes parameters in, in the places of those with the same keys."""
        if not isinstance(parameters, Mapping):
            raise TypeError(f"ParameterDict: got {parameters!r}, want a mapping")
        for key, one in parameters.items():
            self[key] = one

    def __setitem__(self, key: str, parameter: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: got key {key!r}, want a str")
        if not key or "." in key or (key not in self._keys and hasattr(self, key)):
            raise ValueError(f"ParameterDict: got key {key!r}, want a name without dots")
        setattr(self, key, _parameter(parameter, "ParameterDict"))
        if key not in self._keys:
            self._keys = (*self._keys, key)

    def __getitem__(self, key: str) -> Tensor:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)
        self._keys = tuple(one for one in self._keys if one != key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> tuple[str, ...]:
        """The keys, in the order in which they came."""
        return self._keys

    def values(self) -> list[Tensor]:
        """The parameters."""
        return [self[key] for key in self._keys]

    def items(self) -> list[tuple[str, Tensor]]:
        """The keys and parameters."""
        return [(key, self[key]) for key in self._keys]
