"""Wrappers around the methods of a layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

from .. import autograd
from ..errors import FOREIGN, is_own, place, shortened
from ..errors import reraise as name_it
from ..record import UserCodeLock, begin_layer, is_recording, making_state, resume
from ..tensor import Tensor
from . import collect, tree
from .arrays import admitted
from .node import now
from .tree import Tree

if TYPE_CHECKING:
    from .base import Layer

#: Lets one thread at a time make a layer's tensors.
_initialising = UserCodeLock("initialize")


def wrap_initialize(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `initialize`: it gets tensors in place of arrays, runs unrecorded, and what it makes is
    named state. If it fails, what it made is dropped, so that nothing is loaded into tensors that
    the next one replaces."""

    @wraps(function)
    def initialize(self: Layer, *args: Any, **kwargs: Any) -> None:
        node = self._layer_node
        attributes, states = dict(self.__dict__), set(node.states)
        node.initializing += 1
        try:
            args, kwargs = admitted(self, function, args, kwargs)
            with autograd.no_grad(), making_state():
                function(self, *args, **kwargs)
                if node.initializing == 1:  # not called by a subclass's `initialize`
                    collect.settle(self)
                    self._initialized = True
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(attributes)
            node.states = states
            reraise(self, function, args, kwargs, error)
        finally:
            node.initializing -= 1
        if is_recording():
            node.made = dict(self.__dict__)

    return initialize


def wrap_forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `forward`: gives the layer its place in the model, copies arrays into tensors, and runs
    `initialize` before the first call."""

    @wraps(function)
    def forward(self: Layer, *args: Any, **kwargs: Any) -> Any:
        first, running = not self._initialized, now.running
        if first or running:
            with_place(self)
        for x in args:
            if type(x) is not Tensor:
                args, kwargs = admitted(self, function, args, kwargs)
                break
        else:
            if kwargs:
                args, kwargs = admitted(self, function, args, kwargs)
        if first:
            with _initialising:
                if not self._initialized:  # by another thread meanwhile
                    self.initialize(*args, **kwargs)
                    self._initialized = True
        node = self._layer_node
        recorded = is_recording()
        before = begin_layer(node.path) if recorded else 0
        running.append(self)
        try:
            result = function(self, *args, **kwargs)
        except Exception as error:
            reraise(self, function, args, kwargs, error)
        finally:
            running.pop()
            if recorded:
                resume(before)
        if first:
            node.output_shape = getattr(result, "shape", None)
        for probe in node.taps:
            probe.see(result)
        return result

    return forward


def reraise(
    layer: Layer, function: Callable[..., Any], args: Any, kwargs: Any, error: BaseException
) -> NoReturn:
    """Raises an error again; for a layer of this package, one that names the layer. Errors of this
    package begin with the path of the innermost layer that they come from."""
    home = function.__module__ or ""  # None for code that exec runs
    if home.startswith(__package__) and isinstance(error, FOREIGN):
        try:
            name_it(type(layer).__name__, function, (layer, *args), kwargs, error)
        except Exception as named:
            error = named
    if isinstance(error, Exception) and is_own(error):
        place(error, layer._layer_node.path)
        raise shortened(error) from error.__cause__
    raise error


def wrap(
    cls: type[Layer], name: str, wrapper: Callable[..., Any], plain: Callable[..., Any] | None
) -> None:
    """Wraps a method that a class defines, or inherits unwrapped from one that is not a layer."""
    method = getattr(cls, name, None)
    done = getattr(method, "_wrappers", ())
    if method is plain or (wrapper in done and name not in cls.__dict__):
        return
    wrapped = wrapper(method)
    wrapped._wrappers = (*done, wrapper)
    setattr(cls, name, wrapped)


def with_place(layer: Layer) -> None:
    """Gives a layer its place in the model that calls it; outside of models, just its names."""
    running = now.running
    if running:
        if running[0]._layer_node.token not in layer._layer_node.roots:
            tree.join_model(layer, running)
    elif not layer._initialized:
        Tree(tree.root_of(layer))
