"""Factors, inverses and determinants of matrices, and linear systems."""

import numpy as np
from singa_rs import autograd, tensor

from .base import WIDE, Arg, Bad, Table

S = (2, 4, 4)
TALL, FLAT = (2, 5, 3), (2, 3, 5)
table = Table()


def across(x):
    return np.swapaxes(x, -1, -2)


def regular(x):
    """Matrices that are far from singular ones."""
    return x + 5 * np.eye(x.shape[-1])


def positive(x):
    return x @ across(x) + np.eye(x.shape[-1])


def symmetric(x):
    return x + across(x) + np.diag(3.0 * np.arange(x.shape[-1]) ** 2)


def qr(x):
    """With a diagonal of R that is not negative."""
    q, r = np.linalg.qr(x)
    signs = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return q * signs[..., None, :], r * signs[..., None]


def columns_alike(got, want):
    """Equal but for the signs of columns."""
    signs = np.sign((got * want).sum(-2, keepdims=True))
    np.testing.assert_allclose(got * signs, want, rtol=2e-4, atol=2e-4)


def check_svd(inputs, outputs):
    (x,), (u, s, vt) = inputs, outputs
    want = np.linalg.svd(x.astype(np.float64), full_matrices=False)
    columns_alike(u, want[0])
    columns_alike(across(vt), across(want[2]))
    np.testing.assert_allclose(s, want[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose((u * s[..., None, :]) @ vt, x, rtol=1e-5, atol=1e-5)


def check_eigh(inputs, outputs):
    (x,), (w, v) = inputs, outputs
    values, vectors = np.linalg.eigh(x.astype(np.float64))
    np.testing.assert_allclose(w, values, rtol=1e-5, atol=1e-5)
    columns_alike(v, vectors)


def of_matrices(f, reference, arg, derive, gradient, **options):
    """A function of matrices, on what `derive` makes of samples, and its gradient through that."""
    square = () if f in ("qr", "svd") else (Bad(ValueError, shapes=((2, 3),)),)
    table.case(
        "linalg",
        reference and (lambda x: reference(derive(x))),
        Arg(arg),
        attrs={"f": f},
        dtypes=WIDE,
        derive=lambda x: (derive(x),),
        derived=(None,),
        gradient=gradient,
        specials=(),
        bad=(
            *square,
            Bad(ValueError, shapes=((4,),)),
            Bad(TypeError, dtypes=("float16",)),
            Bad(TypeError, dtypes=("int32",)),
        ),
        **options,
    )


EMPTY = {"empty": (((0, 3, 3),), ((2, 0, 0),))}
LARGE = {"large": ((600, 5, 5),)}


def eye(x):
    return tensor.eye(x.shape[-1], dtype=x.dtype)


of_matrices(
    "cholesky",
    np.linalg.cholesky,
    S,
    positive,
    lambda x: autograd.cholesky(x @ x.transpose((0, 2, 1)) + eye(x)),
    **EMPTY,
    **LARGE,
)
of_matrices(
    "inv", np.linalg.inv, S, regular, lambda x: autograd.inv(x + 5 * eye(x)), **EMPTY, **LARGE
)
of_matrices(
    "det", np.linalg.det, S, regular, lambda x: autograd.det(x + 5 * eye(x)), scale=400, **EMPTY
)
of_matrices(
    "slogdet",
    lambda x: tuple(np.linalg.slogdet(x)),
    S,
    regular,
    None,
    **EMPTY,
)
of_matrices("qr", qr, TALL, lambda x: x, lambda x: autograd.qr(x)[0], scale=20, **EMPTY)
of_matrices("qr", qr, FLAT, lambda x: x, None, label="flat", scale=20)
of_matrices("svd", None, TALL, lambda x: x, None, check=check_svd)
of_matrices("svd", None, FLAT, lambda x: x, None, label="flat", check=check_svd)
of_matrices("eigh", None, S, symmetric, None, check=check_eigh)


def system(family, derive, gradient, reference, **options):
    """Solutions for matrices that `derive` makes of samples."""
    table.case(
        family,
        lambda a, b: reference(derive(a), b),
        Arg(S),
        Arg((2, 4, 3)),
        dtypes=WIDE,
        derive=lambda a, b: (derive(a), b),
        derived=(None, None),
        gradient=gradient,
        specials=(),
        empty=(((0, 3, 3), (0, 3, 2)), ((2, 0, 0), (2, 0, 1)), ((2, 3, 3), (2, 3, 0))),
        bad=(
            Bad(ValueError, shapes=((4, 4), (3, 4))),
            Bad(ValueError, shapes=((2, 4, 4), (3, 4, 1))),
            Bad(ValueError, shapes=((3, 4), (3, 4))),
            Bad(TypeError, dtypes=("float32", "float64")),
            Bad(TypeError, dtypes=("float16", "float16")),
        ),
        **options,
    )


system(
    "solve",
    regular,
    lambda a, b: autograd.solve(a + 5 * eye(a), b),
    np.linalg.solve,
    large=((600, 5, 5), (600, 5, 3)),
)
for _lower in (True, False):
    for _unit in (True, False):

        def triangle(a, lower=_lower, unit=_unit):
            part = np.tril(a) if lower else np.triu(a)
            return part * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1]) if unit else part

        system(
            "triangular_solve",
            regular,
            lambda a, b, lower=_lower, unit=_unit: autograd.solve_triangular(
                a + 5 * eye(a), b, not lower, unitriangular=unit
            ),
            lambda a, b, triangle=triangle: np.linalg.solve(triangle(a), b),
            attrs={"lower": _lower, "unit": _unit},
            label=f"{'lower' if _lower else 'upper'}{'-unit' * _unit}",
            scale=50,
        )
