"""What a call asks of the engine: its operations and views in order, none of which is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..autograd.mode import handled_by
from ..tensor import Tensor
from .plan import infer
from .trees import flatten


class Event(NamedTuple):
    """An operation or a view, and its tensors."""

    #: The operation's or the view's name, and its attributes, those of a view under "of".
    name: str
    attrs: dict[str, Any]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    #: Whether the outputs existed before, and are written into; "new" if nothing had been written
    #: to them yet.
    writes: bool | str
    #: What made the outputs, which `perform` does with other tensors.
    what: Any = None


def perform(what: Any, inputs: Sequence[Tensor]) -> Any:
    """Runs an operation or another function of tensors, or takes a view, given by its name and
    argument."""
    return getattr(inputs[0], what[0])(what[1]) if isinstance(what, tuple) else what(*inputs)


def place(t: Tensor) -> tuple[Any, ...]:
    """Which elements of which memory a tensor is."""
    return t.block_id, t.offset, t.shape, t.strides, t.dtype.name


class Operations:
    """The events of one call, and the tensors that it was given and has returned."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.arguments: list[Tensor] = []
        self.results: list[Tensor] = []
        #: By place, the arrays that became tensors.
        self.constants: dict[Any, np.ndarray] = {}
        #: Keeps them alive, so that no other tensor gets their place.
        self._held: list[Tensor] = []

    def note(
        self, what: Any, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...] | None = None
    ) -> Any:
        """Runs an operation or a view, and notes it."""
        is_op = isinstance(what, _core.Op)
        if not is_op and what[0] == "from_numpy":
            return self._constant(*what[1])
        attrs = what.attrs if is_op else {"of": what[1]}
        name = attrs.pop("op") if is_op else what[0]
        writes: bool | str = outputs is not None
        if outputs is not None:
            is_new = not any(t.is_allocated for t in outputs)
            writes = "new" if is_new else True
            made = what.into(list(inputs), list(outputs))
        else:
            made = perform(what, inputs)
        found = outputs or (made if isinstance(made, tuple) else (made,))
        if found != (None,):  # None stands for a view that strides cannot express
            self.events.append(Event(name, attrs, tuple(inputs), found, writes, what))
        return made

    def note_whole(
        self,
        name: str,
        attrs: dict[str, Any],
        inputs: tuple[Tensor, ...],
        run: Callable[..., tuple[Tensor, ...]],
    ) -> tuple[Tensor, ...]:
        """Notes a function of tensors as one event, whatever it asks of the engine."""
        with handled_by(None):
            made = run(*inputs)
        self.events.append(Event(name, attrs, inputs, made, False, run))
        return made

    def _constant(self, array: np.ndarray, device: _core.Device) -> Tensor:
        made = _core.from_numpy(array, device)
        self.constants[place(made)] = np.array(array)
        self._held.append(made)
        return made


def observed(call: Callable[[Operations], Sequence[Tensor]], given: Sequence[Tensor]) -> Operations:
    """The events of a call that runs, is told where they are noted, and begins with `given`."""
    made = Operations()
    made.arguments = list(given)
    with handled_by(made.note):
        made.results = list(call(made))
    return made


def operations(function: Callable[..., Any], root: Any, args: Sequence[Any]) -> Operations:
    """The events of `function(root, *args)` in evaluation, which leaves the model as it was except
    that it has its parameters. Arguments may be Placeholders.

    Raises:
        GraphError: the call reads a value.
    """
    made = Operations()

    def call(module: Any, *given: Any) -> None:
        flatten(given, made.arguments)
        with handled_by(made.note):
            result = function(module, *given)
        flatten(result, made.results)

    infer(call, root, False, tuple(args), {}, op="graph")
    return made
