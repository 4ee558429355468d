"""Gradients exchanged as products of two thin matrices (PowerSGD: Vogels et al., 2019)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ... import autograd
from ...dist.low_rank import saves, sides
from ...dist.together import reduced, reduced_into
from ...dist.work import Work
from ...tensor import Tensor
from ..exchange import Pair
from ..moments import Moments
from .gradients import RESIDUAL

#: The right factor of each parameter's last gradient, from which the next one begins.
FACTOR = "exchange_factor"


class Factored(Moments):
    """Moments, of which those of kind `factor` are matrices of `rank` columns, equal on all ranks
    from the first step on."""

    _rank = 0

    def factor(self, param: Tensor, rank: int) -> Tensor:
        """The right factor of a parameter's gradient.

        Raises:
            ValueError: it has another rank since earlier steps.
        """
        self._rank = rank
        found = self.of(param, param.name, FACTOR)
        if found.shape[1] != rank:
            raise ValueError(
                f"backward_and_low_rank_update: got rank {rank} for {param.name!r}, want "
                f"{found.shape[1]} as in earlier steps"
            )
        return found

    def _shape(self, param: Tensor, kind: str) -> tuple[int, ...]:
        if kind != FACTOR:
            return super()._shape(param, kind)
        return sides(param.shape)[1], self._rank

    def _make(self, name: str, param: Tensor, kind: str) -> Tensor:
        is_new = kind == FACTOR and name not in self._waiting[kind]
        made = super()._make(name, param, kind)
        if is_new:
            self._begin(made, kind)
        return made

    def _begin(self, made: Tensor, kind: str) -> None:
        if kind != FACTOR:
            return super()._begin(made, kind)
        # A seed of its own: whatever else ranks draw, they begin with the same factors.
        drawn = np.random.default_rng(made.shape).normal(size=made.shape)
        made.copy_from(drawn.astype(made.dtype.name))


class _Matrix(NamedTuple):
    """A gradient that is exchanged as two factors."""

    param: Tensor
    #: The gradient and what earlier exchanges have left of theirs, as a matrix.
    whole: Tensor
    right: Tensor
    dtype: object


class _Started(NamedTuple):
    """Gradients of one bucket that are being exchanged: left factors, and what stays dense."""

    matrices: list[_Matrix]
    lefts: Work | None
    params: list[Tensor]
    dense: Work | None

    def finish(self) -> Iterator[Pair]:
        """Parameters and averaged gradients."""
        if self.dense is not None:
            yield from zip(self.params, self.dense.wait(), strict=True)
        if self.lefts is not None:
            yield from _products(self.matrices, self.lefts.wait())


class LowRank:
    """Averages of gradients of which each rank gives a product of two matrices of `rank` columns;
    what that leaves out is added to the next gradients (error feedback).

    A gradient is a matrix of its first axis and all others. Those that would not become smaller are
    exchanged as they are, vectors above all.
    """

    def __init__(self, rank: int, kept: Factored) -> None:
        self._rank, self._kept = rank, kept

    def __call__(self, pairs: list[Pair]) -> _Started:
        """Begins to exchange the gradients of a bucket."""
        wide = [pair for pair in pairs if saves(pair[1].shape, self._rank)]
        dense = [pair for pair in pairs if not saves(pair[1].shape, self._rank)]
        pairs.clear()
        with autograd.no_grad():
            matrices = [self._matrix(*pair) for pair in wide]
            lefts = [autograd.matmul(one.whole, one.right) for one in matrices]
            params, grads = [param for param, _ in dense], [grad for _, grad in dense]
            return _Started(matrices, _begun(lefts), params, _begun(grads))

    def _matrix(self, param: Tensor, grad: Tensor) -> _Matrix:
        rest = self._kept.of(param, param.name, RESIDUAL)
        rest.copy_from(rest + grad.as_type(rest.dtype))
        right = self._kept.factor(param, self._rank)
        return _Matrix(param, rest.view_reshape(sides(grad.shape)), right, grad.dtype)


def _begun(tensors: list[Tensor]) -> Work | None:
    """Averages of tensors that are on their way, if there are any."""
    return reduced(tensors) if tensors else None


def _products(matrices: list[_Matrix], lefts: list[Tensor]) -> Iterator[Pair]:
    """Exchanges the right factors for averaged left ones; what the product leaves of a gradient is
    kept for the next."""
    with autograd.no_grad():
        bases = [autograd.qr(left).Q for left in lefts]
        own = [
            autograd.matmul(one.whole.transpose(), base)
            for one, base in zip(matrices, bases, strict=True)
        ]
        rights = reduced_into(own, own).wait()
    for one, base, right in zip(matrices, bases, rights, strict=True):
        with autograd.no_grad():
            made = autograd.matmul(base, right.transpose())
            one.whole.copy_from(one.whole - made)
            one.right.copy_from(right)
            grad = made.reshape(one.param.shape).as_type(one.dtype)
        yield one.param, grad
