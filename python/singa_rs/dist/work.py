"""An exchange that goes on while the program does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _core
from ..tensor import Tensor
from .buckets import parts
from .faults import DistError
from .group import current


class Work:
    """An exchange that was started. Its tensors must not be used before `wait`."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        given: Sequence[Tensor],
        to: Sequence[Tensor],
        result: Callable[[], Any],
    ) -> None:
        """Starts it.

        Args:
            spec: what is exchanged, as the engine reads it.
            given: contiguous tensors of one dtype, whose elements are given one after the other.
            to: what the received elements go into, one after the other.
            result: makes what `wait` returns.
        """
        self._name, self._to, self._result = spec["op"], list(to), result
        self._is_done = False
        self._started: _core.Started | None = None
        core = current().core
        if core is not None:
            self._started = core.start(dict(spec), list(given), None if given or not to else to[0])
            return
        _core.check_exchange(dict(spec), list(given))
        _hand_over(given, to)

    def wait(self) -> Any:
        """Waits until the exchange is done; returns what the function without `async_op` does.

        Raises:
            DistError: another process has failed or not come within the timeout, or has come with
                another operation; it was waited for before.
            ValueError: only the start or only the end is in a recorded step.
        """
        if self._is_done:
            raise DistError(f"wait: this {self._name} was waited for before")
        try:
            if self._started is not None:
                self._started.finish(self._to)
        except DistError:
            self._is_done = True
            raise
        # After other errors it can still be waited for.
        self._is_done, self._started, self._to = True, None, []
        return self._result()


def _hand_over(given: Sequence[Tensor], to: Sequence[Tensor]) -> None:
    """What a process that is alone exchanges: it receives what it gives."""
    if len(given) == 1 and len(to) != 1:
        given = parts(_flat(given[0]), [one.shape for one in to])
    elif len(to) == 1 and len(given) != 1:
        to = parts(_flat(to[0]), [one.shape for one in given])
    for source, target in zip(given, to, strict=True):
        if source is not target:
            target.copy_from(source.view_reshape(target.shape))


def _flat(t: Tensor) -> Tensor:
    return t.view_reshape((t.numel,))
