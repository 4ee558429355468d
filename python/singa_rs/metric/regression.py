"""Metrics of numbers: how far they are off."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from .running import Running, array_of


def _pair(outputs: Any, targets: Any, op: str) -> tuple[np.ndarray, np.ndarray]:
    """Both in float64, (N, K).

    Raises:
        ShapeError: shapes differ, beyond (N,) and (N, 1); they have no rows.
    """
    made, right = array_of(outputs, op), array_of(targets, op)
    shapes = {one.shape[:-1] if one.ndim == 2 and one.shape[1] == 1 else one.shape
              for one in (made, right)}  # fmt: skip
    if len(shapes) > 1 or () in shapes:
        got = f"{op}: got outputs {made.shape} and targets {right.shape}"
        raise ShapeError(f"{got}, want one shape with rows")
    size = len(made), max(1, int(np.prod(made.shape[1:])))
    return made.astype(np.float64).reshape(size), right.astype(np.float64).reshape(size)


class _Mean(Running):
    """The mean of a number for each element."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets all rows."""
        self._sum, self._count = 0.0, 0

    def update(self, outputs: Any, targets: Any) -> None:
        """Adds arrays of one shape (N, ...); (N,) and (N, 1) fit, too.

        Raises:
            ShapeError: the shapes differ; nothing is broadcast.
        """
        made, right = _pair(outputs, targets, type(self).__name__)
        self._sum += float(self._of(made - right).sum())
        self._count += made.size

    def _of(self, error: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def compute(self) -> float:
        """The mean over all elements; NaN if one is."""
        if not self._count:
            raise ValueError(f"{type(self).__name__}: got no rows")
        return self._sum / self._count


class MeanAbsoluteError(_Mean):
    """The mean of absolute differences (scikit-learn mean_absolute_error)."""

    def _of(self, error: np.ndarray) -> np.ndarray:
        return abs(error)


class MeanSquaredError(_Mean):
    """The mean of squared differences (scikit-learn mean_squared_error)."""

    def _of(self, error: np.ndarray) -> np.ndarray:
        return error * error


class R2Score(Running):
    """The share of the targets' variance that outputs explain, the mean over columns (scikit-learn
    r2_score). Targets that do not vary are explained wholly, 1, or not at all, 0."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets all rows."""
        self._count, self._parts = 0, None

    def update(self, outputs: Any, targets: Any) -> None:
        """Adds arrays of one shape (N, ...); (N,) and (N, 1) fit, too.

        Raises:
            ShapeError: the shapes differ, or those of one row from batch to batch.
        """
        made, right = _pair(outputs, targets, "R2Score")
        if not len(made):
            return
        first, mean = right[0], right.mean(0)
        new = [((made - right) ** 2).sum(0), mean, ((right - mean) ** 2).sum(0), first,
               (right == first).all(0)]  # fmt: skip
        if self._parts is None:
            self._count, self._parts = len(right), new
            return
        if new[0].shape != self._parts[0].shape:
            got = f"R2Score: got {new[0].size} columns"
            raise ShapeError(f"{got} after {self._parts[0].size}")
        self._merge(new, len(right))

    def _merge(self, new: list[np.ndarray], rows: int) -> None:
        """Adds sums of squares around means (Chan et al., 1979)."""
        errors, mean, squares, first, is_same = self._parts
        total, apart = self._count + rows, new[1] - mean
        squares = squares + new[2] + apart**2 * (self._count * rows / total)
        is_same = is_same & new[4] & (first == new[3])
        self._parts = [errors + new[0], mean + apart * (rows / total), squares, first, is_same]
        self._count = total

    def compute(self) -> float:
        """A number up to 1; NaN if an element is.

        Raises:
            ValueError: there are fewer than two rows.
        """
        if self._count < 2:
            raise ValueError(f"R2Score: got {self._count} rows, want at least 2")
        errors, _, squares, _, is_same = self._parts
        is_same = is_same | (squares == 0)
        safe = np.where(is_same, 1.0, squares)
        whole = np.where(errors == 0, 1.0, np.where(np.isnan(errors), errors, 0.0))
        return float(np.where(is_same, whole, 1 - errors / safe).mean())
