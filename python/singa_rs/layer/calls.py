"""What happens around a call of a layer's methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from .. import autograd
from ..record import PatientLock, is_recording, making_state
from . import collect, tree
from .node import now
from .tree import Tree

if TYPE_CHECKING:
    from .base import Layer

#: One thread at a time makes a layer's tensors.
_initialising = PatientLock("initialize")


def wrap_initialize(function: Callable[..., Any]) -> Callable[..., Any]:
    """`initialize`: unrecorded, what it makes is state; names what it makes."""

    @wraps(function)
    def initialize(self: Layer, *args: Any, **kwargs: Any) -> None:
        node = self._node
        node.initializing += 1
        try:
            with autograd.no_grad(), making_state():
                function(self, *args, **kwargs)
                if node.initializing == 1:  # not called by a subclass's
                    self._initialized = True
                    collect.settle(self)
        finally:
            node.initializing -= 1
        if is_recording():
            node.made = dict(self.__dict__)

    return initialize


def wrap_forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """`forward`: `initialize` before the first one; the layer has its place in the model."""

    @wraps(function)
    def forward(self: Layer, *args: Any, **kwargs: Any) -> Any:
        first = not self._initialized
        with_place(self)
        if first:
            with _initialising:
                if not self._initialized:  # by another thread meanwhile
                    self.initialize(*args, **kwargs)
                    self._initialized = True
        running = now.running
        running.append(self)
        try:
            result = function(self, *args, **kwargs)
        finally:
            running.pop()
        node = self._node
        if first:
            node.output_shape = getattr(result, "shape", None)
        for probe in node.taps:
            probe.see(result)
        return result

    return forward


def wrap(
    cls: type[Layer], name: str, wrapper: Callable[..., Any], plain: Callable[..., Any] | None
) -> None:
    """Wraps a method that a class defines, or inherits unwrapped from a class that is no layer."""
    method = getattr(cls, name, None)
    done = getattr(method, "_wrappers", ())
    if method is plain or (wrapper in done and name not in cls.__dict__):
        return
    wrapped = wrapper(method)
    wrapped._wrappers = (*done, wrapper)
    setattr(cls, name, wrapped)


def with_place(layer: Layer) -> None:
    """Gives a layer that is called its place in the model that calls it, or else its names."""
    running = now.running
    if running:
        if running[0]._node.token not in layer._node.roots:
            tree.join_model(layer, running)
    elif not layer._initialized:
        Tree(tree.root_of(layer))
