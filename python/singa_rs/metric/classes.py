"""Metrics of classes: counts of right and wrong ones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import ShapeError
from ..layer.check import count, number, one_of
from .running import Running, array_of, column, labels, predicted, within, without_nan

_AVERAGES = ("binary", "micro", "macro")


class _Counted(Running):
    """Counts of the right and of the predicted classes, which grow with the classes."""

    #: The most classes, so that a wrong label is an error and not a lack of memory.
    _most: ClassVar[int]

    def __init__(self, threshold: float | None = None) -> None:
        name = f"{type(self).__name__}: threshold"
        self.threshold = None if threshold is None else number(threshold, name)
        self.reset()

    def update(self, outputs: Any, targets: Any) -> None:
        """Counts a batch: scores (N, C, ...) and classes (N, ...), classes and classes of one
        shape, or one score for each row, (N,) or (N, 1), which means class 1 above `threshold`.
        The first of equal scores counts.

        Raises:
            ShapeError, DTypeError: shapes that do not fit, targets that are no integers.
            ValueError: classes below 0 or beyond the scores', NaN, a missing threshold.
        """
        op = type(self).__name__
        made, right, width = predicted(outputs, targets, op, self.threshold)
        needed = max([width, *(int(one.max()) + 1 for one in (made, right) if one.size)])
        if needed > self._most:
            raise ValueError(f"{op}: got class {needed - 1}, want 0 to {self._most - 1}")
        self._count(made, right, needed)

    def _count(self, made: np.ndarray, right: np.ndarray, size: int) -> None:
        raise NotImplementedError


def _grown(counts: np.ndarray, size: int) -> np.ndarray:
    """Counts with zeros at the end of each axis, up to this size."""
    more = size - len(counts)
    return np.pad(counts, [(0, more)] * counts.ndim) if more > 0 else counts


class ConfusionMatrix(_Counted):
    """How often each class was taken for which (scikit-learn confusion_matrix).

    `compute` returns int64 (C, C), rows the right classes, columns the predicted ones. C is
    `classes`, or else how many the scores or the labels have shown.
    """

    _most = 10_000  # 800 MB

    def __init__(self, classes: int | None = None, threshold: float | None = None) -> None:
        self.classes = None if classes is None else count(classes, "ConfusionMatrix: classes")
        if self.classes is not None and self.classes > self._most:
            got = f"ConfusionMatrix: classes: got {self.classes}"
            raise ValueError(f"{got}, want at most {self._most}")
        super().__init__(threshold)

    def reset(self) -> None:
        """Forgets all rows."""
        self._counts = np.zeros((self.classes or 0,) * 2, np.int64)

    def _count(self, made: np.ndarray, right: np.ndarray, size: int) -> None:
        if self.classes is not None and size > self.classes:
            got = f"ConfusionMatrix: got class {size - 1}"
            raise ValueError(f"{got}, want 0 to {self.classes - 1}")
        self._counts = _grown(self._counts, size)
        np.add.at(self._counts, (right, made), 1)

    def compute(self) -> np.ndarray:
        """The counts, a copy."""
        if not self._counts.any():
            raise ValueError("ConfusionMatrix: got no rows")
        return self._counts.copy()


class _Averaged(_Counted):
    """A quotient of counts for each class, and how they become one number.

    Args:
        average: "binary", that of class 1 of two; "micro", of the counts of all classes together;
            "macro", the mean over the classes that occur in outputs or targets.
        threshold: what one score for each row has to exceed to mean class 1.

    A quotient whose denominator is 0 counts as 0 (scikit-learn's `zero_division=0`).

    Raises:
        ValueError: another average; by `compute`, "binary" of more than two classes.
    """

    _most = 10_000_000
    #: How often the right, the predicted classes are counted in the denominator.
    _weights: ClassVar[tuple[int, int]]

    def __init__(self, average: str = "binary", threshold: float | None = None) -> None:
        self.average = one_of(average, f"{type(self).__name__}: average", _AVERAGES)
        super().__init__(threshold)

    def reset(self) -> None:
        """Forgets all rows."""
        self._hits = self._right = self._made = np.zeros(0, np.int64)

    def _count(self, made: np.ndarray, right: np.ndarray, size: int) -> None:
        size = max(size, len(self._hits))

        def add(counts: np.ndarray, one: np.ndarray) -> np.ndarray:
            return _grown(counts, size) + np.bincount(one, minlength=size)

        self._hits = add(self._hits, right[made == right])
        self._right, self._made = add(self._right, right), add(self._made, made)

    def compute(self) -> float:
        """A number from 0 to 1."""
        if not self._right.any():
            raise ValueError(f"{type(self).__name__}: got no rows")
        by_right, by_made = self._weights
        below = by_right * self._right + by_made * self._made
        above = (by_right + by_made) * self._hits
        if self.average == "micro":
            return float(above.sum() / below.sum())
        quotients = np.divide(above, below, out=np.zeros(len(above)), where=below > 0)
        occurs = (self._right > 0) | (self._made > 0)
        if self.average == "macro":
            return float(quotients[occurs].mean())
        if occurs[2:].any():
            got = f"{type(self).__name__}: got class {np.flatnonzero(occurs)[-1]}"
            raise ValueError(f"{got} for average='binary', want 0 and 1, or 'micro' or 'macro'")
        return float(quotients[1]) if len(quotients) > 1 else 0.0


class PrecisionScore(_Averaged):
    """The share of right ones among those predicted (scikit-learn precision_score)."""

    _weights = (0, 1)


class RecallScore(_Averaged):
    """The share of right ones among those that there are (scikit-learn recall_score)."""

    _weights = (1, 0)


class F1Score(_Averaged):
    """The harmonic mean of precision and recall (scikit-learn f1_score)."""

    _weights = (1, 1)


class TopKAccuracy(Running):
    """The share of rows whose class is among the `k` with the largest scores, of which the later
    ones come first if they are equal (scikit-learn top_k_accuracy_score; `Accuracy(top_k)` takes
    the earlier ones first)."""

    def __init__(self, k: int = 5) -> None:
        self.k = count(k, "TopKAccuracy: k")
        self.reset()

    def reset(self) -> None:
        """Forgets all rows."""
        self._hits = self._rows = 0

    def update(self, outputs: Any, targets: Any) -> None:
        """Adds scores (N, C), C at least `k` and 2, and classes (N,) or (N, 1) from 0 to C - 1.

        Raises:
            ShapeError, DTypeError, ValueError: anything else; scores with NaN.
        """
        made = without_nan(array_of(outputs, "TopKAccuracy"), "TopKAccuracy")
        right = column(labels(array_of(targets, "TopKAccuracy"), "TopKAccuracy"))
        if made.ndim != 2 or made.shape[1] < max(2, self.k) or right.shape != made.shape[:1]:
            got = f"TopKAccuracy: got outputs {made.shape} and targets {right.shape}"
            raise ShapeError(f"{got}, want (N, {max(2, self.k)} or more) and (N,)")
        within(right, made.shape[1], "TopKAccuracy")
        best = np.argsort(made, axis=1, kind="stable")[:, -self.k :]
        self._hits += int((best == right[:, None]).any(axis=1).sum())
        self._rows += len(right)

    def compute(self) -> float:
        """A number from 0 to 1."""
        if not self._rows:
            raise ValueError("TopKAccuracy: got no rows")
        return self._hits / self._rows
