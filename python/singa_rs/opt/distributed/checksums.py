"""Checksums of tensors' bits, by which ranks compare values without sending them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import autograd
from ...tensor import Tensor, int32, zeros
from ..exchange import Pair, noting

if TYPE_CHECKING:
    from .agreement import Agreement


class _Checksum(autograd.Operator):
    """The checksum of a tensor's bits, of shape (1,), int32. In a recorded step it is that of the
    value that the tensor has there when the step runs."""

    host = True

    def infer(self, x: Any) -> Any:
        """Its shape and dtype."""
        return (1,), int32

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The checksum of an array without gaps."""
        return np.array([zlib.crc32(x.reshape(-1).view(np.uint8))], np.uint32).view(np.int32)


def checksum(x: Tensor) -> Tensor:
    """The checksum of a tensor's bits, of shape (1,), int32; 0 of one that is divided among the
    ranks, which has none of its own."""
    with autograd.no_grad():
        if x._divided is not None:
            return zeros((1,), x.device, int32)
        return _Checksum()(x)[0]


def checksums(tensors: Sequence[Tensor]) -> Tensor:
    """Those of several tensors on one device, of shape (n,)."""
    with autograd.no_grad():
        return autograd.cat([checksum(one) for one in tensors], 0)


class Beginning:
    """The values that parameters have before the first update, where ranks update them by gradients
    of their own. Nothing is noted once ranks have compared something."""

    def __init__(self, agreed: Agreement) -> None:
        self._agreed, self._is_due = agreed, agreed.is_due
        self._params: list[Tensor] = []
        self._sums: list[Tensor] = []

    def noted(self, pairs: Iterable[Pair]) -> Iterable[Pair]:
        """The pairs as they are."""
        return noting(pairs, self._note) if self._is_due else pairs

    def _note(self, param: Tensor, _: Tensor) -> None:
        self._params.append(param)
        self._sums.append(checksum(param))

    def check(self, equal: bool) -> None:
        """Compares them with those of all other ranks, after the update; no values where ranks
        have not `equal` ones.

        Raises:
            DistError: as `Agreement.check`.
        """
        if not self._params:
            return
        if equal:
            with autograd.no_grad():
                self._agreed.check(self._params, autograd.cat(self._sums, 0))
        else:
            self._agreed.of_names().check(self._params)
