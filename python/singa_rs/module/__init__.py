"""Module: a layer that can be trained, evaluated, saved and summarised."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import prod
from os import PathLike
from types import FunctionType
from typing import Any, ClassVar

from .. import autograd, device, files
from ..errors import CheckpointError, DTypeError
from ..layer.base import Layer
from ..layer.calls import wrap
from ..layer.check import flag, mapping
from ..layer.collect import below, match, own_params, uninitialised
from ..layer.node import now
from ..layer.tree import join
from ..record import MISS, Taps
from ..tensor import Tensor
from .graphs import wrap_deprecated, wrap_forward, wrap_train_one_batch
from .steps import Saved
from .taps import Tappable


class Module(Saved, Tappable):
    """A model. A subclass creates its layers in `__init__`, computes in `forward` and, if it is to
    be trained by calling it, updates its parameters in `train_one_batch`.

    Arguments may be tensors or NumPy arrays, which are copied to the model's device. Layers create
    their parameters at the first call. Within a call `autograd.training` is the module's mode for
    the calling thread: training, until `train` or `eval` changes it. `forward` called as a plain
    method follows `autograd.training` until the first `train` or `eval`, and later where the
    program has assigned it since. A module called inside another one takes that one's mode unless
    it was given its own; one in evaluation passes no gradient on.
    """

    _unwatched = Layer._unwatched | {"_graphs", "_taps", "_device", "_amp"}
    _own = Layer._own | {"_graphs", "_taps"}
    #: The value that `train` or `eval` of any module last assigned to `autograd.training`.
    _told: ClassVar[bool | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        wrap(cls, "forward", wrap_forward, Layer.forward)
        wrap(cls, "train_one_batch", wrap_train_one_batch, None)
        for name in ("loss", "optim"):
            if isinstance(cls.__dict__.get(name), FunctionType):
                setattr(cls, name, wrap_deprecated(cls.__dict__[name]))

    def __new__(cls, *args: Any, **kwargs: Any) -> Module:
        """As `Layer`; a new module is in training."""
        module = super().__new__(cls, *args, **kwargs)
        module.__dict__.update(
            training=True, _has_mode=False, _device=None, _graphs=None, _taps=Taps(), _amp=None
        )
        return module  # type: ignore[return-value]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`train_one_batch` in training where the class defines it, else `forward`; also `forward`
        in a step of the module itself, so that `train_one_batch` may call `self(x)`."""
        if self._graphs is not None and not kwargs:
            made = self._graphs.call(None, self, args)
            if made is not MISS:
                return made
        mode = self._mode("__call__")
        if self._graphs is not None and not now.running:
            method = getattr(self, self._step())
            call = getattr(getattr(method, "__func__", None), "call", None)
            if call is not None:  # None for a method assigned to the instance
                return call(self, mode, args, kwargs)
        if now.running and autograd.training and not mode:
            self._warn_of_cut(args)
        is_inside = any(one is self for one in now.running)  # a step that calls `self(x)`
        train = getattr(self, "train_one_batch", None) if mode and not is_inside else None
        with autograd._training_scope(mode):
            return (train or self.forward)(*args, **kwargs)

    def _mode(self, entry: str) -> bool:
        """The mode of a call of `entry`."""
        if not self._has_mode:
            inherits = entry != "train_one_batch" and (entry == "forward" or now.running)
            return autograd.training if inherits else self.training
        if entry == "forward" and autograd.training != Module._told:
            return autograd.training
        return self.training

    def _warn_of_cut(self, args: tuple[Any, ...]) -> None:
        if any(isinstance(x, Tensor) and x.requires_grad and not x.is_dummy() for x in args):
            name = type(self).__name__
            message = f"{name}: is in evaluation mode, so no gradient flows through it"
            warnings.warn(message, stacklevel=3)

    def train(self, mode: bool = True) -> Module:
        """Switches this module, those below it and `autograd.training` to training or evaluation;
        returns the module."""
        mode = flag(mode, "train: mode")
        for layer in below(self):
            if isinstance(layer, Module):
                layer.training, layer._has_mode = mode, True
        Module._told = autograd.training = mode
        return self

    def eval(self) -> Module:
        """`train(False)`."""
        return self.train(False)

    @property
    def device(self) -> device.Device:
        """Where the model is: the device that it was given, else that of its parameters, else the
        default device."""
        if self._device is None:
            for one in self.get_states().values():
                return one.device
        return self._device or device.get_default_device()

    @device.setter
    def device(self, to: device.Device) -> None:
        self._device = _a_device("device", to)

    def to_device(self, to: device.Device) -> None:
        """Moves every parameter and state, in place.

        Raises:
            TypeError: `to` is not a device.
        """
        to = _a_device("to_device", to)
        for one in self.get_states().values():
            one.to_device(to)
        self._device = to

    def summary(self) -> str:
        """A table of the layers: name, type, the shape of the first result, parameters; with
        their totals."""
        return _table(self)

    def save_states(
        self, fpath: str | PathLike[str], aux_states: Mapping[str, Tensor] | None = None
    ) -> None:
        """Writes all parameters and states, along with `aux_states`, in SINGA's format. The path
        is used as given; an existing file is replaced atomically, and its permissions are kept.
        If the path is a symbolic link, the link's target is replaced.

        Raises:
            CheckpointError: no layer has parameters yet; an auxiliary name is also the model's,
                or the file cannot store a name; the path is a directory, a pipe or a device.
            TypeError: `fpath` is not a path; an auxiliary name is not a str, or its state is not
                a Tensor.
            OSError: the file cannot be written.
        """
        from . import archive

        path = files.path_of("save_states", fpath)
        found = self.get_states()
        if not found and (waiting := uninitialised(self)):
            names = ", ".join(sorted({type(layer).__name__ for layer in waiting}))
            raise CheckpointError(
                f"save_states: {names}: parameters are created by the first call; call the model"
            )
        auxiliary = {} if aux_states is None else mapping(aux_states, "save_states: aux_states")
        inside = join(self._node.path, "")
        states = {name.removeprefix(inside): one for name, one in found.items()}
        archive.write(path, states, auxiliary)

    def load_states(self, fpath: str | PathLike[str]) -> dict[str, Tensor]:
        """Copies a file's states into those of the same names, and returns its auxiliary states.
        Layers that have no parameters yet take theirs when they create them. Names that only the
        file or only the model has are listed in one warning.

        The sizes that the file declares are checked before anything is unpacked: shapes against
        the model's, and the total against what the file can hold (deflate unpacks a byte to at
        most 1,032) and against the available memory.

        Raises:
            CheckpointError: the file is missing, truncated or damaged, or declares more than it
                holds or than fits into memory; none of its names is the model's, a shape differs,
                or a value does not fit the state's dtype. Nothing has been written.
        """
        from . import archive

        path = files.path_of("load_states", fpath)
        states = self.get_states()

        def admit(declared: Mapping[str, archive.Declared]) -> None:
            try:
                names = match(declared, states, self._node.path)
            except ValueError as error:
                raise CheckpointError(f"load_states: {path}: {error}") from error
            _check(path, declared, {name: states[full] for name, full in names.items()})
            unused, missing = set(declared) - set(names), set(states) - set(names.values())
            if not names and not uninitialised(self):
                _compare(path, unused, missing, True)

        arrays, auxiliary = archive.read(path, admit)
        names = match(arrays, states, self._node.path)
        waiting = {name: array for name, array in arrays.items() if name not in names}
        is_whole = not uninitialised(self)
        if is_whole:
            _compare(path, set(waiting), set(states) - set(names.values()), False)
        if names:
            try:
                self.set_states({**waiting, **{full: arrays[one] for one, full in names.items()}})
            except DTypeError as error:
                raise _Unfit(f"load_states: {path}: {error}") from error
        if not is_whole:
            self._node.pending = waiting
        return auxiliary


