"""Labels: numbers and strings that stand for each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import autograd
from ....autograd.casting import cast
from ....tensor import Tensor, from_numpy, int64
from ...running import Frame
from ...table import reads
from ...values import is_text, to_tensor
from .features import DOMAIN, table


def places(x: Any, keys: Sequence[Any], frame: Frame) -> Tensor:
    """For each element the last place at which it is among the keys, their number if at none.

    Strings are looked up on the host. NaN is found where a key is NaN.
    """
    known = {_named(key): i for i, key in enumerate(keys)}
    if is_text(x):
        found = [known.get(str(one), len(keys)) for one in x.ravel()]
        return from_numpy(np.array(found, np.int64).reshape(x.shape), frame.device, dtype=int64)
    x = x if isinstance(x, Tensor) else to_tensor(x, frame.device)
    nan = known.pop("NaN", len(keys))
    numbers = sorted(key for key in known if not isinstance(key, str))
    made = _found(x, numbers, [known[key] for key in numbers], len(keys))
    return autograd.where(autograd.isnan(x), nan, made) if x.dtype.is_float else made


def _named(key: Any) -> Any:
    return "NaN" if isinstance(key, float) and math.isnan(key) else key


def _found(x: Tensor, numbers: list[Any], at: list[int], none: int) -> Tensor:
    """The place of each element among ascending numbers, which stand at these places."""
    wide = x if x.dtype.is_float else cast(x, int64)
    known = table(np.array([*numbers, *(numbers[-1:] or [0])], wide.dtype.name), x)
    near = autograd.searchsorted(known[:-1], wide)
    order = table(np.array([*at, none], np.int64), x)
    is_known = autograd.gather(known, 0, near) == wide
    return autograd.where(is_known, autograd.gather(order, 0, near), none)


def looked_up(at: Tensor, values: Sequence[Any], dtype: Any, frame: Frame) -> Any:
    """The values at these places: a tensor, or an array of strings on the host."""
    if dtype is object:
        return np.array(values, object)[np.asarray(frame.read(at), np.int64)]
    return autograd.gather(table(np.array(values, dtype), at), 0, at)


def _given(attributes: dict[str, Any], kind: str) -> tuple[str, Any]:
    """The one of an operator's attributes of a kind that is there, with the end of its name."""
    found = [(name, value) for name, value in attributes.items() if name.startswith(kind)]
    if len(found) != 1:
        names = ", ".join(name for name, _ in found) or "none"
        raise ValueError(f"LabelEncoder: got {names}, want one attribute {kind}*")
    return found[0][0].removeprefix(kind), found[0][1]


#: By the end of an attribute's name: the dtype of its values, and their default.
_KINDS = {
    "strings": (object, "default_string", "_Unused"),
    "int64s": (np.int64, "default_int64", -1),
    "floats": (np.float32, "default_float", -0.0),
}


@reads("LabelEncoder", since=2, domain=DOMAIN, raw=True)
def label_encoder(x: Any, *, frame: Frame, **attributes: Any) -> Any:
    """For each key its value; a default for what is no key."""
    _, keys = _given(attributes, "keys_")
    kind, values = _given(attributes, "values_")
    if kind == "tensor":
        dtype = object if is_text(values) else values.dtype
        name, default = "default_tensor", "_Unused" if is_text(values) else -1
    else:
        dtype, name, default = _KINDS[kind]
    other = np.ravel(attributes.get(name, default))[0]
    at = places(x, [_plain(key) for key in keys], frame)
    return looked_up(at, [*values, other], dtype, frame)


def _plain(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


@reads("LabelEncoder", domain=DOMAIN, raw=True)
def label_encoder_of_classes(
    x: Any, *, classes_strings: tuple[str, ...] = (), default_int64: int = -1,
    default_string: str = "_Unused", frame: Frame,
) -> Any:  # fmt: skip
    """Strings as their places among the classes, or places as strings."""
    numbers = tuple(range(len(classes_strings)))
    defaults = {"default_int64": default_int64, "default_string": default_string}
    return category_mapper(
        x, cats_strings=classes_strings, cats_int64s=numbers, **defaults, frame=frame
    )


@reads("CategoryMapper", domain=DOMAIN, raw=True)
def category_mapper(
    x: Any, *, cats_strings: tuple[str, ...], cats_int64s: tuple[int, ...],
    default_int64: int = -1, default_string: str = "_Unused", frame: Frame,
) -> Any:  # fmt: skip
    """Strings as numbers, or numbers as strings."""
    if is_text(x):
        at = places(x, cats_strings, frame)
        return looked_up(at, [*cats_int64s, default_int64], np.int64, frame)
    at = places(x, cats_int64s, frame)
    return looked_up(at, [*cats_strings, default_string], object, frame)


@reads("OneHotEncoder", domain=DOMAIN, raw=True)
def one_hot_encoder(
    x: Any, *, cats_int64s: tuple[int, ...] = (), cats_strings: tuple[str, ...] = (),
    zeros: int = 1, frame: Frame,
) -> Tensor:  # fmt: skip
    """A new last axis with 1 at the place of an element's category, in float32."""
    categories = cats_strings if is_text(x) else cats_int64s
    if isinstance(x, Tensor):
        x = cast(x, int64)
    at = places(x, categories, frame)
    if not zeros and np.any(frame.read(at) == len(categories)):
        raise ValueError("OneHotEncoder: got an element that is in no category, but zeros is 0")
    return autograd.one_hot(at, len(categories) + 1, dtype="float32")[..., :-1]
