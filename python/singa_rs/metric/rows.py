"""Metrics that have a number for each row, and their mean (SINGA metric)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..layer.check import count, number
from .running import Running, array_of, labels, predicted, within, without_nan

__all__ = [
    "Accuracy",
    "Metric",
    "Precision",
    "Recall",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def _array(values: Any, metric: Metric) -> np.ndarray:
    return array_of(values, type(metric).__name__)


class Metric(Running):
    """A number for each sample, and their mean. A subclass has `forward`; over several batches
    `compute` is the mean over the rows of all."""

    _sum, _rows = 0.0, 0

    def reset(self) -> None:
        """Forgets all rows."""
        self._sum, self._rows = 0.0, 0

    def update(self, outputs: Any, targets: Any) -> None:
        """Adds the rows of `forward(outputs, targets)`."""
        self._add(_array(self.forward(outputs, targets), self))

    def _add(self, values: np.ndarray) -> None:
        self._sum += float(values.sum(dtype=np.float64))
        self._rows += values.size

    def compute(self) -> float:
        """The mean over all rows.

        Raises:
            ValueError: there are none.
        """
        if not self._rows:
            raise ValueError(f"{type(self).__name__}: got no rows")
        return self._sum / self._rows

    def forward(self, x: Any, y: Any) -> np.ndarray:
        """One number for each row of predictions `x`, given the truth `y`."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def evaluate(self, x: Any, y: Any) -> float:
        """The mean over all rows.

        Raises:
            ValueError: there are none.
        """
        values = self.forward(x, y)
        if not values.size:
            raise ValueError(f"{type(self).__name__}: got no rows")
        return float(values.mean())

    def _best(self, x: np.ndarray, top_k: int) -> np.ndarray:
        """The columns of the `top_k` largest values of each row. Equal values keep their order, and
        NaN counts as smallest."""
        if x.ndim != 2 or x.shape[1] < top_k:
            raise ShapeError(f"{type(self).__name__}: got {x.shape}, want (N, {top_k} or more)")
        x = x if x.dtype.kind in "biu" else np.where(np.isnan(x), -np.inf, x)
        # Negation wraps, so the row is sorted reversed, which keeps the order of equal values.
        from_back = np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
        return (x.shape[1] - 1 - from_back)[:, :top_k]


class Accuracy(Metric):
    """1 where the class, an index from (N,), is among the `top_k` largest of (N, C), else 0."""

    def __init__(self, top_k: int = 1, threshold: float | None = None) -> None:
        """`threshold` is for `update` with one score for each row: 0 for logits, 0.5 for
        probabilities."""
        self.top_k = count(top_k, "Accuracy: top_k")
        self.threshold = None if threshold is None else number(threshold, "Accuracy: threshold")

    def update(self, outputs: Any, targets: Any) -> None:
        """Adds a batch. With `top_k` 1 it may be scores (N, C, ...) and classes (N, ...), classes
        and classes of one shape, or one score for each row, (N,) or (N, 1), which means class 1
        above `threshold`. The first of equal scores counts.

        Raises:
            ShapeError, DTypeError: shapes that do not fit, targets that are no integers.
            ValueError: NaN, classes below 0 or beyond the scores', a missing threshold.
        """
        if self.top_k > 1:
            scores = without_nan(_array(outputs, self), "Accuracy")
            super().update(scores, labels(_array(targets, self), "Accuracy"))
            return
        made, right, _ = predicted(outputs, targets, type(self).__name__, self.threshold)
        self._add(made == right)

    def forward(self, x: Any, y: Any) -> np.ndarray:
        """(N, C) and (N,) or (N, 1) -> (N,)."""
        scores, truth = _array(x, self), _array(y, self)
        best = self._best(scores, self.top_k)
        if truth.size != len(best):
            raise ShapeError(f"Accuracy: got labels {truth.shape}, want ({len(best)},)")
        if not np.array_equal(truth, np.trunc(truth)):
            raise ValueError("Accuracy: got labels with fractions, want classes from 0")
        if truth.size and (least := truth.min()) < 0:
            raise ValueError(f"Accuracy: got labels with class {least:g}, want classes from 0")
        within(truth, scores.shape[1], "Accuracy")
        return (best == truth.reshape(-1, 1)).any(axis=1).astype(np.float32)


class Precision(Metric):
    """The share of true classes among the `top_k` largest of (N, C), with the truth 0 or 1."""

    def __init__(self, top_k: int) -> None:
        self.top_k = count(top_k, f"{type(self).__name__}: top_k")

    def forward(self, x: Any, y: Any) -> np.ndarray:
        """(N, C) and (N, C) -> (N,)."""
        return self._hits(_array(x, self), _array(y, self)).sum(axis=1) / np.float32(self.top_k)

    def _hits(self, x: np.ndarray, truth: np.ndarray) -> np.ndarray:
        if truth.shape != x.shape:
            raise ShapeError(f"{type(self).__name__}: got {truth.shape}, want {x.shape}")
        best = self._best(x, self.top_k)
        return (np.take_along_axis(truth, best, axis=1) != 0).astype(np.float32)


class Recall(Precision):
    """The share of the true classes that are among the `top_k` largest; 0 where none is true."""

    def forward(self, x: Any, y: Any) -> np.ndarray:
        """(N, C) and (N, C) -> (N,)."""
        truth = _array(y, self)
        return self._hits(_array(x, self), truth).sum(axis=1) / np.maximum(
            1, (truth != 0).sum(axis=1)
        )
