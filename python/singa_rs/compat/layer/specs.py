"""How a parameter begins and is trained: SINGA 1.x's `ParamSpec`, and the dictionaries that layers
take for it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ... import initializer
from ...layer.check import number
from ...tensor import Tensor

#: What a dictionary may have: numbers, and two texts.
_NUMBERS = (
    "lr_mult", "decay_mult", "value", "low", "high", "mean", "std", "regularizer", "constraint",
)  # fmt: skip
_FIELDS = ("name", "init", *_NUMBERS)
#: Numbers that a kind of initial values needs.
_NEEDS = {"uniform": ("low", "high"), "gaussian": ("mean", "std")}
_KINDS = ("constant", "uniform", "gaussian", "xavier", "glorot", "msra")


class Filler:
    """The initial values: `type`, one of "constant" (of `value`), "uniform" (from `min` to `max`),
    "gaussian" (`mean`, `std`), "xavier", "glorot" and "msra", which depend on the shape."""

    def __init__(self, kind: str, fields: Mapping[str, float]) -> None:
        self.type = kind
        self.value = fields.get("value", 0.0)
        self.min, self.max = fields.get("low", 0.0), fields.get("high", 1.0)
        self.mean, self.std = fields.get("mean", 0.0), fields.get("std", 1.0)

    def fill(self, t: Tensor) -> None:
        """Writes the initial values into a parameter."""
        if self.type == "constant":
            t.set_value(self.value)
        elif self.type == "uniform":
            t.uniform(self.min, self.max)
        elif self.type == "gaussian":
            t.gaussian(self.mean, self.std)
        elif self.type == "msra":
            initializer.msra(t)
        else:
            by_fans = {"xavier": initializer.glorot_uniform, "glorot": initializer.glorot_normal}
            by_fans[self.type](t)


class Limit:
    """A regularizer (`coefficient`) or a constraint (`threshold`) of one parameter: "l2", with one
    number."""

    type = "l2"

    def __init__(self, value: float) -> None:
        self.coefficient = self.threshold = value


class ParamSpec:
    """The specification of a parameter: `name`, `lr_mult` and `decay_mult`, which multiply the
    optimizer's learning rate and weight decay; `filler`; `regularizer` and `constraint`, or None.
    """

    def __init__(self, specs: Mapping[str, Any], argument: str) -> None:
        """Of a dictionary that a layer was given.

        Raises:
            TypeError, ValueError: a field that is missing or out of its range; the message begins
                with `argument`. Unknown fields are ignored with a warning.
        """
        if not isinstance(specs, Mapping):
            raise TypeError(f"{argument}: got {type(specs).__name__}, want a dictionary")
        unknown = sorted(set(map(str, specs)) - set(_FIELDS))
        if unknown:  # SINGA ignores them in silence
            known = ", ".join(_FIELDS)
            warnings.warn(f"{argument}: ignores {', '.join(unknown)}; knows {known}", stacklevel=5)
        given = {k: number(specs[k], f"{argument}: {k}") for k in _NUMBERS if k in specs}
        self.name = str(specs["name"])
        self.lr_mult = given.get("lr_mult", 1.0)
        self.decay_mult = given.get("decay_mult", 1.0)
        self.filler = Filler(_kind(specs.get("init", "constant"), given, argument), given)
        self.regularizer = _limit(given.get("regularizer"))
        self.constraint = _limit(given.get("constraint"))

    def HasField(self, name: str) -> bool:
        """Whether the field was given (protocol buffers)."""
        return getattr(self, name) is not None

    def __repr__(self) -> str:
        return f"ParamSpec({self.name!r}, {self.filler.type})"


def _limit(value: float | None) -> Limit | None:
    return None if value is None else Limit(value)


def _kind(name: Any, given: Mapping[str, float], argument: str) -> str:
    kind = str(name).lower()
    if kind not in _KINDS:
        raise ValueError(f"{argument}: init: got {name!r}, want one of {', '.join(_KINDS)}")
    missing = [field for field in _NEEDS.get(kind, ()) if field not in given]
    if missing:
        raise ValueError(f"{argument}: init {kind!r} needs {' and '.join(missing)}")
    return kind
