"""A checkpoint of a model and of what else a program needs to go on from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ... import files
from ...dist.units import held
from ...errors import CheckpointError, GraphError
from ...notices import warn_user
from ...tensor import Placeholder, Tensor
from . import bounded_json, contents, onnx_writing, pair, safetensors_file
from .fit import Fit, Rules
from .stored import damage
from .tree import Decoder, Encoder, Pair, pairs

if TYPE_CHECKING:
    import onnx

    from .. import Module

#: What the state file's metadata calls the nested states, and what is in them: the program's, and
#: the generators of the model's device.
_TREE = "singa_rs.state"
_STATE, _RANDOM = "state", "random"


def write(
    op: str,
    path: str,
    model: Module,
    states: Mapping[str, Tensor],
    state: Mapping[str, Any],
    writes: bool = True,
) -> None:
    """Writes a checkpoint of a model, whose states are given by name; or, where it is another
    process that `writes`, only has the objects in `state` tell their states.

    Raises:
        CheckpointError, TypeError, ValueError, OSError: an existing checkpoint is untouched.
    """
    for name, one in states.items():
        if isinstance(one, Placeholder):
            raise GraphError(f"{op}: {name!r} is an unfilled {one!r}")
    with held(states.values(), keeps=writes):
        for one in states.values():
            # An initial value is drawn when it is read, so generators wait.
            if not one.is_allocated:
                one.to_numpy()
        encoder = Encoder(op)
        text = json.dumps(encoder.encode({_STATE: state, _RANDOM: model.device}))
        if not writes:
            return
        proto = _model(op, model, states)
        try:
            bounded_json.check(text.encode())
        except ValueError as error:
            raise CheckpointError(f"{op}: {path}: state: {error}") from error

        def write_state(to: str, metadata: dict[str, str]) -> None:
            safetensors_file.write(to, encoder.arrays, {**metadata, _TREE: text})

        pair.write(op, path, proto, states, write_state)


def _model(op: str, model: Module, states: Mapping[str, Tensor]) -> onnx.ModelProto:
    """The model with its states; where its forward has no form in ONNX, or its inputs are not
    known, the states alone, of which a warning tells."""
    if model._inputs is None:
        reason = "it was not called with tensors yet, so its inputs are not known"
    else:
        try:
            return exported(model, states)
        except Exception as error:  # of the program, of tracing it, or of ONNX's checker
            reason = str(error)
    kind = type(model).__name__
    message = f"{op}: {kind}: the file has the parameters, but not the network: {reason}"
    warn_user(message, UserWarning)
    return onnx_writing.tensors_only()


def exported(model: Module, states: Mapping[str, Tensor]) -> onnx.ModelProto:
    """The model for the inputs that it was compiled with, and for batches of any size if it takes
    them."""
    from ... import sonnx
    from ...sonnx.exporting import default_names

    inputs = [Placeholder(shape, model.device, dtype) for shape, dtype in model._inputs]
    names = default_names("x", len(inputs), states)
    batch = {name: {0: "batch"} for name, x in zip(names, inputs, strict=True) if x.rank}
    try:
        return sonnx.model_proto(model, inputs, dynamic=batch, states=states)
    except (ValueError, NotImplementedError):  # inputs without a common batch, or of one size only
        return sonnx.model_proto(model, inputs, states=states)


def part(op: str, path: str, name: str) -> Any:
    """What a checkpoint's program saved under one name.

    Raises:
        CheckpointError: the state file is missing or damaged.
    """
    where = path + pair.STATE
    found = safetensors_file.read(op, where)
    with damage(op, where, "the state file"):
        tree = bounded_json.parse(found.metadata[_TREE].encode())
        return Decoder(found.tensors).decode(tree[_STATE][name])


class Checkpoint:
    """A checkpoint that fits a model."""

    def __init__(self, op: str, path: str, model: Module, rules: Rules) -> None:
        """Reads it, and checks that it fits; nothing is written yet.

        Raises:
            CheckpointError: it is missing or damaged, of two saves, or does not fit.
        """
        found = pair.find(op, path)
        self._op, self._path, self._model, self._state = op, path, model, found.state
        self._contents = contents.of(op, found.path, found.model.tensors)
        self._fit = Fit(op, found.path, model, self._contents.shapes, rules)

    def told(self, objects: Mapping[str, Any]) -> str:
        """The differences, with what objects will not be given."""
        names = ", ".join(self._fit.skipped) if objects else ""
        more = f"; moments and averages of {names} are left out, too" if names else ""
        return self._fit.differences + more

    def restore_model(self) -> dict[str, Any]:
        """Writes into the model alone; returns {}."""
        self._fit.write(self._contents.read(())[0])
        return {}

    def restore(self, objects: Mapping[str, Any]) -> dict[str, Any]:
        """Writes into the objects, the model and its device's generators; returns the states.

        Raises:
            CheckpointError: there is no state file, or it is damaged; it has no states for one of
                the objects, or the object refuses them.
        """
        if self._state is None:
            raise files.Missing(f"{self._op}: {self._path}{pair.STATE}: no such file")
        where = f"{self._op}: {self._path}{pair.STATE}"
        decoder = Decoder(self._state.tensors)
        with damage(self._op, self._path + pair.STATE, "the state file"):
            tree = bounded_json.parse(self._state.metadata[_TREE].encode())
            state = decoder.decode(tree)[_STATE]
        arrays = self._contents.read(())[0]
        try:
            *places, random = pairs({_STATE: objects, _RANDOM: self._model.device}, tree)
        except ValueError as error:
            raise CheckpointError(f"{where}: {error}") from error
        device = self._model.device
        before = device.get_rng_state()
        try:
            for one in (random, *places):
                _put(where, one, decoder, self._fit.skipped)
            self._fit.write(arrays)
        except BaseException:
            device.set_rng_state(before)
            raise
        _put(where, random, decoder)  # again, since tensors that are written may draw first
        for look in filter(None, map(_look_in, places)):
            look(self._model)
        return state


def _look_in(one: Pair) -> Any:
    """What tells an optimizer whose parameters its states are of; None for other objects."""
    return getattr(getattr(one.put, "__self__", None), "_look_in", None)


def _fitting(found: Any, skipped: Mapping[str, Tensor], kind: str = "") -> Any:
    """An optimizer's states without those of parameters that keep their values, with which
    averages, and the values at the beginning of a round, start."""
    if not isinstance(found, dict):
        return found
    kept = {k: one for k, one in found.items() if k not in skipped or not isinstance(one, Tensor)}
    own = skipped if kind in ("average", "anchor") else {}
    made = {k: _fitting(one, skipped, k) for k, one in kept.items()}
    return {**made, **{k: own[k] for k in found.keys() - kept.keys() if k in own}}


def _put(
    where: str, one: Pair, decoder: Decoder, skipped: Mapping[str, Tensor] | None = None
) -> None:
    """Gives an object its states; an optimizer none of parameters that were left out."""
    try:
        found = decoder.decode(one.found)
        one.put(_fitting(found, skipped) if skipped and _look_in(one) else found)
    except Exception as error:
        raise CheckpointError(f"{where}: {one.place}: {error}") from error
