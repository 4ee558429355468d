"""What all metrics over several batches share: the three methods, and how arguments are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import elsewhere
from ..errors import DTypeError, ShapeError
from ..refusals import Hinted
from ..shown import described
from ..tensor import Tensor
from ..tensor.numbers import as_array


class Running(Hinted):
    """A metric over all batches since it was made or reset."""

    if not TYPE_CHECKING:  # so that checkers refuse what metrics do not have

        def __getattr__(self, name: str) -> Any:
            raise elsewhere.lacking(self, name, elsewhere.of_metric(name))

    def __repr__(self) -> str:
        """Its settings but for the defaults."""
        return described(self)

    def update(self, outputs: Any, targets: Any) -> None:
        """Adds a batch: what the model made, and what is right.

        A batch that is refused leaves the metric as it was.
        """
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def compute(self) -> Any:
        """The metric of all rows since the last `reset`.

        Raises:
            ValueError: there are none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no compute")

    def reset(self) -> None:
        """Forgets all rows."""
        raise NotImplementedError(f"{type(self).__name__} has no reset")


def array_of(values: Any, op: str) -> np.ndarray:
    """A tensor or what NumPy makes of a value, as an array of numbers.

    Raises:
        TypeError: no array.
        DTypeError: not of numbers.
    """
    try:
        return values.to_numpy() if isinstance(values, Tensor) else as_array(values, op)
    except ValueError as error:
        raise TypeError(f"{op}: got {values!r:.80}, want an array") from error


def column(values: np.ndarray) -> np.ndarray:
    """(N, 1) as (N,); anything else as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def without_nan(values: np.ndarray, op: str) -> np.ndarray:
    """Scores that can be ordered, those of dtypes that NumPy does not know in float32.

    Raises:
        ValueError: one is NaN.
    """
    if values.dtype.kind not in "biu" and np.isnan(values).any():
        raise ValueError(f"{op}: got outputs with NaN, want numbers")
    return values.astype(np.float32) if values.dtype.kind == "V" else values


def labels(values: np.ndarray, op: str, what: str = "targets") -> np.ndarray:
    """Classes as int64, of bools or integers.

    Raises:
        DTypeError: floats.
        ValueError: one is below 0, or 2**63 or more.
    """
    if values.dtype.kind not in "biu":
        raise DTypeError(f"{op}: got {what} of {values.dtype}, want integers: classes from 0")
    if values.size and int(values.min()) < 0:
        raise ValueError(f"{op}: got {what} with class {values.min()}, want classes from 0")
    if values.size and int(values.max()) >= 2**63:
        raise ValueError(f"{op}: got {what} with class {values.max()}, which int64 does not hold")
    return values.astype(np.int64)


def predicted(outputs: Any, targets: Any, op: str, threshold: float | None) -> Any:
    """The classes that outputs mean, the right ones, both (N,), and how many classes the outputs
    have scores for, 0 if they are classes.

    Args:
        outputs: classes in integers, of the shape of the targets; scores of floats, (N, C, ...)
            for targets (N, ...), of which the first largest counts; or one score for each row,
            (N,) or (N, 1), which means class 1 above `threshold`.
        targets: classes in integers, (N, ...) or (N, 1).
        op: who asks.
        threshold: 0 for logits, 0.5 for probabilities; needed for one score a row, and only there.

    Raises:
        ShapeError, DTypeError, ValueError: anything else; scores with NaN; classes beyond the
            scores'.
    """
    made, right, width = _read(outputs, targets, op, threshold)
    within(right, width, op)
    return made, right, width


def within(right: np.ndarray, width: int, op: str) -> None:
    """Rejects classes beyond `width` scores, unless there are none.

    Raises:
        ValueError: a class beyond the scores'.
    """
    if width and right.size and right.max() >= width:
        raise ValueError(f"{op}: got class {right.max()}, want 0 to {width - 1} as scored")


def _read(outputs: Any, targets: Any, op: str, threshold: float | None) -> Any:
    """The results of `predicted`, whose classes are not yet compared with the scores."""
    right = column(labels(array_of(targets, op), op))
    made = array_of(outputs, op)
    if made.dtype.kind in "biu" and column(made).shape == right.shape:
        _needs_no(threshold, op, "classes")
        return labels(column(made), op, "outputs").ravel(), right.ravel(), 0
    made = without_nan(made, op)
    if made.ndim == right.ndim + 1 and made.shape[1] > 1:
        _needs_no(threshold, op, "a score for each class")
        _same_rows(made.shape[:1] + made.shape[2:], right.shape, made, op)
        return made.argmax(axis=1).ravel(), right.ravel(), made.shape[1]
    made = column(made)
    _same_rows(made.shape, right.shape, made, op)
    if threshold is None:
        raise ValueError(
            f"{op}: got one score for each row, want a threshold: 0 for logits, 0.5 for "
            "probabilities"
        )
    return (made > threshold).astype(np.int64).ravel(), right.ravel(), 2


def _needs_no(threshold: float | None, op: str, what: str) -> None:
    if threshold is not None:
        raise ValueError(f"{op}: got threshold {threshold} for {what}, want one score for each row")


def _same_rows(got: tuple[int, ...], want: tuple[int, ...], made: np.ndarray, op: str) -> None:
    if got != want:
        raise ShapeError(
            f"{op}: got outputs {made.shape} and targets {want}, want outputs {want} or "
            f"{(*want[:1], 'C', *want[1:])}".replace("'", "")
        )
