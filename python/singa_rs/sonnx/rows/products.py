"""Products of matrices, sums over indices, determinants."""

from __future__ import annotations

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor, arange, int64, ones
from ..table import reads
from . import integers


@reads("MatMul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The product of the last two axes."""
    return integers.in_int64(autograd.matmul, a, b)


@reads("Gemm")
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # the attribute's name
    transB: int = 0,
    broadcast: int = 1,
) -> Tensor:
    """`alpha a b + beta c`."""
    if not a.dtype.is_float:
        return _integral_gemm(a, b, c, (alpha, beta), (transA, transB))
    return autograd.gemm(a, b, c, alpha, beta, transA, transB)


def _integral_gemm(
    a: Tensor, b: Tensor, c: Tensor | None, factors: tuple[float, float], turned: tuple[int, int]
) -> Tensor:
    """`gemm` of integers, whose factors have to be integers, too."""
    if any(not factor.is_integer() for factor in factors):
        raise ValueError(f"Gemm: got alpha, beta {factors} for {a.dtype.name}, want whole numbers")
    wide = [cast(x, int64) for x in (a, b)]
    left, right = (x.transpose() if turn else x for x, turn in zip(wide, turned, strict=True))
    made = autograd.matmul(left, right) * int(factors[0])
    return cast(made if c is None else made + cast(c, int64) * int(factors[1]), a.dtype)


@reads("Einsum", since=12)
def einsum(*xs: Tensor, equation: str) -> Tensor:
    """Sums of products over the indices that an equation names."""
    made = integers.in_int64(lambda *given: autograd.einsum(equation, *given), *xs)
    return cast(made, xs[0].dtype)


@reads("Det", since=11)
def det(x: Tensor) -> Tensor:
    """Determinants of the last two axes, by elimination with the largest pivots."""
    n = x.shape[-1]
    if x.rank < 2 or x.shape[-2] != n:
        raise ValueError(f"Det: got shape {x.shape}, want square matrices")
    rows = x.reshape((-1, n, n))
    found = ones((rows.shape[0],), x.device, x.dtype)
    for _ in range(n):
        pivot, rows = _eliminated(rows)
        found = found * pivot
    return found.reshape(x.shape[:-2])


def _eliminated(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Of matrices (b, n, n): the pivots of their first columns, with the sign of moving them up,
    and the matrices (b, n - 1, n - 1) that are left."""
    n = rows.shape[-1]
    at = autograd.argmax(autograd.abs(rows[:, :, :1]), 1, 1)
    best = autograd.take_along_axis(rows, autograd.expand(at, (rows.shape[0], 1, n)), 1)
    is_first = arange(n, device=rows.device, dtype=int64).reshape((1, n, 1)) == at
    rest = autograd.where(is_first, rows[:, :1], rows)[:, 1:]
    pivot = best[:, :, :1]
    factors = rest[:, :, :1] / autograd.where(pivot.detach() == 0, 1.0, pivot)
    left = rest[:, :, 1:] - factors * best[:, :, 1:]
    signed = autograd.where(at == 0, pivot, -pivot)
    return signed.reshape((-1,)), left
