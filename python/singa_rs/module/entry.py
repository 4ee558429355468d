"""Wrappers around the methods of a module."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import autograd, tensor
from ..layer.calls import with_place
from ..layer.node import now
from ..record import MISS
from .graphs import graph_function

if TYPE_CHECKING:
    from . import Module


def _admit(value: Any, to: Any) -> Any:
    """An argument with its NumPy arrays copied to the model's device."""
    if isinstance(value, np.ndarray):
        return tensor.from_numpy(value, to)
    if type(value) in (list, tuple):
        return type(value)(_admit(one, to) for one in value)
    if type(value) is dict:
        return {key: _admit(one, to) for key, one in value.items()}
    return value


def _holds_array(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_holds_array, value))
    if type(value) is dict:
        return any(map(_holds_array, value.values()))
    return isinstance(value, np.ndarray)


def _wrap(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method that takes NumPy arrays and runs in the module's mode."""

    @wraps(function)
    def entry(self: Module, *args: Any, **kwargs: Any) -> Any:
        training = self._mode(name)
        if self._graphs is not None and not kwargs and training is self.training:
            made = self._graphs.call(function, self, args)
            if made is not MISS:
                return made
        return call(self, training, args, kwargs)

    def call(self: Module, training: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method in a given mode."""
        if self._graphs is not None:
            graphed = graph_function(self, function, name, training)
            if graphed is not None:
                made = graphed(function, self, training, args, kwargs)
                if self._has_mode and self.training is training and name == self._step():
                    self._graphs.shortcut = graphed.shortcut()
                return made
        if _holds_array(args) or _holds_array(kwargs):
            args, kwargs = _admit(args, self.device), _admit(kwargs, self.device)
        if now.running:
            return function(self, *args, **kwargs)
        with autograd._training_scope(training):
            return function(self, *args, **kwargs)

    entry.call = call  # type: ignore[attr-defined]
    return entry


def wrap_forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `forward`."""
    return _wrap(function, "forward")


def wrap_train_one_batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `train_one_batch`; the layers called within it belong to the module."""

    @wraps(function)
    def step(self: Module, *args: Any, **kwargs: Any) -> Any:
        with_place(self)
        now.running.append(self)
        try:
            return function(self, *args, **kwargs)
        finally:
            now.running.pop()

    return _wrap(step, "train_one_batch")


def wrap_deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a method `loss` or `optim`, as old programs define them."""
    entry = _wrap(function, function.__name__)

    @wraps(function)
    def old(self: Module, *args: Any, **kwargs: Any) -> Any:
        message = f"{type(self).__name__}.{function.__name__}: define train_one_batch instead"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return entry(self, *args, **kwargs)

    return old
