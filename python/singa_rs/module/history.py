"""What `Module.fit` returns, and the means of a step's figures that it is made of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from .. import shown as texts
from ..tensor import Tensor
from ..tensor.numbers import as_number

#: After how many batches the figures that steps have returned are read. Reading waits for the step.
_READ_EVERY = 64


class History(Sequence[dict[str, float]]):
    """The figures of each epoch of `Module.fit`.

    `history[-1]` is the last epoch's, a dictionary, `history["val_loss"]` the list of one figure
    over all epochs. Figures are `loss` (or what the step's dictionary names), the metrics, and
    those of the validation with `val_` before their names. `stopped` says why training ended before
    its last epoch, None if it did not.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.stopped: str | None = None

    @overload
    def __getitem__(self, key: str) -> list[float]: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: int) -> dict[str, float]: ...
    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.rows[key]
        if not any(key in row for row in self.rows):
            known = sorted({name for row in self.rows for name in row})
            raise KeyError(f"history: got {key!r}, want one of {', '.join(known) or 'none yet'}")
        return [row.get(key, math.nan) for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(self.rows)

    def state_dict(self) -> dict[str, Any]:
        """The rows."""
        return {"rows": self.rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the rows that `state_dict` told."""
        self.rows = [dict(row) for row in state["rows"]]

    def __repr__(self) -> str:
        lines = [f"epoch {number}: {shown(row)}" for number, row in enumerate(self.rows, 1)]
        return "\n".join([*lines, f"stopped: {self.stopped}"] if self.stopped else lines)


def shown(row: Mapping[str, Any]) -> str:
    """Figures on a line, short texts for those that are no numbers."""
    return "  ".join(f"{name} {_text(value)}" for name, value in row.items())


def _text(value: Any) -> str:
    found = as_figure(value)
    return texts.shown(value) if found is None else f"{found:.4g}"


def as_figure(value: Any) -> float | None:
    """A figure as a number; None if it is none, as a metric that is a matrix."""
    is_single = isinstance(value, Tensor) and value.numel == 1
    found = as_number(value.to_numpy().reshape(()) if is_single else value)
    return None if found is None else float(found)


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The figures that are numbers."""
    found = {name: as_figure(value) for name, value in row.items()}
    return {name: value for name, value in found.items() if value is not None}


def parts_of(op: str, made: Any) -> tuple[Any, dict[str, Any]]:
    """The outputs, None if there are none, and the figures that a step returned.

    Raises:
        TypeError: neither a loss, outputs and a loss, nor a dictionary of figures.
    """
    if _is_figure(made):
        return None, {"loss": made}
    if isinstance(made, (tuple, list)) and len(made) == 2 and _is_figure(made[1]):
        return made[0], {"loss": made[1]}
    if isinstance(made, Mapping):
        figures = {name: one for name, one in made.items() if name != "outputs"}
        if figures and all(map(_is_figure, figures.values())):
            return made.get("outputs"), figures
    got = type(made).__name__
    if isinstance(made, (tuple, list)):
        got = f"{got} of {', '.join(type(one).__name__ for one in made)}"
    raise TypeError(
        f"{op}: got {got}, want a loss of one element, a pair (outputs, loss), or a dictionary of "
        "losses by name and, if you like, 'outputs'"
    )


def _is_figure(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.numel == 1
    return isinstance(value, (float, int)) and not isinstance(value, bool)


class Means:
    """The means of figures over the rows of batches, read a few batches at a time."""

    def __init__(self, place: str, refuses: bool, skips: bool = False) -> None:
        """`refuses` NaN and infinities; `skips` leaves them out of the means."""
        self._place, self._refuses, self._skips = place, refuses, skips
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._sums: dict[str, list[Any]] = {}
        self._read = 0
        #: How many rows were added.
        self.rows = 0

    def add(self, rows: int, figures: dict[str, Any]) -> None:
        """Adds a batch of so many rows.

        Raises:
            FloatingPointError: a figure of one of the last batches is NaN or infinite.
        """
        self._waiting.append((rows, figures))
        self.rows += rows
        if len(self._waiting) >= _READ_EVERY:
            self._drain()

    def compute(self) -> dict[str, tuple[float, int]]:
        """The means by name, NaN for one that was left out each time, and of how many rows."""
        self._drain()
        return {
            name: (total / rows if rows else math.nan, rows)
            for name, (total, rows) in self._sums.items()
        }

    def _drain(self) -> None:
        waiting, self._waiting = self._waiting, []
        for rows, figures in waiting:
            self._read += 1
            for name, one in figures.items():
                value = float(one.item() if isinstance(one, Tensor) else one)
                is_finite = math.isfinite(value)
                if self._refuses and not is_finite:
                    raise FloatingPointError(
                        f"{self._place}, batch {self._read}: {name} is {value}; "
                        "compile(check_finite=True) names the operation that made it"
                    )
                total = self._sums.setdefault(name, [0.0, 0])
                if is_finite or not self._skips:
                    total[0] += value * rows
                    total[1] += rows
