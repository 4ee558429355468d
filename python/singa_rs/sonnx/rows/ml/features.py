"""Features: selected, joined, filled in and scaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import autograd
from ....autograd.casting import cast, floating
from ....errors import ShapeError
from ....tensor import Tensor, constant, float32
from ...table import reads

DOMAIN = "ai.onnx.ml"


def table(array: np.ndarray, like: Tensor) -> Tensor:
    """An array of a node's, in its own dtype, where a tensor is."""
    return constant(np.ascontiguousarray(array), like.device, array.dtype.name)


def row(values: Any, x: Tensor, dtype: Any = None) -> Tensor:
    """The numbers of an attribute, which broadcast along the last axis of `x`."""
    return constant(list(values), x.device, dtype or x.dtype)


@reads("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(x: Tensor, places: Tensor) -> Tensor:
    """The columns at some places; of a vector as a matrix of one row."""
    found = autograd.gather(x, -1, places.reshape((-1,)))
    return found.reshape((1, -1)) if x.rank == 1 else found


@reads("Binarizer", domain=DOMAIN)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    """1 where `x` is above a threshold, else 0."""
    return cast(x > threshold, x.dtype)


@reads("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(*xs: Tensor, inputdimensions: tuple[int, ...] = ()) -> Tensor:
    """Columns side by side in float32: of each input as many as its dimension says, those that are
    missing as zeros."""
    if len(inputdimensions) != len(xs):
        raise ValueError(
            f"FeatureVectorizer: got inputdimensions {inputdimensions}, want one for each of "
            f"{len(xs)} inputs"
        )
    given = zip(xs, inputdimensions, strict=True)
    return autograd.cat([_columns(cast(x, float32), n) for x, n in given], 1)


def _columns(x: Tensor, count: int) -> Tensor:
    x = x.reshape((-1, 1)) if x.rank == 1 else x
    lacking = count - x.shape[1]
    return x[:, :count] if lacking <= 0 else autograd.pad(x, "constant", (0, 0, 0, lacking))


@reads("Imputer", domain=DOMAIN)
def imputer(
    x: Tensor, *, imputed_value_floats: Any = (), imputed_value_int64s: Any = (),
    replaced_value_float: float = 0.0, replaced_value_int64: int = 0,
) -> Tensor:  # fmt: skip
    """`x` with another value, for all or for each column, in place of one that stands for none."""
    is_float = x.dtype.is_float
    values = imputed_value_floats if is_float else imputed_value_int64s
    if len(values) not in (1, x.shape[-1]):
        want = f"1 or {x.shape[-1]}"
        raise ShapeError(f"Imputer: got {len(values)} values for {x.dtype.name}, want {want}")
    absent = replaced_value_float if is_float else replaced_value_int64
    is_absent = autograd.isnan(x) if absent != absent else x.detach() == absent
    return autograd.where(is_absent, row(values, x), x)


def _largest(x: Tensor) -> Tensor:
    return autograd.reduce_max(autograd.abs(x), -1, 1)


_LENGTHS: dict[str, Callable[[Tensor], Tensor]] = {
    "MAX": _largest,
    "L1": lambda x: autograd.norm(x, 1, -1, True),
    "L2": lambda x: autograd.norm(x, 2, -1, True),
}


@reads("Normalizer", domain=DOMAIN)
def normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    """Rows divided by their largest size or by their norm, "MAX", "L1" or "L2", in float32; rows of
    zeros stay."""
    if norm not in _LENGTHS:
        raise ValueError(f"Normalizer: got norm {norm!r}, want 'MAX', 'L1' or 'L2'")
    length = _LENGTHS[norm](floating(x))
    return cast(x / autograd.where(length.detach() == 0, 1.0, length), float32)


@reads("Scaler", domain=DOMAIN)
def scaler(x: Tensor, *, offset: Any, scale: Any) -> Tensor:
    """`(x - offset) scale` for each column, in float32."""
    wide = floating(x)
    return cast((wide - row(offset, wide)) * row(scale, wide), float32)
