"""Each metric as a function of one batch: outputs, then targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from .classes import ConfusionMatrix, F1Score, PrecisionScore, RecallScore, TopKAccuracy
from .ranking import ROCAUC
from .regression import MeanAbsoluteError, MeanSquaredError, R2Score
from .rows import Accuracy
from .running import Running


def _once(metric: Running, outputs: Any, targets: Any) -> Any:
    metric.update(outputs, targets)
    return metric.compute()


def accuracy(outputs: Any, targets: Any, threshold: float | None = None) -> float:
    """The share of right classes, as `Accuracy.update` takes them."""
    return _once(Accuracy(threshold=threshold), outputs, targets)


def top_k_accuracy(outputs: Any, targets: Any, k: int = 5) -> float:
    """The share of rows whose class is among the `k` best, as `TopKAccuracy`."""
    return _once(TopKAccuracy(k), outputs, targets)


def precision(
    outputs: Any, targets: Any, average: str = "binary", threshold: float | None = None
) -> float:
    """The share of right ones among those predicted, as `PrecisionScore`."""
    return _once(PrecisionScore(average, threshold), outputs, targets)


def recall(
    outputs: Any, targets: Any, average: str = "binary", threshold: float | None = None
) -> float:
    """The share of right ones among those that there are, as `RecallScore`."""
    return _once(RecallScore(average, threshold), outputs, targets)


def f1(
    outputs: Any, targets: Any, average: str = "binary", threshold: float | None = None
) -> float:
    """The harmonic mean of precision and recall, as `F1Score`."""
    return _once(F1Score(average, threshold), outputs, targets)


def roc_auc(outputs: Any, targets: Any) -> float:
    """The area under the ROC curve, as `ROCAUC`."""
    return _once(ROCAUC(), outputs, targets)


def confusion_matrix(
    outputs: Any, targets: Any, classes: int | None = None, threshold: float | None = None
) -> np.ndarray:
    """How often each class (row) was taken for which (column), as `ConfusionMatrix`."""
    return _once(ConfusionMatrix(classes, threshold), outputs, targets)


def mean_absolute_error(outputs: Any, targets: Any) -> float:
    """The mean of absolute differences, as `MeanAbsoluteError`."""
    return _once(MeanAbsoluteError(), outputs, targets)


def mean_squared_error(outputs: Any, targets: Any) -> float:
    """The mean of squared differences, as `MeanSquaredError`."""
    return _once(MeanSquaredError(), outputs, targets)


def r2(outputs: Any, targets: Any) -> float:
    """The share of variance that is explained, as `R2Score`."""
    return _once(R2Score(), outputs, targets)
