"""Module: a layer that can be trained, evaluated, saved and summarised."""

from __future__ import annotations

from math import prod
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, overload

from .. import autograd, device
from ..layer.base import Layer
from ..layer.calls import wrap
from ..layer.check import flag
from ..layer.collect import below, held, own_params, states_of
from ..layer.node import now
from ..notices import in_notebooks, warn_user
from ..record import MISS, Taps
from ..tensor import Tensor
from ..tensor.placing import located, placed
from . import modes
from .checkpoints import Checkpoints, Resumed
from .fitting import Fitted
from .history import History
from .saving import Saved
from .steps import Stepped
from .taps import Tappable
from .wrapping import (
    ModuleType,
    wrap_deprecated,
    wrap_forward,
    wrap_train_one_batch,
    wrapped_method,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..device import Device
    from ..layer.typed import Forwards, Given, P, R, Trains

__all__ = [
    "Checkpoints",
    "History",
    "Module",
    "Resumed",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class Module(Stepped, Saved, Fitted, Tappable, metaclass=ModuleType):
    """A model. A subclass creates its layers in `__init__`, computes in `forward` and, if it is to
    be trained by calling it, updates its parameters in `train_one_batch`.

    Arguments may be tensors or NumPy arrays, which are copied to the model's device. Layers create
    their parameters at the first call. Within a call `autograd.training` is the module's mode for
    the calling thread: training, until `train` or `eval` changes it. `forward` called as a plain
    method follows `autograd.training` until the first `train` or `eval`, and later where the
    program has assigned it since. A module called inside another one takes that one's mode unless
    it was given its own; one in evaluation passes no gradient on.
    """

    _unwatched = Layer._unwatched | {"_graphs", "_taps", "_device", "_amp", "_inputs"}
    _own = Layer._own | {"_graphs", "_taps"}
    #: Whether a module of the class has been called in training.
    _asked: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._asked = False
        wrap(cls, "forward", wrap_forward, Layer.forward)
        wrap(cls, "train_one_batch", wrap_train_one_batch, None)
        is_old = not hasattr(cls, "train_one_batch")
        for name in ("loss", "optim") if is_old else ():
            if isinstance(cls.__dict__.get(name), FunctionType):
                setattr(cls, name, wrap_deprecated(cls.__dict__[name]))

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """As `Layer`; a new module is in training."""
        module = super().__new__(cls, *args, **kwargs)
        module.__dict__.update(
            training=True,
            _has_mode=False,
            _device=None,
            _graphs=None,
            _taps=Taps(),
            _amp=None,
            _inputs=None,
        )
        return module

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, wrapped_method(self, name, value))

    @overload
    def __call__(self: Trains[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self: Forwards[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    # The same for arrays, which stand for the tensors that the methods declare.
    @overload
    def __call__(self: Trains[[Any], R], x: Given, /) -> R: ...
    @overload
    def __call__(self: Forwards[[Any], R], x: Given, /) -> R: ...
    @overload
    def __call__(self: Trains[[Any, Any], R], x: Given, y: Given, /) -> R: ...
    @overload
    def __call__(self: Forwards[[Any, Any], R], x: Given, y: Given, /) -> R: ...
    @overload
    def __call__(self: Trains[[Any, Any, Any], R], x: Given, y: Given, z: Given, /) -> R: ...
    @overload
    def __call__(self: Forwards[[Any, Any, Any], R], x: Given, y: Given, z: Given, /) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`train_one_batch` in training where the class defines it, else `forward`; also `forward`
        in a step of the module itself, so that `train_one_batch` may call `self(x)`."""
        if self._graphs is not None and not kwargs:
            made = self._graphs.call(None, self, args)
            if made is not MISS:
                return made
        mode = self._mode_of("__call__")
        if mode and not self._asked and not now.running:
            self._warn_of_forward()
        if self._graphs is not None and not now.running:
            method = getattr(self, self._default_method())
            entry = getattr(method, "__func__", None)  # None for what is no method
            call = getattr(entry, "call", None)
            if call is not None and call.of is entry:  # else a wrapper has taken it over
                return call(self, mode, args, kwargs)
        if now.running and autograd.training and not mode:
            self._warn_of_cut(args)
        is_inside = any(one is self for one in now.running)  # a step that calls `self(x)`
        train = getattr(self, "train_one_batch", None) if mode and not is_inside else None
        with autograd._training_scope(mode):
            return (train or self.forward)(*args, **kwargs)

    def _mode_of(self, entry: str) -> bool:
        """The mode of a call of `entry`."""
        if not self._has_mode:
            inherits = entry != "train_one_batch" and (entry == "forward" or now.running)
            return autograd.training if inherits else self.training
        if entry == "forward" and modes.is_assigned():
            return autograd.training
        return self.training

    def _warn_of_forward(self) -> None:
        """Warns where a call in training only runs `forward`, and nothing can go backward from its
        result: without `train()`, `autograd.training` is off outside of the call."""
        type(self)._asked = True
        if hasattr(self, "train_one_batch") or (self._graphs is None and autograd.training):
            return
        name = type(self).__name__
        message = (
            f"{name}: called in training without a train_one_batch, so this runs forward alone"
        )
        want = "train_one_batch(self, x, y), which computes the loss and calls the optimizer"
        warn_user(f"{message}; define {want}, or call eval() or train() first", UserWarning)

    def _warn_of_cut(self, args: tuple[Any, ...]) -> None:
        if any(isinstance(x, Tensor) and x.requires_grad and x._creator is not None for x in args):
            name = type(self).__name__
            message = f"{name}: is in evaluation mode, so no gradient flows through it"
            warn_user(message, UserWarning)

    def train(self, mode: bool = True) -> Self:
        """Switches this module, those below it and `autograd.training` to training or evaluation;
        returns the module."""
        mode = flag(mode, "train: mode")
        for layer in below(self):
            if isinstance(layer, Module):
                layer.training, layer._has_mode = mode, True
        modes.tell(mode)
        return self

    def eval(self) -> Self:
        """`train(False)`."""
        return self.train(False)

    @property
    def device(self) -> device.Device:
        """Where the model is: the device that it was given, else that of its parameters, else the
        default device."""
        if self._device is not None:
            return self._device
        for one in states_of(self, set()):
            return one.device
        return device.get_default_device()

    @device.setter
    def device(self, to: device.Device) -> None:
        self._device = _a_device("device", to)

    def to_device(self, to: Device | str) -> None:
        """Moves what the model holds, in place, to a device or one by its name ("cpu", "cuda"):
        parameters, states, and tensors in other attributes, containers, caches of keys and values
        and objects of the program, but for those that share memory or pass a gradient on.

        Raises:
            TypeError: `to` is not a device.
            DeviceError: there is no such device.
        """
        found = _a_device("to_device", to)
        for one in held(self):
            one.to_device(found)
        for layer in below(self):
            if isinstance(layer, Module):
                layer._device = found

    _repr_html_ = in_notebooks

    def summary(self) -> str:
        """A table of the layers: name, type, the shape of the first result, parameters; with
        their totals."""
        return _table(self)


def _a_device(op: str, value: Any) -> device.Device:
    if value is None:
        raise TypeError(f"{op}: got None, want a Device, 'cpu' or 'cuda'")
    placed(op, value)
    return located(value)


#: The columns of a summary.
_HEAD = ("name", "type", "output shape", "parameters")


def _table(module: Layer) -> str:
    """One row per layer; values that are unknown before its first call are shown as a dash."""
    rows, total, frozen, counted = [], 0, 0, set()
    for layer in below(module):
        own = {id(t): t for t in own_params(layer).values() if id(t) not in counted}
        counted.update(own)
        count = sum(prod(t.shape) for t in own.values())
        total += count
        frozen += sum(prod(t.shape) for t in own.values() if not t.requires_grad)
        unknown = "-" if layer._makes_tensors() else f"{count:,}"
        rows.append(
            (layer._layer_node.path or "(model)", type(layer).__name__, _shape(layer), unknown)
        )
    lines = _align([_HEAD, *rows])
    lines.insert(1, "-" * max(map(len, lines)))
    more = f", {frozen:,} of them frozen" if frozen else ""
    lines += [lines[1], f"{total:,} parameters{more}"]
    return "\n".join(lines)


def _shape(layer: Any) -> str:
    shape = layer._layer_node.output_shape
    return "-" if shape is None else str(tuple(shape))


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    *left, last = widths
    return [
        "  ".join(
            [*(cell.ljust(w) for cell, w in zip(row[:-1], left, strict=True)), row[-1].rjust(last)]
        )
        for row in rows
    ]
