"""Tracing a call of a model or a function for export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import record
from ..autograd import ops
from ..autograd.mode import handled_by
from ..module import Module
from ..record.call import Call
from ..record.plan import dry_run
from ..record.tracing import Traced
from ..record.trees import flatten
from ..tensor import Tensor
from .values import to_array


class _Function(Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        object.__setattr__(self, "call", function)

    def forward(self, *args: Any) -> Any:
        """What the function returns."""
        return self.call(*args)


def as_module(model: Any) -> Module:
    """A module, also of a function."""
    return model if isinstance(model, Module) else _Function(model)


def make_parameters(root: Module, args: Sequence[Any]) -> None:
    """Lets the layers make their parameters, those of the model and those that its code reaches in
    another way, such as by a closure: no trace may show how parameters begin."""
    record.infer(type(root).forward, root, False, tuple(args), {}, op="export")


class _Noted(record.Operations):
    """The events of a call, with copies of the tensors that it writes arrays into: that is no
    operation, so that no event tells what they hold."""

    def __init__(self) -> None:
        super().__init__()
        #: By block, how often it had been written when an event was last seen to use it.
        self._versions: dict[Any, int] = {}
        #: Parameters that the call gives their first values.
        self._begun: list[Tensor] = []
        self.found: list[Tensor] = []
        self.copies: list[Tensor] = []

    def begin(self, given: Any) -> None:
        """Notes the arguments."""
        flatten(given, self.arguments)
        self._know(self.arguments)

    def end(self, result: Any) -> None:
        """Notes the results.

        Raises:
            ValueError: a layer has made its parameters in the call.
        """
        for one in self._begun:
            raise ValueError(
                f"export: a layer makes a parameter, of shape {one.shape}, in the call that is "
                "traced, so that a file would draw it again in each run; call the function once "
                "before, and make its layers outside of it"
            )
        flatten(result, self.results)
        self._look(self.results)

    def note(
        self, what: Any, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...] | None = None
    ) -> Any:
        """As in traces for other uses."""
        self._begun += (one for one in outputs or () if one._stores_grad and not one.is_allocated)
        is_view = isinstance(what, tuple) and what[0] != "from_numpy"
        # What a view was taken of may get its first value after that.
        self._look([one for one in inputs if one.version or not is_view])
        made = super().note(what, inputs, outputs)
        if not is_view:
            self._know(outputs or (made if isinstance(made, tuple) else (made,)))
        return made

    def note_whole(
        self, name: str, attrs: dict[str, Any], inputs: tuple[Tensor, ...], run: Callable[..., Any]
    ) -> tuple[Tensor, ...]:
        """As in traces for other uses."""
        self._look(inputs)
        made = super().note_whole(name, attrs, inputs, run)
        self._know(made)
        return made

    def _know(self, tensors: Sequence[Tensor]) -> None:
        self._versions.update((one.block_id, one.version) for one in tensors)

    def _look(self, inputs: Sequence[Tensor]) -> None:
        """Copies inputs that nothing which was noted has made, and that have no value yet."""
        for one in inputs:
            known = self._versions.get(one.block_id)
            if known is not None and known != one.version:
                raise NotImplementedError(
                    "export: copy_from_numpy: writes an array into a tensor that has a value; "
                    "want t[...] = array, or a new tensor"
                )
            if known is None and one.is_recorded:
                self._know([one])
                self.found.append(one)
                self.copies.append(ops.copy(one))


def traced(
    function: Callable[..., Any], root: Module, args: Sequence[Any], in_large: bool = False
) -> record.Operations:
    """The operations of `function(root, *args)` in evaluation, of which none is run, and the arrays
    that it makes tensors of. Arguments may be Placeholders. `in_large` takes for one operation what
    ONNX has as one, and the engine as several with constants.

    Raises:
        GraphError: the call reads a value.
    """
    made = _Noted()

    def call(module: Module, *given: Any) -> list[Tensor]:
        made.begin(given)
        with handled_by(made.note, made.note_whole if in_large else None):
            result = function(module, *given)
        made.end(result)
        return made.copies

    arrays = dry_run(Call.look, lambda one: _arrays(one, made), call, root, False, tuple(args), {})
    for tensor, array in zip(made.found, arrays, strict=True):
        made.constants[record.place(tensor)] = array
    return made


def _arrays(recorded: Traced, made: _Noted) -> list[np.ndarray]:
    """What is in the copies, which need nothing of the call.

    Raises:
        NotImplementedError: they depend on its arguments, by something that no event told.
    """
    if not made.copies:
        return []
    graph = recorded.recording.graph()
    zeros, ones = ([_filled(one, n) for one in made.arguments] for n in (0, 1))
    found, others = ([to_array(one) for one in graph.run(given)] for given in (zeros, ones))
    if any(a.tobytes() != b.tobytes() for a, b in zip(found, others, strict=True)):
        raise NotImplementedError("export: got a value that depends on an argument by operations "
                                  "that a trace does not see")  # fmt: skip
    return found


def _filled(like: Tensor, number: int) -> Tensor:
    """A tensor of this number, or of zeros, which are indices of whatever is not empty."""
    return ops.full(like.shape, number if like.dtype.is_float else 0, like)
