"""What `Module.fit` shows: a bar on a terminal if tqdm is installed, else a line per epoch."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from ..tensor import Tensor
from .history import shown

#: Seconds between two looks at a step's figures, which wait for the step.
_INTERVAL = 0.2


class Progress:
    """Shows how far an epoch has come; nothing unless `is_shown`.

    That is on the error output, or in a notebook, which shows it as errors, on the other one.
    """

    def __init__(self, is_shown: bool, epochs: int) -> None:
        self._is_shown, self._epochs, self._bar = is_shown, epochs, None
        self._start = self._next = 0.0

    def begin(self, epoch: int, batches: int | None) -> None:
        """Begins an epoch of so many batches, if that is known."""
        self._start = time.perf_counter()
        bar = _tqdm() if self._is_shown and sys.stderr.isatty() else None
        if bar is not None:
            self._bar = bar(total=batches, desc=f"epoch {epoch}/{self._epochs}", unit="batch")

    def batch(self, figures: Mapping[str, Any]) -> None:
        """Counts a batch; now and then reads what its step returned."""
        if self._bar is None:
            return
        self._bar.update()
        if (now := time.perf_counter()) >= self._next:
            self._next = now + _INTERVAL
            read = {name: one.item() if isinstance(one, Tensor) else one
                    for name, one in figures.items()}  # fmt: skip
            self._bar.set_postfix_str(shown(read), refresh=False)

    def end(self, epoch: int, row: Mapping[str, float]) -> None:
        """Ends an epoch, whose figures these are."""
        if self._bar is not None:
            self._bar.set_postfix_str(shown(row))
        elif self._is_shown:
            seconds = time.perf_counter() - self._start
            self.say(f"epoch {epoch}/{self._epochs}  {shown(row)}  {seconds:.1f} s")
        self.close()

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._is_shown:
            is_notebook = type(sys.stderr).__module__.startswith("ipykernel")
            print(text, file=sys.stdout if is_notebook else sys.stderr, flush=True)

    def close(self) -> None:
        """Leaves the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _tqdm() -> Any:
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        return None
    return tqdm
