"""Linear algebra under NumPy's and PyTorch's names in their `linalg`; the functions are those of
`autograd`, and have gradients."""

from .autograd import (
    cholesky,
    cross,
    det,
    diagonal,
    eigh,
    eigvalsh,
    inv,
    lstsq,
    matmul,
    matrix_power,
    matrix_rank,
    multi_dot,
    norm,
    outer,
    pinv,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
    tensordot,
    trace,
    vdot,
)

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vdot",
]


def __dir__() -> list[str]:
    return sorted(__all__)
