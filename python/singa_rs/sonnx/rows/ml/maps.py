"""Maps from keys to numbers, which are Python dicts on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tensor import Tensor
from ...running import Frame
from ...table import reads
from .features import DOMAIN

_CASTS = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}


@reads("ZipMap", domain=DOMAIN, raw=True)
def zip_map(
    x: Tensor, *, classlabels_int64s: Any = (), classlabels_strings: Any = (), frame: Frame,
) -> list[dict[Any, float]]:  # fmt: skip
    """For each row a dict of its columns by their labels."""
    labels = classlabels_strings or classlabels_int64s
    rows = np.atleast_2d(frame.read(x))
    return [dict(zip(labels, map(float, one), strict=True)) for one in rows]


@reads("DictVectorizer", domain=DOMAIN, raw=True)
def dict_vectorizer(
    x: dict[Any, Any], *, int64_vocabulary: Any = (), string_vocabulary: Any = ()
) -> np.ndarray:
    """The values of a dict in the order of a vocabulary, 0 for what is not in it."""
    kind = next(iter(x.values()), 0.0)
    dtype = {str: object, float: np.float32, int: np.int64}.get(type(kind), np.asarray(kind).dtype)
    none = "" if isinstance(kind, str) else 0
    return np.array([x.get(key, none) for key in string_vocabulary or int64_vocabulary], dtype)


@reads("CastMap", domain=DOMAIN, raw=True)
def cast_map(
    x: dict[int, Any], *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> np.ndarray:
    """The values of a dict by ascending keys, or each at the place that its key is."""
    if cast_to not in _CASTS or map_form not in ("DENSE", "SPARSE"):
        got = f"cast_to {cast_to!r} and map_form {map_form!r}"
        raise ValueError(f"CastMap: got {got}, want TO_FLOAT, TO_INT64 or TO_STRING; DENSE, SPARSE")
    keys = sorted(x) if map_form == "DENSE" else range(max_map)
    convert = {"TO_STRING": str, "TO_INT64": int, "TO_FLOAT": float}[cast_to]
    none = "" if cast_to == "TO_STRING" else 0
    return np.array([[convert(x[key]) if key in x else none for key in keys]], _CASTS[cast_to])
