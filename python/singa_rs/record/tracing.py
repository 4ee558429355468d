"""Tracing: one recording of a Python function, and what the function returned."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .. import _core
from ..autograd.mode import Nodes, mode, set_nodes
from ..autograd.order import cut
from ..tensor import Tensor
from .effects import Undo
from .results import Results

_P = ParamSpec("_P")
_T = TypeVar("_T")


def is_recording() -> bool:
    """Whether the calling thread records."""
    if mode.nodes is None:
        return False
    if _core.recording():
        return True
    set_nodes(None)  # an interrupt arrived before the end of a recording was noted
    return False


class Traced(NamedTuple):
    """A recording that has ended, and what the recorded function returned."""

    recording: _core.Recording
    results: Results


def uncollected(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """A function that runs without Python's cyclic garbage collector. A recording makes thousands
    of objects, which would trigger scans of the whole heap, although nearly all of them are freed
    at the end."""

    # A context manager that decorates would have a frame of Python's own library, which operations
    # that no code of the program calls would name as the program's line.
    @wraps(function)
    def paused(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()

    return paused


@contextmanager
def noting(nodes: Nodes) -> Iterator[None]:
    """A context that collects the nodes of the tape, and cuts them at its end."""
    set_nodes(nodes)
    try:
        yield
    finally:
        set_nodes(None)
        cut(nodes)


def trace(
    device: _core.Device,
    arguments: Sequence[Tensor],
    call: Callable[[], Any],
    undo: Undo | None = None,
    held: Mapping[str, Tensor] | None = None,
    lists: Sequence[Any] = (),
) -> Traced:
    """Records a call without running its operations.

    Args:
        device: where its operations will run.
        arguments: the tensors that each run gets as inputs.
        call: the function, without arguments.
        undo: where the call's changes are noted, if they may be undone.
        held: tensors in attributes of the model. A result that is one of them represents the
            attribute, as a run finds it.
        lists: the lists and dictionaries among the arguments of the function.

    Raises:
        GraphError: this thread is already recording, or the call reads a value.
    """
    journal, nodes = (undo.journal, undo.nodes) if undo else (_core.Journal(), Nodes())
    recording = _core.Recording(device, arguments, journal)
    try:
        with noting(nodes):
            results = Results(call(), arguments, held or {}, lists)
            nodes.settle()
            recording.end(results.tensors)
    except BaseException:
        recording.abort()
        raise
    results.note_cut()
    results.let_go()
    recording.seal()
    return Traced(recording, results)
