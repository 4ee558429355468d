"""Other names: those under which NumPy and PyTorch have what stands elsewhere."""

from __future__ import annotations

import inspect
from typing import Any

from .._core import ShapeError
from ..errors import called
from ..tensor import Tensor, as_tensor
from . import (
    activations,
    along,
    angles,
    arrange,
    axes,
    binary,
    pairs,
    parametrised,
    powers,
    reduce,
    repeat,
    shape,
    sorting,
    unary,
)
from .along import take_along_axis
from .reduce import Axes
from .table import FUNCTIONS, METHODS, as_method, public

#: Where the functions come from, which have to be there first.
_HOMES = (
    activations,
    along,
    angles,
    arrange,
    axes,
    binary,
    pairs,
    parametrised,
    powers,
    repeat,
    shape,
    sorting,
    unary,
)
#: By library: other names, and the functions that they are.
_OTHERS = {
    "NumPy": """
        absolute=abs arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctan2=atan2
        arctanh=atanh concatenate=cat concat=cat fix=trunc rint=rounde power=pow
        true_divide=div divide=div multiply=mul subtract=sub expand_dims=unsqueeze row_stack=vstack
    """,
    "PyTorch": """
        movedim=moveaxis swapdims=swapaxes repeat_interleave=repeat
        neg=negative gt=greater ge=greater_equal lt=less le=less_equal eq=equal ne=not_equal
        leaky_relu=leakyrelu log_sigmoid=logsigmoid swish=silu ger=outer sgn=sign
        gammaln=lgamma psi=digamma expit=sigmoid
    """,
}
#: Those that are no methods: NumPy's arrays do not have them either, or others do the same.
_FUNCTIONS_ONLY = {"concatenate", "concat", "power", "leaky_relu", "swish", "subtract"}


def _named(name: str, old: str, library: str) -> None:
    function = FUNCTIONS[old]

    def other(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    other.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    doc = f"`{old}` ({library} {name})."
    is_method = old in METHODS and name not in _FUNCTIONS_ONLY
    public(methods=name if is_method else "")(called(other, name, doc, __package__))


for _library, _rows in _OTHERS.items():
    for _row in _rows.split():
        _named(*_row.split("="), _library)


@public(methods="amax")
def amax(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest over `axis`, all by default (NumPy amax, PyTorch amax); NaN wins, and equal ones
    share the gradient.

    Raises:
        ValueError: axes that `x` does not have, or without elements.
    """
    return reduce.reduce_max(x, axis, keepdims)


@public(methods="amin")
def amin(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest over `axis`, all by default (NumPy amin, PyTorch amin); NaN wins, and equal ones
    share the gradient.

    Raises:
        ValueError: axes that `x` does not have, or without elements.
    """
    return reduce.reduce_min(x, axis, keepdims)


@public(precision="wide")
def prod(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The product over `axis`, all by default (NumPy prod, PyTorch prod); integers give int64.

    Raises:
        ValueError: axes that `x` does not have.
    """
    return reduce.reduce_prod(x, axis, keepdims)


@public()
def permute(x: Tensor, axes: Any) -> Tensor:
    """A view with the axes in another order (PyTorch permute, ONNX Transpose).

    Raises:
        ValueError: axes that `x` does not have, or not all of them.
    """
    return shape.transpose(x, axes)


@public(methods="ravel")
def ravel(x: Tensor) -> Tensor:
    """All elements in one dimension (NumPy ravel): a view of a row-major tensor, of others a copy.
    `reshape(-1)` gives views of some others, too."""
    return shape.plain_reshape(x if x.is_contiguous() else shape.clone(x), (x.numel,))


@public(methods="take_along_dim")
def take_along_dim(x: Tensor, indices: Any, axis: int | None = None) -> Tensor:
    """`take_along_axis`, of the flattened tensor and indices by default (PyTorch
    take_along_dim)."""
    if axis is None:
        indices = as_tensor(indices, x.device)
        indices = shape.plain_reshape(indices, (indices.numel,))
    return take_along_axis(x, indices, axis)


@as_method("t")
def _t(self: Tensor) -> Tensor:
    """A view of a matrix with its axes exchanged; fewer than two dimensions stay (PyTorch t).

    Raises:
        ShapeError: more than two dimensions.
    """
    if self.rank > 2:
        raise ShapeError(f"t: got shape {self.shape}, want two dimensions at most")
    return shape.transpose(self) if self.rank == 2 else shape.plain_reshape(self, self.shape)
