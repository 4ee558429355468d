"""Scores of classes, what is made of them, and the labels that they choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .... import autograd
from ....tensor import Tensor
from ...running import Frame
from .labels import looked_up


def _softmax_zero(scores: Tensor) -> Tensor:
    """A softmax in which a score of 0 stands for no score."""
    most = autograd.reduce_max(scores, -1, 1)
    is_zero = autograd.abs(scores.detach()) <= 1e-7
    sizes = autograd.where(is_zero, scores * autograd.exp(-most), autograd.exp(scores - most))
    total = autograd.reduce_sum(sizes, -1, 1)
    is_none = total.detach() == 0
    return autograd.where(is_none, 0.5, sizes / autograd.where(is_none, 1.0, total))


def _probit(scores: Tensor) -> Tensor:
    """The inverse of the normal distribution function, by Winitzki's approximation (2008), as
    onnxruntime has it."""
    x = scores * 2.0 - 1.0
    inside = (1.0 - x) * (1.0 + x)
    is_end = inside.detach() == 0
    log = autograd.log(autograd.where(is_end, 1.0, inside))
    half = log * 0.5 + 2 / (math.pi * 0.147)
    root = autograd.sqrt(autograd.sqrt(half * half - log / 0.147) - half)
    signed = autograd.where(x.detach() < 0, -root, root)
    return autograd.where(is_end, 0.0, signed) * 1.41421356


_TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "NONE": lambda scores: scores,
    "LOGISTIC": autograd.sigmoid,
    "SOFTMAX": lambda scores: autograd.softmax(scores, -1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
#: The names by the numbers that newer operators have for them.
NAMES = tuple("NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT".split())


def transformed(scores: Tensor, how: str) -> Tensor:
    """Scores (N, classes) after a `post_transform`."""
    if how not in _TRANSFORMS:
        raise ValueError(f"got post_transform {how!r}, want one of {', '.join(_TRANSFORMS)}")
    return _TRANSFORMS[how](scores)


def both(score: Tensor, how: str) -> Tensor:
    """The scores `-s` and `s`, transformed, of both classes (N, 2) from that of the second."""
    if how == "PROBIT":
        raise ValueError("got post_transform 'PROBIT' for one score of two classes, want another")
    return transformed(autograd.cat([-score, score], 1), how)


def labelled(at: Tensor, labels: Sequence[Any], frame: Frame) -> Any:
    """The labels at some places: int64, or strings on the host."""
    is_text = bool(labels) and isinstance(labels[0], str)
    return looked_up(at, labels, object if is_text else np.int64, frame)
