"""Metrics of predictions, computed on the host from tensors or arrays.

Each class adds up batches by `update(outputs, targets)`, answers by `compute()` and begins again
after `reset()`; `Module.fit` takes them as `metrics=`. Each function is one such object for one
call. The order is always outputs, then targets, which is not scikit-learn's.
"""

from .. import elsewhere, errors
from .classes import ConfusionMatrix, F1Score, PrecisionScore, RecallScore, TopKAccuracy
from .functions import (
    accuracy,
    confusion_matrix,
    f1,
    mean_absolute_error,
    mean_squared_error,
    precision,
    r2,
    recall,
    roc_auc,
    top_k_accuracy,
)
from .ranking import ROCAUC
from .regression import MeanAbsoluteError, MeanSquaredError, R2Score
from .rows import Accuracy, Metric, Precision, Recall
from .running import Running

__all__ = [
    "Accuracy",
    "ConfusionMatrix",
    "F1Score",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "Precision",
    "PrecisionScore",
    "R2Score",
    "ROCAUC",
    "Recall",
    "RecallScore",
    "Running",
    "TopKAccuracy",
    "accuracy",
    "confusion_matrix",
    "f1",
    "mean_absolute_error",
    "mean_squared_error",
    "precision",
    "r2",
    "recall",
    "roc_auc",
    "top_k_accuracy",
]

elsewhere.closed(globals())

errors.name_functions(globals())
