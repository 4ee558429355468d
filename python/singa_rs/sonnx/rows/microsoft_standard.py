"""onnxruntime's operators that are ONNX's but for the form of their inputs and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import autograd
from ...tensor import Tensor
from ..running import Frame
from ..table import reads
from .arranging import pad, trilu
from .microsoft_domain import DOMAIN
from .positions import unique
from .shapes import range_

reads("Trilu", domain=DOMAIN, host="k")(trilu)


@reads("ExpandDims", domain=DOMAIN, host="axis")
def expand_dims(x: Tensor, axis: Any) -> Tensor:
    """With an axis of extent 1 at a place."""
    return autograd.unsqueeze(x, [int(np.reshape(axis, ()))])


@reads("Inverse", domain=DOMAIN)
def inverse(x: Tensor) -> Tensor:
    """Matrices' inverses."""
    return autograd.inv(x)


@reads("Pad", domain=DOMAIN, host="pads value")
def pad_(x: Tensor, pads: Any, value: Any = None, *, mode: str = "constant") -> Tensor:
    """Wider, or narrower where pads, which may stand in a row of a matrix, are negative."""
    return pad(x, np.ravel(pads), value, mode=mode)


@reads("Range", domain=DOMAIN, host="delta", kept="start limit")
def numbers(start: Any, limit: Any, delta: Any = None, *, frame: Frame) -> Tensor:
    """Numbers from `start` to before `limit`, `delta` or 1 apart."""
    return range_(start, limit, np.int64(1) if delta is None else delta, frame=frame)


@reads("Unique", domain=DOMAIN)
def unique_(x: Tensor, *, frame: Frame) -> tuple[Tensor, ...]:
    """The distinct elements in the order in which they come, which one each is, how often."""
    values, _, inverse, counts = unique(x, sorted=0, frame=frame)
    return values, inverse, counts
