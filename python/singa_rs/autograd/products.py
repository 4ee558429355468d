"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import number, whole
from . import contract, ops
from .casting import promoted
from .index import getitem
from .matmul import matmul
from .reduce import as_axes, reduce_sum
from .shape import cat, clone, plain_reshape, transpose
from .systems import inv
from .table import public


def _ranks(op: str, xs: Sequence[Tensor], ranks: Sequence[int], want: str) -> None:
    if [x.rank for x in xs] != list(ranks):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"{op}: got shapes {shapes}, want {want}")


@public(methods="mv", precision="short")
def mv(a: Tensor, b: Any) -> Tensor:
    """The product of a matrix (n, k) and a vector (k,): (n,) (PyTorch mv).

    Raises:
        ShapeError: other shapes.
    """
    a, b = promoted((a, b))
    _ranks("mv", (a, b), (2, 1), "a matrix and a vector")
    return matmul(a, b)


@public(methods="mm", precision="short")
def mm(a: Tensor, b: Any) -> Tensor:
    """The product of two matrices (PyTorch mm).

    Raises:
        ShapeError: other shapes.
    """
    a, b = promoted((a, b))
    _ranks("mm", (a, b), (2, 2), "two matrices")
    return matmul(a, b)


@public(methods="bmm", precision="short")
def bmm(a: Tensor, b: Any) -> Tensor:
    """The products of the matrices of two stacks, (b, n, k) and (b, k, m) (PyTorch bmm).

    Raises:
        ShapeError: other shapes.
    """
    a, b = promoted((a, b))
    _ranks("bmm", (a, b), (3, 3), "two stacks of as many matrices")
    if a.shape[0] != b.shape[0]:
        raise ShapeError(f"bmm: got shapes {a.shape}, {b.shape}, want as many matrices")
    return matmul(a, b)


def _added(x: Tensor, product: Tensor, beta: Any, alpha: Any, op: str) -> Tensor:
    """`beta * x + alpha * product`; `x` is left out where `beta` is 0."""
    more, keep = number(alpha, f"{op}: alpha"), number(beta, f"{op}: beta")
    scaled = product if more == 1 else product * more
    if keep == 0:
        return scaled
    made = (x if keep == 1 else x * keep) + scaled
    if made.shape != product.shape:
        raise ShapeError(f"{op}: got shape {x.shape} for products of {product.shape}")
    return made


