"""Who requested a recorded operation: a layer, backward or an update. Has no effect outside of
recordings."""

from __future__ import annotations

from types import TracebackType

from .._core import begin_layer, begin_step, begin_update, resume
from ..tensor import Tensor

__all__ = ["begin_layer", "begin_step", "resume", "updating"]


class updating:
    """A context in which operations belong to an update: of a parameter, and so to its layer, or
    to that of no layer."""

    __slots__ = ("_before", "_layer")

    def __init__(self, param: Tensor | None = None) -> None:
        self._layer = "" if param is None else param.name.rpartition(".")[0]

    def __enter__(self) -> None:
        self._before = begin_update(self._layer)

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        resume(self._before)
