"""PyTorch's names of keywords, beside those that functions and methods have here.

They cost calls with other keywords nothing: Python refuses a keyword that it does not know before a
function runs, and `respelt` says how to call it again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np

#: PyTorch's names in all functions that have the parameter, ...
_PYTORCH = {"dim": "axis", "keepdim": "keepdims"}
_CORRECTION = {"correction": "ddof", "unbiased": "ddof"}
_AXES = {"dim": "axes"}
_DIMENSIONS = {"dim1": "axis1", "dim2": "axis2"}
_UPDATES = {"index": "indices", "src": "updates"}
#: ... and in single ones.
_PYTORCH_OF = {
    "cat": {"tensors": "xs"},
    "concat": {"tensors": "xs"},
    "cov": {"correction": "ddof"},
    "diag_embed": _DIMENSIONS,
    "diagonal": _DIMENSIONS,
    "flatten": {"start_dim": "axis", "end_dim": "axis"},
    "flip": {"dims": "axis"},
    "gather": {"index": "indices"},
    "index_add": {"index": "indices", "source": "updates"},
    "index_copy": {"index": "indices", "source": "updates"},
    "index_fill": {"index": "indices"},
    "index_select": {"index": "indices"},
    "interpolate": {"scale_factor": "scale", "align_corners": "coordinates"},
    "layer_norm": {"weight": "scale"},
    "nanquantile": {"interpolation": "method"},
    "norm": {"p": "ord"},
    "permute": {"dims": "axes"},
    "quantile": {"interpolation": "method"},
    "reduce_max": _AXES,
    "reduce_mean": _AXES,
    "reduce_min": _AXES,
    "reduce_prod": _AXES,
    "reduce_sum": _AXES,
    "rms_norm": {"weight": "scale"},
    "roll": {"shifts": "shift", "dims": "axis"},
    "rot90": {"dims": "axes"},
    "scatter": _UPDATES | {"value": "updates"},
    "scatter_add": _UPDATES,
    "scatter_reduce": _UPDATES,
    "select_scatter": {"src": "source"},
    "slice_scatter": {"src": "source"},
    "split": {"split_size": "parts", "split_size_or_sections": "parts"},
    "stack": {"tensors": "xs"},
    "std": _CORRECTION,
    "std_mean": _CORRECTION,
    "swapaxes": {"dim0": "axis1", "dim1": "axis2"},
    "swapdims": {"dim0": "axis1", "dim1": "axis2"},
    "take": {"index": "indices"},
    "tensor_split": {"indices_or_sections": "sections"},
    "tensordot": {"dims": "axes"},
    "unfold": {"dimension": "axis"},
    "var": _CORRECTION,
    "var_mean": _CORRECTION,
}
#: Functions whose namesakes in PyTorch give something else, and what is to be called instead.
_UNLIKE = {
    "flatten": "axis, which gives a matrix, or reshape",
    "gather": "take_along_dim, which is PyTorch's gather",
    "gradient": "axis, with which a single one gives a tensor, and no tuple",
    "median": "axis for the mean of both middle values, or kthvalue for the lower one",
    "nanmedian": "axis for the mean of both middle values",
    "split": "split(axis, parts) for these extents, or chunk for their number",
}
#: Functions that divide by `n` here and by `n - 1` in PyTorch, unless they are told.
_CORRECTED = {name for name, names in _PYTORCH_OF.items() if names is _CORRECTION}


def spellings(name: str, function: Callable[..., Any]) -> dict[str, str]:
    """PyTorch's keywords that a function takes, and its own for the same."""
    return {} if name in _UNLIKE else _known(name, function)


@cache
def _known(name: str, function: Callable[..., Any]) -> dict[str, str]:
    """PyTorch's keywords for parameters of a function; a method that works in place has those of
    the one that makes a new tensor."""
    own, given = _parameters(function), _PYTORCH | _PYTORCH_OF.get(name.removesuffix("_"), {})
    return {theirs: ours for theirs, ours in given.items() if ours in own and theirs not in own}


@cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


@cache
def _positions(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters that arguments without a keyword may be for."""
    found = _parameters(function).values()
    return tuple(one.name for one in found if one.kind is one.POSITIONAL_OR_KEYWORD)


def respelt(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The keywords of a call that Python refused, with the function's own instead of PyTorch's;
    None if there are none of these.

    Raises:
        TypeError: an argument under two names; a call that has another result in PyTorch.
    """
    names = _known(name, function)
    if names.keys().isdisjoint(kwargs):
        return None
    if name in _UNLIKE:
        key = next(key for key in kwargs if key in names)
        raise TypeError(f"{name}: got {key}, PyTorch's {name} is another; want {_UNLIKE[name]}")
    given = {own: (own, value) for own, value in zip(_positions(function), args, strict=False)}
    for key, value in kwargs.items():
        own = names.get(key, key)
        if own in given:
            raise TypeError(f"{name}: got both {given[own][0]} and {key}, want one of them")
        given[own] = key, _VALUES[key](name, value) if key in _VALUES else value
    _check_meaning(name, given)
    return {own: value for own, (key, value) in given.items() if key in kwargs}


def _flag(name: str, key: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: got {value!r} for {key}, want a bool")
    return bool(value)


#: What flags of PyTorch's are here.
_VALUES: dict[str, Callable[[str, Any], Any]] = {
    "align_corners": lambda name, value: (
        "pytorch_align_corners"
        if value is not None and _flag(name, "align_corners", value)
        else None
    ),
    "unbiased": lambda name, value: int(_flag(name, "unbiased", value)),
}


def _check_meaning(name: str, given: Mapping[str, tuple[str, Any]]) -> None:
    """Refuses what PyTorch answers in another way. `given` has, by parameter, the keyword and the
    value."""
    key = next(key for own, (key, _) in given.items() if own != key)
    if name in _CORRECTED and "ddof" not in given:
        raise TypeError(
            f"{name}: got {key} without unbiased, want unbiased=True, PyTorch's default, or "
            "unbiased=False, the default here"
        )
    spelt, axis = given.get("axis", given.get("axes", (key, None)))
    if spelt == "dim" and isinstance(axis, (tuple, list)) and not axis:  # to PyTorch, all axes
        raise TypeError(f"{name}: got no axes for dim, want one at least")
    if name == "norm":
        _check_norm(key, axis, given.get("ord", ("", None))[1])


def _check_norm(key: str, axis: Any, order: Any) -> None:
    is_one = isinstance(axis, Integral) or (isinstance(axis, (tuple, list)) and len(axis) == 1)
    if isinstance(order, Real) and not is_one:
        got = f"{key} with order {order} and axis {axis}"
        raise TypeError(f"norm: got {got}, want one axis; PyTorch's is of all elements of several")