@public(methods="addmm", precision="short")
def addmm(x: Tensor, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * x + alpha * a @ b` of matrices; `x` broadcasts, and does not count where `beta` is 0
    (PyTorch addmm, ONNX Gemm).

    Raises:
        ShapeError: shapes that do not fit.
    """
    x, a, b = promoted((x, a, b))
    _ranks("addmm", (a, b), (2, 2), "two matrices")
    return _added(x, matmul(a, b), beta, alpha, "addmm")


@public(methods="baddbmm", precision="short")
def baddbmm(x: Tensor, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * x + alpha * bmm(a, b)`; `x` broadcasts, and does not count where `beta` is 0 (PyTorch
    baddbmm).

    Raises:
        ShapeError: shapes that do not fit.
    """
    x, a, b = promoted((x, a, b))
    return _added(x, bmm(a, b), beta, alpha, "baddbmm")


@public(methods="inner", precision="short")
def inner(a: Tensor, b: Any) -> Tensor:
    """The sums of products over the last axes (NumPy inner): of vectors a number.

    Raises:
        ShapeError: last axes of different extents.
    """
    a, b = promoted((a, b))
    if not a.rank or not b.rank:
        return a * b
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"inner: got shapes {a.shape}, {b.shape}, want equal last axes")
    return contract.tensordot(a, b, ((-1,), (-1,)))


@public(methods="vdot", precision="short")
def vdot(a: Tensor, b: Any) -> Tensor:
    """The sum of the products of all elements, both flattened (NumPy vdot).

    Raises:
        ShapeError: different numbers of elements.
    """
    a, b = promoted((a, b))
    if a.numel != b.numel:
        raise ShapeError(f"vdot: got shapes {a.shape}, {b.shape}, want as many elements")
    return matmul(plain_reshape(a, (a.numel,)), plain_reshape(b, (b.numel,)))


@public(methods="tensordot", precision="short")
def tensordot(a: Tensor, b: Any, axes: Any = 2) -> Tensor:
    """Sums of products over the last `axes` axes of `a` and the first of `b`, or over pairs given
    as two lists (NumPy tensordot).

    Raises:
        ShapeError: extents of paired axes that differ.
    """
    return contract.tensordot(a, b, axes)


@public(precision="short")
def einsum(formula: str, *xs: Tensor) -> Tensor:
    """Einstein summation, `ij,jk->ik` and the like; `...` stands for all axes that have no letter
    (NumPy einsum, ONNX Einsum).

    Raises:
        ValueError: a formula that does not fit the tensors.
    """
    if not isinstance(formula, str) or not xs:
        raise TypeError(f"einsum: got {formula!r} and {len(xs)} tensors, want text and tensors")
    return contract.einsum(formula, xs)


@public(methods="kron")
def kron(a: Tensor, b: Any) -> Tensor:
    """The Kronecker product: `b` times each element of `a`, side by side (NumPy kron)."""
    a, b = promoted((a, b))
    rank = max(a.rank, b.rank)
    wide = [(1,) * (rank - t.rank) + t.shape for t in (a, b)]
    left = plain_reshape(a, [n for m in wide[0] for n in (m, 1)])
    right = plain_reshape(b, [n for m in wide[1] for n in (1, m)])
    return plain_reshape(left * right, [m * n for m, n in zip(*wide, strict=True)])


@public(methods="cross")
def cross(a: Tensor, b: Any, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis (NumPy cross, PyTorch
    linalg.cross); the other axes broadcast.

    Raises:
        ShapeError: another extent; shapes that do not broadcast.
        ValueError: an axis that the operands do not have.
    """
    a, b = promoted((a, b))
    at = whole(axis, "cross: axis")
    (first,), (second,) = (as_axes(at, t.rank, "cross") for t in (a, b))
    if a.shape[first] != 3 or b.shape[second] != 3:
        raise ShapeError(f"cross: got shapes {a.shape}, {b.shape}, want an extent of 3 of the axis")

    def turned(t: Tensor, along: int, by: int) -> Tensor:
        before = (slice(None),) * along
        parts = [getitem(t, (*before, slice(by, None))), getitem(t, (*before, slice(by)))]
        return cat(parts, along)

    left = turned(a, first, 1) * turned(b, second, 2)
    return left - turned(a, first, 2) * turned(b, second, 1)


@public()
def block_diag(*xs: Tensor) -> Tensor:
    """A matrix of matrices along its diagonal, zeros elsewhere (PyTorch block_diag); vectors are
    rows.

    Raises:
        ShapeError: more than two dimensions; no tensors.
    """
    given = promoted(xs, counts=False)
    if not given or any(x.rank > 2 for x in given):
        shapes = ", ".join(str(x.shape) for x in given)
        raise ShapeError(f"block_diag: got shapes {shapes}, want matrices")
    blocks = [plain_reshape(x, ((1, 1) + x.shape)[-2:]) for x in given]
    width, left, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        n, m = x.shape
        parts = [ops.full((n, left), 0, x), x, ops.full((n, width - left - m), 0, x)]
        for one in parts[::2]:
            one.requires_grad = False
        rows.append(cat(parts, 1))
        left += m
    return cat(rows, 0)


@public(precision="short")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight.T + bias` (PyTorch linear).

    Args:
        x: (..., k).
        weight: (m, k).
        bias: (m,), or none.

    Raises:
        ShapeError: shapes that do not fit.
    """
    if weight.rank != 2 or not x.rank or x.shape[-1] != weight.shape[1]:
        raise ShapeError(f"linear: got shapes {x.shape}, {weight.shape}, want (..., k) and (m, k)")
    made = matmul(x, transpose(weight))
    if bias is None:
        return made
    if bias.shape != (weight.shape[0],):
        raise ShapeError(f"linear: got a bias of shape {bias.shape}, want ({weight.shape[0]},)")
    return made + bias


@public(precision="short")
def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x1 @ weight[i] @ x2 + bias[i]` of rows, for each i (PyTorch bilinear).

    Args:
        x1, x2: (..., n) and (..., k).
        weight: (m, n, k).
        bias: (m,), or none.

    Raises:
        ShapeError: shapes that do not fit.
    """
    fits = weight.rank == 3 and x1.rank > 0 and x1.shape[:-1] == x2.shape[:-1]
    if not fits or (x1.shape[-1], x2.shape[-1]) != weight.shape[1:]:
        shapes = f"{x1.shape}, {x2.shape}, {weight.shape}"
        raise ShapeError(f"bilinear: got shapes {shapes}, want (..., n), (..., k), (m, n, k)")
    outputs, n, k = weight.shape
    left = matmul(x1, plain_reshape(transpose(weight, (1, 0, 2)), (n, outputs * k)))
    left = plain_reshape(left, (*x1.shape[:-1], outputs, k))
    made = reduce_sum(left * x2.unsqueeze(-2), -1, False)
    if bias is None:
        return made
    if bias.shape != (outputs,):
        raise ShapeError(f"bilinear: got a bias of shape {bias.shape}, want ({outputs},)")
    return made + bias


@public(methods="addmv", precision="short")
def addmv(x: Tensor, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * x + alpha * a @ b` of a matrix and a vector; `x` broadcasts, and does not count where
    `beta` is 0 (PyTorch addmv).

    Raises:
        ShapeError: shapes that do not fit.
    """
    x, a, b = promoted((x, a, b))
    _ranks("addmv", (a, b), (2, 1), "a matrix and a vector")
    return _added(x, matmul(a, b), beta, alpha, "addmv")


@public(methods="addr")
def addr(x: Tensor, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * x + alpha * outer(a, b)` of vectors; `x` broadcasts, and does not count where `beta`
    is 0 (PyTorch addr).

    Raises:
        ShapeError: shapes that do not fit.
    """
    x, a, b = promoted((x, a, b))
    _ranks("addr", (a, b), (1, 1), "two vectors")
    return _added(x, a.unsqueeze(1) * b.unsqueeze(0), beta, alpha, "addr")


@public(methods="addbmm", precision="short")
def addbmm(x: Tensor, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * x + alpha *` the sum of the products of the matrices of two stacks; `x` broadcasts,
    and does not count where `beta` is 0 (PyTorch addbmm).

    Raises:
        ShapeError: shapes that do not fit.
    """
    x, a, b = promoted((x, a, b))
    _ranks("addbmm", (a, b), (3, 3), "two stacks of as many matrices")
    if a.shape[0] != b.shape[0]:
        raise ShapeError(f"addbmm: got shapes {a.shape}, {b.shape}, want as many matrices")
    return _added(x, contract.tensordot(a, b, ((0, 2), (0, 1))), beta, alpha, "addbmm")


@public(methods="matrix_power", precision="short")
def matrix_power(x: Tensor, n: int) -> Tensor:
    """The product of `n` times the same square matrices (NumPy linalg.matrix_power), by squares of
    squares.

    Args:
        x: (..., m, m).
        n: an integer; 0 gives the identity, and a negative one powers of the inverse.

    Raises:
        ShapeError: matrices that are not square.
        ValueError: a singular matrix for a negative `n`.
    """
    power = whole(n, "matrix_power: n")
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: got shape {x.shape}, want square matrices")
    if power < 0:
        x, power = inv(x), -power
    if not power:
        one = ops.arange(x.shape[-1], x)
        one = ops.op("binary", f="eq")(one, ops.reshape(one, (x.shape[-1], 1)))
        made = ops.copy(ops.cast(one, x.dtype).view_expand(x.shape))
        made.requires_grad = False
        return made
    made, square = None, x
    while True:
        if power & 1:
            made = square if made is None else matmul(made, square)
        power >>= 1
        if not power:
            return clone(made) if made is x else made
        square = matmul(square, square)


@public(precision="short")
def multi_dot(xs: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order of fewest multiplications (Hu and Shing, 1982;
    NumPy linalg.multi_dot); the first and the last may be vectors.

    Raises:
        ShapeError: fewer than two; shapes that do not fit.
    """
    given = promoted(tuple(xs))
    ends = len(given) > 1 and {given[0].rank, given[-1].rank} <= {1, 2}
    if not ends or any(x.rank != 2 for x in given[1:-1]):
        shapes = ", ".join(str(x.shape) for x in given)
        raise ShapeError(f"multi_dot: got shapes {shapes}, want two matrices at least")
    first, last = given[0].rank == 1, given[-1].rank == 1
    wide = list(given)
    wide[0] = wide[0].unsqueeze(0) if first else wide[0]
    wide[-1] = wide[-1].unsqueeze(1) if last else wide[-1]
    if any(a.shape[1] != b.shape[0] for a, b in zip(wide, wide[1:], strict=False)):
        shapes = ", ".join(str(x.shape) for x in given)
        raise ShapeError(f"multi_dot: got shapes {shapes}, want products that fit")
    made = _chained(wide, _cuts([wide[0].shape[0], *(x.shape[1] for x in wide)]), 0, len(wide) - 1)
    return plain_reshape(made, made.shape[int(first) : 2 - int(last)])


def _cuts(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where the product of matrices i to j is cut in two, for the fewest multiplications."""
    count = len(sizes) - 1
    costs, cuts = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            found = [
                (costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            costs[i, j], cuts[i, j] = min(found)
    return cuts


def _chained(xs: list[Tensor], cuts: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return xs[i]
    k = cuts[i, j]
    return matmul(_chained(xs, cuts, i, k), _chained(xs, cuts, k + 1, j))
