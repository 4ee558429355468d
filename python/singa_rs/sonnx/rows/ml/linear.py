"""Linear models."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import autograd
from ....autograd.casting import cast, floating
from ....tensor import Tensor, float32, int64
from ...running import Frame
from ...table import reads
from .features import DOMAIN, row, table
from .scores import labelled, transformed


def _scores(x: Tensor, coefficients: Any, intercepts: Any, count: int | None) -> Tensor:
    """`x w + b` for each of the targets."""
    shape = (-1, x.shape[1]) if count is None else (count, -1)
    weights = table(np.reshape(coefficients, shape).T.astype(x.dtype.name), x)
    made = autograd.matmul(x, weights)
    return made + row(intercepts, x) if intercepts else made


@reads("LinearRegressor", domain=DOMAIN)
def linear_regressor(
    x: Tensor, *, coefficients: Any, intercepts: Any = (), targets: int = 1,
    post_transform: str = "NONE",
) -> Tensor:  # fmt: skip
    """Linear functions of the rows, in float32."""
    made = _scores(floating(x), coefficients, intercepts, targets)
    return cast(transformed(made, post_transform), float32)


@reads("LinearClassifier", domain=DOMAIN)
def linear_classifier(
    x: Tensor, *, coefficients: Any, intercepts: Any = (), classlabels_ints: Any = (),
    classlabels_strings: Any = (), multi_class: int = 0, post_transform: str = "NONE",
    frame: Frame,
) -> tuple[Any, Tensor]:  # fmt: skip
    """The label of the highest score of each row, and the scores in float32."""
    labels = classlabels_strings or classlabels_ints
    scores = _scores(floating(x), coefficients, intercepts, None)
    if scores.shape[1] == 1 and len(labels) == 2:
        scores = autograd.cat([-scores, scores], 1)
    made = cast(transformed(scores, post_transform), float32)
    if made.shape[1] > 1:
        best = autograd.argmax(scores, 1)
        return labelled(best, labels or range(made.shape[1]), frame), made
    is_in = cast(made >= (0.0 if post_transform == "NONE" else 0.5), int64).reshape((-1,))
    only = labels[0] if labels else 1
    return labelled(is_in, ["" if isinstance(only, str) else 0, only], frame), made
