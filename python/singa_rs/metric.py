"""Metrics of predictions, computed on the host from tensors or arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import ShapeError
from .layer.check import count
from .tensor import Tensor
from .tensor.numbers import as_array


def _array(values: Any, metric: Metric) -> np.ndarray:
    name = type(metric).__name__
    try:
        return values.to_numpy() if isinstance(values, Tensor) else as_array(values, name)
    except ValueError as error:
        raise TypeError(f"{name}: got {values!r:.80}, want an array") from error


class Metric:
    """A number for each sample, and their mean."""

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

    def __init__(self, top_k: int = 1) -> None:
        self.top_k = count(top_k, "Accuracy: top_k")

    def forward(self, x: Any, y: Any) -> np.ndarray:
        """(N, C) and (N,) or (N, 1) -> (N,)."""
        best, truth = self._best(_array(x, self), self.top_k), _array(y, self)
        if truth.size != len(best):
            raise ShapeError(f"Accuracy: got labels {truth.shape}, want ({len(best)},)")
        return (best == truth.reshape(-1, 1)).any(axis=1).astype(np.float32)


class Precision(Metric):
    """The share of true classes among the `top_k` largest of (N, C), with the truth 0 or 1."""

    def __init__(self, top_k: int) -> None:
        self.top_k = count(top_k, "Precision: top_k")

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
