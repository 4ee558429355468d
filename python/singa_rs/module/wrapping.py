"""The wrappers around the methods of a module that run as graph functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import autograd, record
from ..autograd.precision import precision_scope
from ..errors import shortened
from ..layer import calls
from ..layer.arrays import admit, holds_array
from ..layer.base import _LayerType
from ..layer.calls import with_place
from ..layer.node import now
from ..record import MISS, GraphFunction
from ..refusals import hinted
from ..tensor import Tensor
from .arguments import dtype_of
from .precision import precision_of

if TYPE_CHECKING:
    from . import Module


def graph_function(
    module: Any, function: Callable[..., Any], name: str, training: bool
) -> GraphFunction | None:
    """The graph function that handles a call of a module's method; None if the method itself runs:
    uncompiled, within another module's call or a recording, or `forward` in training."""
    graphs = module._graphs
    if graphs is None or now.running or (training and name == "forward"):
        return None
    return None if record.is_recording() else graphs.of(function, module, name)


def note_inputs(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Notes shapes and dtypes of what `forward` takes, if these are tensors or arrays alone."""
    if not kwargs and all(isinstance(x, (Tensor, np.ndarray)) for x in args):
        found = [(x.shape, dtype_of(x)) for x in args]
        module.__dict__["_inputs"] = found


def _wrap(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method that takes NumPy arrays and runs in the module's mode."""

    @wraps(function)
    def entry(self: Module, *args: Any, **kwargs: Any) -> Any:
        training = self._mode_of(name)
        if self._graphs is not None and not kwargs and training is self.training:
            made = self._graphs.call(function, self, args)
            if made is not MISS:
                return made
        return call(self, training, args, kwargs)

    def call(self: Module, training: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method in a given mode."""
        if self._inputs is None and name == "forward":
            note_inputs(self, args, kwargs)
        if self._graphs is not None:
            graphed = graph_function(self, function, name, training)
            if graphed is not None:
                self._graphs.fast_path = None  # it may hold what the program has let go
                try:
                    made = graphed(function, self, training, args, kwargs)
                except Exception as error:
                    raise shortened(error) from error.__cause__
                if self._has_mode and self.training is training and name == self._default_method():
                    self._graphs.fast_path = graphed.fast_path()
                return made
        if holds_array(args) or holds_array(kwargs):
            args, kwargs = admit((args, kwargs), self.device)
        if now.running:
            return function(self, *args, **kwargs)
        with autograd._training_scope(training):
            return function(self, *args, **kwargs)

    entry.call, call.of = call, entry  # type: ignore[attr-defined]
    return entry


def _precise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that computes in the module's precision."""

    @wraps(function)
    def precise(self: Module, *args: Any, **kwargs: Any) -> Any:
        if self._amp is None:
            return function(self, *args, **kwargs)
        with precision_scope(precision_of(self)):
            return function(self, *args, **kwargs)

    return precise


def wrap_forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `forward`."""
    return _wrap(_precise(function), "forward")


def wrap_train_one_batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `train_one_batch`; the layers called within it belong to the module."""
    function = hinted(function, "these, as a call in training is a step, or eval() first")

    @wraps(function)
    def step(self: Module, *args: Any, **kwargs: Any) -> Any:
        with_place(self)
        depth, before = len(now.running), 0
        try:  # an interrupt may come between any two of these lines
            now.running.append(self)
            record.begin_step()
            before = record.begin_layer(self._layer_node.path)
            return function(self, *args, **kwargs)
        finally:
            del now.running[depth:]
            record.resume(before)

    return _wrap(_precise(step), "train_one_batch")


def wrap_deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a method `loss` or `optim`, as old programs define them in the place of
    `train_one_batch`."""
    entry = _wrap(function, function.__name__)

    @wraps(function)
    def old(self: Module, *args: Any, **kwargs: Any) -> Any:
        message = f"{type(self).__name__}.{function.__name__}: define train_one_batch instead"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return entry(self, *args, **kwargs)

    return old


#: What wraps a method that is assigned after the class statement, in this order.
_WRAPPERS = {
    "forward": (calls.wrap_forward, wrap_forward),
    "train_one_batch": (wrap_train_one_batch,),
}


def _is_bare(name: str, value: Any) -> bool:
    """Whether it is a function that a module is to call as a step, and that nothing wraps."""
    is_step = name in _WRAPPERS and type(value) is FunctionType
    return is_step and not hasattr(value, "_wrappers")


class ModuleType(_LayerType):
    """The class of classes of modules: wraps methods that are assigned to these, too."""

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if _is_bare(name, value):
            for wrapper in _WRAPPERS[name]:
                calls.wrap(cls, name, wrapper, None)


def wrapped_method(module: Any, name: str, value: Any) -> Any:
    """What is assigned to an attribute of a module; for a method of that module, one that runs as
    those of its class do."""
    if type(value) is not MethodType or value.__self__ is not module:
        return value
    function: Any = value.__func__
    if not _is_bare(name, function):
        return value
    for wrapper in _WRAPPERS[name]:
        function = wrapper(function)
    function._wrappers = _WRAPPERS[name]
    return MethodType(function, module)
