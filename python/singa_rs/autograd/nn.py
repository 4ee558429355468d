"""Dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..tensor import Tensor
from ..tensor.numbers import real, whole, within
from . import ops
from .index import where
from .mode import mode
from .rule import Rule
from .table import public


class Dropout(Rule):
    """Elements set to zero with probability `ratio`, the others scaled by `1 / (1 - ratio)`."""

    keeps = ("mask",)

    def __init__(self, ratio: float = 0.5, seed: int | None = None) -> None:
        self.ratio, self.seed = real(ratio, "dropout: ratio"), seed
        if not 0 <= self.ratio < 1:
            raise ValueError(f"dropout: got ratio {ratio}, want 0 <= ratio < 1")

    def forward(self, x: Tensor) -> Tensor:
        state = () if self.seed is None else (_core.from_numpy(_state(self.seed), x.device),)
        y, self.mask = ops.op("dropout", ratio=self.ratio)(x, *state)
        return y

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy / (1 - ratio)` where the element was kept, else 0."""
        return (ops.op("dropout_grad", ratio=self.ratio)(dys[0], self.load(0)),)


def _state(seed: int) -> np.ndarray:
    """The state of a separate generator: key and position."""
    if isinstance(seed, (bool, np.bool_)):
        raise TypeError(
            f"dropout: got {seed} for seed, want an integer; autograd.training, which train() and "
            "eval() set, says whether elements are dropped"
        )
    key = whole(seed, "dropout: seed")
    if not -(2**62) <= key < 2**62:
        raise ValueError(f"dropout: got seed {key}, want an integer from -2**62 to 2**62 - 1")
    return np.array([key << 1, 0], np.int64)


@public(Dropout)
def dropout(x: Tensor, ratio: float = 0.5, seed: int | None = None) -> Tensor:
    """In training, elements set to zero with probability `ratio` and the others scaled up
    (Srivastava et al., 2014; ONNX Dropout).

    Outside of training, `x` itself (ONNX Dropout). With a `seed`, the same elements each time. With
    ratio 1 all are zero, and so is the gradient.

    Raises:
        TypeError, ValueError: a ratio that is no number from 0 to 1, or a seed that is no integer,
            also outside of training.
    """
    if type(ratio) is not float or not 0 <= ratio <= 1:
        ratio = within(ratio, "dropout: ratio", 0.0, 1.0)
    if seed is not None:
        _state(seed)
    if not mode.training or not ratio:
        return x
    return where(np.zeros((), bool), x, 0.0) if ratio == 1 else Dropout(ratio, seed)(x)[0]
