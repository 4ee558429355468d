"""Activations with parameters. ONNX's attributes are of float32: float64 with parameters that
float32 does not have gets nodes with constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..program import Step
from ..writing import Writer
from .arithmetic import expm1

#: Writes a function of a value in float64, with its parameters as the engine calls them.
Composed = Callable[..., str]


def _written(kind: str, composed: Composed, **names: str) -> Callable[..., str]:
    """A writer of an operator whose attributes have these names, by the engine's."""

    def write(w: Writer, step: Step, x: str, **params: float) -> str:
        is_exact = all(float(np.float32(one)) == one for one in params.values())
        if w.meta(step.inputs[0]).dtype == "float64" and not is_exact:
            return composed(w, x, **params)
        return w.node(kind, [x], **{names[name]: one for name, one in params.items()})

    return write


def _by_sign(w: Writer, x: str, below: str) -> str:
    """`x`, or another value where it is negative."""
    return w.node("Where", [w.node("Less", [x, w.constant(0, "float64")]), below, x])


def _times(w: Writer, x: str, factor: float) -> str:
    return w.node("Mul", [x, w.constant(factor, "float64")])


def _leaky(w: Writer, x: str, a: float) -> str:
    return _by_sign(w, x, _times(w, x, a))


def _elu(w: Writer, x: str, alpha: float) -> str:
    return _by_sign(w, x, _times(w, expm1(w, x, "float64"), alpha))


def _selu(w: Writer, x: str, alpha: float, gamma: float) -> str:
    return _times(w, _elu(w, x, alpha), gamma)


def _hard_sigmoid(w: Writer, x: str, alpha: float, gamma: float) -> str:
    line = w.node("Add", [_times(w, x, alpha), w.constant(gamma, "float64")])
    return w.node("Clip", [line, *(w.constant(one, "float64") for one in (0, 1))])


#: By the engine's name.
BY_TAG: dict[str, Any] = {
    "leakyrelu": _written("LeakyRelu", _leaky, a="alpha"),
    "elu": _written("Elu", _elu, alpha="alpha"),
    "selu": _written("Selu", _selu, alpha="alpha", gamma="gamma"),
    "hardsigmoid": _written("HardSigmoid", _hard_sigmoid, alpha="alpha", gamma="beta"),
}
