"""Products of matrices and convolutions."""

from __future__ import annotations

from ... import autograd
from ...tensor import Tensor
from ..table import reads


@reads("MatMul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The product of the last two axes."""
    return autograd.matmul(a, b)


@reads("Gemm")
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803
    broadcast: int = 1,
) -> Tensor:
    """`alpha a b + beta c`."""
    return autograd.gemm(a, b, c, alpha, beta, transA, transB)
