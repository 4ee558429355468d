# ruff: noqa: F403, F405 - the names of the other module
"""SINGA's `layer`: `singa_rs.layer`, with SINGA's rules for softmax and batch normalisation."""

from __future__ import annotations

from typing import Any

from ... import layer as _layer
from ...layer import *
from ...tensor import Tensor
from . import autograd

__all__ = list(_layer.__all__)


class BatchNorm2d(_layer.BatchNorm2d):
    """Batch normalisation of (N, C) or (N, C, H, W). The weight of the new batch in the
    running averages is 0.9 by default, as in SINGA."""

    def __init__(self, *args: Any, momentum: float = 0.9, eps: float = 1e-5) -> None:
        """As `singa_rs.layer.BatchNorm2d`."""
        super().__init__(*args, momentum=momentum, eps=eps)


class SoftMax(_layer.SoftMax):
    """Softmax over the axes from `axis` on together (SINGA SoftMax)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that has the axis."""
        return autograd.softmax(x, self.axis)