def _a_device(op: str, value: Any) -> device.Device:
    if not isinstance(value, device.Device):
        raise TypeError(f"{op}: got {value!r}, want a Device")
    return value


class _Unfit(CheckpointError, DTypeError):
    """Values in a file that the model's dtypes cannot hold."""


def _check(path: str, declared: Mapping[str, Any], states: dict[str, Tensor]) -> None:
    for name, state in states.items():
        if declared[name].shape != state.shape:
            raise CheckpointError(
                f"load_states: {path}: {name!r} has shape {declared[name].shape}, "
                f"the model's {state.shape}"
            )


def _compare(path: str, unused: set[str], missing: set[str], fails: bool) -> None:
    """One warning, or an error if `fails`, with the names that differ."""
    lists = [
        f"{what}: {', '.join(sorted(names))}"
        for what, names in (("only in the file", unused), ("only in the model", missing))
        if names
    ]
    if lists and fails:
        raise CheckpointError(f"load_states: {path}: no state of the model; {'; '.join(lists)}")
    if lists:
        warnings.warn(f"load_states: {path}: {'; '.join(lists)}", stacklevel=3)


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
        rows.append((layer._node.path or "(model)", type(layer).__name__, _shape(layer), unknown))
    lines = _align([_HEAD, *rows])
    lines.insert(1, "-" * max(map(len, lines)))
    more = f", {frozen:,} of them frozen" if frozen else ""
    lines += [lines[1], f"{total:,} parameters{more}"]
    return "\n".join(lines)


def _shape(layer: Any) -> str:
    shape = layer._node.output_shape
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
