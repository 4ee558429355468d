"""SINGA 1.x's metrics: those of `singa_rs.metric`, whose `forward` returns a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import metric
from ..metric import Metric
from ..tensor import Tensor, from_numpy

__all__ = ["Accuracy", "Metric", "Precision", "Recall"]


def __dir__() -> list[str]:
    return sorted(__all__)


class _Told(Metric):
    """A metric whose numbers are in a tensor."""

    def forward(self, x: Any, y: Any) -> Tensor:  # type: ignore[override]
        """One number for each row of predictions `x`, given the truth `y`: (N,), float32."""
        return from_numpy(np.asarray(super().forward(x, y), np.float32))

    def evaluate(self, x: Any, y: Any) -> float:
        """The mean over all rows.

        Raises:
            ValueError: there are none.
        """
        values = self.forward(x, y).to_numpy()
        if not values.size:
            raise ValueError(f"{type(self).__name__}: got no rows")
        return float(values.mean())


class Accuracy(_Told, metric.Accuracy):
    """1 where the class, an index from (N,), is among the `top_k` largest of (N, C), else 0."""


class Precision(_Told, metric.Precision):
    """The share of true classes among the `top_k` largest of (N, C), with the truth 0 or 1."""


class Recall(_Told, metric.Recall):
    """The share of the true classes that are among the `top_k` largest; 0 where none is true."""
