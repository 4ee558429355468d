"""Linear algebra, on matrices that are far from singular ones whatever was drawn."""

from __future__ import annotations

from .functions import _matrices
from .registry import register

#: A matrix of numbers from -1 to 1, and a symmetric positive definite one.
_ANY = "autograd.tanh(autograd.nan_to_num(autograd.cast({x}, 'float32')))"
_DEFINITE = f"({_ANY}.t() @ {_ANY} + 2 * tensor.eye({{m}}))"

#: By name: the matrix, other arguments, and what of the result is taken.
_FORMS = {
    "cholesky": (_DEFINITE, "", ""),
    "inv": (_DEFINITE, "", ""),
    "inverse": (_DEFINITE, "", ""),
    "det": (f"({_DEFINITE} / 5)", "", ""),
    "slogdet": (_DEFINITE, "", ".logabsdet"),
    "qr": (_DEFINITE, "", ".Q"),
    "svd": (_ANY, "", ".S"),
    "svdvals": (_ANY, "", ""),
    "eigh": (_DEFINITE, "", ".eigenvalues"),
    "eigvalsh": (_DEFINITE, "", ""),
    "pinv": (_ANY, "0.1", ""),
    "pinverse": (_ANY, "0.1", ""),
    "matrix_rank": (_ANY, "rcond=0.1", ""),
}
for _name, (_matrix, _args, _part) in _FORMS.items():
    _call = f"({_matrix}, {_args})" if _args else f"({_matrix})"
    register((f"autograd.{_name}",), f"autograd.{_name}{_call}{_part}", _matrices)
    register((f"Tensor.{_name}",), f"{_matrix}.{_name}({_args}){_part}", _matrices)
for _form in (
    f"solve({_DEFINITE}, {_ANY}.t())",
    f"solve_triangular({_DEFINITE}, {_ANY}.t(), True)",
    f"lstsq({_ANY}, {_ANY}[:, 0], 0.1).solution",
):
    _name = _form.partition("(")[0]
    register((f"autograd.{_name}",), f"autograd.{_form}", _matrices)
