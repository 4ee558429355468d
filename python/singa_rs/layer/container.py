"""Layers made of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .base import Layer


class Sequential(Layer):
    """Layers, or other callables, in sequence; each gets the result of the one before."""

    def __init__(self, *steps: Callable[..., Any] | Mapping[str, Callable[..., Any]]) -> None:
        """Names are indices (`0.W`), or the keys of a single mapping.

        Raises:
            TypeError: a step that cannot be called.
        """
        super().__init__()
        single = steps[0] if len(steps) == 1 else None
        if isinstance(single, Mapping):
            named = {str(name): step for name, step in single.items()}
        else:
            if isinstance(single, (list, tuple)):
                steps = tuple(single)
            named = {str(index): step for index, step in enumerate(steps)}
        self._functions = {}
        self._order = tuple(named)
        for name, step in named.items():
            if not callable(step):
                raise TypeError(f"Sequential: got {step!r} for step {name!r}, want a callable")
            if isinstance(step, Layer):
                self.register_layers({name: step})
            else:
                self._functions[name] = step

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return (self._step(name) for name in self._order)

    def __getitem__(self, index: int) -> Callable[..., Any]:
        return self._step(self._order[index])

    def _step(self, name: str) -> Callable[..., Any]:
        function = self._functions.get(name)
        return getattr(self, name) if function is None else function

    def forward(self, *args: Any) -> Any:
        """The first step gets all arguments; without steps, the one argument is the result."""
        if not self._order:
            (result,) = args
            return result
        result = self[0](*args)
        for name in self._order[1:]:
            result = self._step(name)(result)
        return result
