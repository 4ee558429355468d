"""What functions give that have several results."""

from __future__ import annotations

from typing import NamedTuple

from ..tensor import Tensor


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class LeastSquares(NamedTuple):
    """What `lstsq` gives."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


class MinMax(NamedTuple):
    """What `aminmax` gives."""

    min: Tensor
    max: Tensor


class ValuesIndices(NamedTuple):
    """Elements along an axis, and where they stand: `max` and `min` with `dim`, `sort`, `topk`,
    `kthvalue`, `mode`, `cummax`, `cummin`."""

    values: Tensor
    indices: Tensor
