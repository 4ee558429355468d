"""The area under the curve of true against false positives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from .running import Running, array_of, column, labels, without_nan

#: By how much probabilities of a row may miss the sum of 1.
_ROUNDING = 1e-3


class ROCAUC(Running):
    """The chance that a row of the class has a higher score than one of the others, equal scores
    counting half: the area under the ROC curve (scikit-learn roc_auc_score).

    Two classes need one score for each row, (N,) or (N, 1), of any scale. Several classes, and two
    in two columns, need probabilities (N, C), whose rows add up to 1; the area is the mean over the
    classes, each against all others. All scores are kept until `reset`.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets all rows."""
        self._scores: list[np.ndarray] = []
        self._targets: list[np.ndarray] = []

    def update(self, outputs: Any, targets: Any) -> None:
        """Adds scores (N,), (N, 1) or (N, C), and classes (N,) or (N, 1).

        Raises:
            ShapeError, DTypeError: shapes that do not fit, or those of another batch; targets that
                are no integers.
            ValueError: NaN; classes beyond the scores'; rows (N, C) that do not add up to 1.
        """
        made = column(without_nan(array_of(outputs, "ROCAUC"), "ROCAUC"))
        right = column(labels(array_of(targets, "ROCAUC"), "ROCAUC"))
        _check(made, right)
        if self._scores and self._scores[0].shape[1:] != made.shape[1:]:
            raise ShapeError(f"ROCAUC: got outputs {made.shape} after {self._scores[0].shape}")
        self._scores.append(np.array(made))
        self._targets.append(right)

    def compute(self) -> float:
        """A number from 0 to 1.

        Raises:
            ValueError: there are no rows, or none of a class, or none but of one.
        """
        if not self._scores:
            raise ValueError("ROCAUC: got no rows")
        made, right = np.concatenate(self._scores), np.concatenate(self._targets)
        if made.ndim == 1:
            return _area(made, right == 1, 1)
        if made.shape[1] == 2:
            return _area(made[:, 1], right == 1, 1)
        return float(np.mean([_area(made[:, c], right == c, c) for c in range(made.shape[1])]))


def _check(made: np.ndarray, right: np.ndarray) -> None:
    if made.ndim not in (1, 2) or right.shape != made.shape[:1]:
        got = f"ROCAUC: got outputs {made.shape} and targets {right.shape}"
        raise ShapeError(f"{got}, want (N,) or (N, C) and (N,)")
    width = 2 if made.ndim == 1 else made.shape[1]
    if right.size and int(right.max()) >= width:
        raise ValueError(f"ROCAUC: got class {right.max()}, want 0 to {width - 1}")
    if made.ndim == 2 and ((made < 0).any() or (abs(made.sum(1) - 1) > _ROUNDING).any()):
        raise ValueError("ROCAUC: got rows (N, C) that are no probabilities, want sums of 1")


def _area(scores: np.ndarray, is_one: np.ndarray, label: int) -> float:
    """Mann and Whitney's statistic: how many pairs are in the right order. Sums of integers, so it
    is exact up to the last division."""
    ones = int(is_one.sum())
    others = len(is_one) - ones
    if not ones or not others:
        raise ValueError(f"ROCAUC: got {ones} rows of class {label} of {len(is_one)}, want both")
    _, level = np.unique(scores, return_inverse=True)
    size = int(level.max()) + 1
    below, here = (np.bincount(level[some], minlength=size) for some in (~is_one, is_one))
    twice = here @ (2 * (np.cumsum(below) - below) + below)
    return float(twice / (2 * ones * others))
