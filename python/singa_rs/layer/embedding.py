"""Look-up of rows by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import autograd, initializer, tensor
from ..errors import ShapeError
from ..tensor import Tensor
from .base import Layer
from .check import count
from .parameters import parameter


class Embedding(Layer):
    """Rows of W (input_dim, output_dim) by integer indices. SINGA's Embedding."""

    def __init__(self, input_dim: int, output_dim: int, initializer: Any = "gaussian") -> None:
        """`initializer`: "gaussian" (mean 0, deviation 1), "uniform" (-1 to 1), another name of
        `singa_rs.initializer`, or a callable.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self.input_dim = count(input_dim, "Embedding: input_dim")
        self.output_dim = count(output_dim, "Embedding: output_dim")
        self.initializer = _initializer(initializer)

    def initialize(self, x: Tensor) -> None:
        """Makes W, on the indices' device."""
        shape = (self.input_dim, self.output_dim)
        floats = Tensor((0,), x.device, tensor.float32)
        self.W = parameter(shape, floats, self.initializer, "Embedding: initializer")

    def from_pretrained(self, W: Any, freeze: bool = True) -> None:  # noqa: N803 - SINGA's name
        """Copies W, a tensor or array (input_dim, output_dim); `freeze` keeps it from training.

        Raises:
            ShapeError: a different shape.
        """
        if not isinstance(W, (np.ndarray, Tensor)):
            raise TypeError(f"Embedding: got {type(W).__name__} for W, want a Tensor or an array")
        if tuple(W.shape) != (self.input_dim, self.output_dim):
            want = (self.input_dim, self.output_dim)
            raise ShapeError(f"Embedding: got W of shape {tuple(W.shape)}, want {want}")
        device = W.device if isinstance(W, Tensor) else None
        like = self.W if self._initialized else Tensor((0,), device, tensor.float32)
        values = like.fitting(W, "Embedding: W", {})
        if not self._initialized:
            self.initialize(like)
        self.W.copy_from(values)
        self.W.requires_grad = not freeze

    def forward(self, x: Tensor) -> Tensor:
        """Indices of any shape and integer dtype -> that shape + (output_dim,)."""
        return autograd.embedding(x, self.W)


def _gaussian(t: Tensor) -> Tensor:
    return t.gaussian(0.0, 1.0)


def _uniform(t: Tensor) -> Tensor:
    return t.uniform(-1.0, 1.0)


def _initializer(name: Any) -> initializer.Initializer:
    if isinstance(name, str) and name in ("gaussian", "uniform"):
        return _gaussian if name == "gaussian" else _uniform
    return initializer.get(name, "Embedding: initializer")
