"""Initial values of parameters, written into a tensor in place.

Fans are as in SINGA: a matrix (in, out) has its rows as fan-in and its columns as fan-out; for a
convolution's weight (out, in, ...) both are multiplied by the size of the window; for any other
shape both are the square root of its size. Numbers come from a separate random stream, so that
they depend on the device's seed and not on other draws. Every function returns the tensor that it
filled.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from . import elsewhere, errors
from .tensor import Tensor
from .tensor.numbers import plain_real as _plain_real

__all__ = [
    "Initializer",
    "constant",
    "eye",
    "gaussian",
    "get",
    "glorot",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "msra",
    "ones",
    "orthogonal",
    "uniform",
    "xavier",
    "zeros",
]

elsewhere.closed(globals())

Initializer = Callable[[Tensor], object]


def zeros(t: Tensor) -> Tensor:
    """All 0."""
    return constant(t, 0.0)


def ones(t: Tensor) -> Tensor:
    """All 1."""
    return constant(t, 1.0)


def constant(t: Tensor, value: float) -> Tensor:
    """All `value`."""
    t.set_value(value)
    return t


def uniform(t: Tensor, fan_in: int = 0, fan_out: int = 0) -> Tensor:
    """Uniform with the variance 2 / (fan_in + fan_out), or 1 / fan if only one is given; the fans
    default to those of the shape."""
    limit = math.sqrt(3.0 / _mean_fan("uniform", t, fan_in, fan_out))
    return _uniform(t, limit)


def gaussian(t: Tensor, fan_in: int = 0, fan_out: int = 0) -> Tensor:
    """Normal with the variance 4 / (fan_in + fan_out), or 2 / fan if only one is given; the fans
    default to those of the shape."""
    return _normal(t, math.sqrt(2.0 / _mean_fan("gaussian", t, fan_in, fan_out)))


def lecun_uniform(t: Tensor) -> Tensor:
    """Uniform, variance 1 / fan_in (LeCun et al., Efficient BackProp, 1998)."""
    return _uniform_variance(t, 1.0, _fans(t.shape)[0])


def lecun_normal(t: Tensor) -> Tensor:
    """Normal, variance 1 / fan_in (LeCun et al., Efficient BackProp, 1998)."""
    return _normal_variance(t, 1.0, _fans(t.shape)[0])


def glorot_uniform(t: Tensor) -> Tensor:
    """Uniform, variance 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    return _uniform_variance(t, 1.0, sum(_fans(t.shape)) / 2)


def glorot_normal(t: Tensor) -> Tensor:
    """Normal, variance 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    return _normal_variance(t, 1.0, sum(_fans(t.shape)) / 2)


def he_uniform(t: Tensor) -> Tensor:
    """Uniform, variance 2 / fan_in (He et al., Delving Deep into Rectifiers, 2015)."""
    return _uniform_variance(t, 2.0, _fans(t.shape)[0])


def he_normal(t: Tensor) -> Tensor:
    """Normal, variance 2 / fan_in (He et al., Delving Deep into Rectifiers, 2015)."""
    return _normal_variance(t, 2.0, _fans(t.shape)[0])


def xavier(t: Tensor) -> Tensor:
    """Uniform, limit sqrt(6 / (shape[0] + shape[1])), SINGA's older name."""
    rows, columns = _leading("xavier", t)
    return _uniform(t, math.sqrt(6.0 / (rows + columns)))


def glorot(t: Tensor) -> Tensor:
    """Normal, deviation sqrt(2 / (shape[0] + shape[1])), SINGA's older name."""
    rows, columns = _leading("glorot", t)
    return _normal(t, math.sqrt(2.0 / (rows + columns)))


def msra(t: Tensor) -> Tensor:
    """Normal, deviation sqrt(2 / shape[0]), SINGA's older name."""
    _need_axes("msra", t, 1)
    return _normal(t, math.sqrt(2.0 / max(1, t.shape[0])))


def eye(t: Tensor) -> Tensor:
    """The identity matrix (ones on the diagonal of a matrix that is not square)."""
    if len(t.shape) != 2:
        raise ValueError(f"eye: got shape {t.shape}, want 2 axes")
    return _write(t, np.eye(*t.shape))


def orthogonal(t: Tensor, gain: float = 1.0) -> Tensor:
    """Orthogonal rows or columns, whichever are fewer, of the tensor seen as a matrix of
    `shape[0]` rows, times `gain` (Saxe et al., 2013)."""
    _need_axes("orthogonal", t, 2)
    factor = _plain_real(gain, "orthogonal: gain")
    if not math.isfinite(factor):
        raise ValueError(f"orthogonal: got gain {gain}, want a finite number")
    rows, columns = t.shape[0], math.prod(t.shape[1:])
    draw = Tensor((max(rows, columns), min(rows, columns)), t.device)
    draw.gaussian(0.0, 1.0)
    q, r = np.linalg.qr(draw.to_numpy().astype(np.float64))
    q *= np.where(np.diag(r) < 0, -1.0, 1.0)  # makes the distribution uniform
    return _write(t, factor * (q.T if rows < columns else q).reshape(t.shape))


def get(name: str | Initializer, argument: str = "initializer") -> Initializer:
    """The initialiser with a name, or the callable itself.

    Raises:
        ValueError: an unknown name; the message names `argument`.
        TypeError: neither a name nor a callable.
    """
    if callable(name):
        return name
    if not isinstance(name, str):
        raise TypeError(f"{argument}: got {name!r}, want an initialiser's name or a callable")
    if name not in BY_NAME:
        raise ValueError(f"{argument}: got {name!r}, want one of {', '.join(BY_NAME)}")
    return BY_NAME[name]


errors.name_functions(globals(), {"get"})

BY_NAME: dict[str, Initializer] = {
    function.__name__: function
    for function in (
        zeros, ones, uniform, gaussian, eye, orthogonal, lecun_uniform, lecun_normal,
        glorot_uniform, glorot_normal, he_uniform, he_normal, xavier, glorot, msra,
    )
}  # fmt: skip


def _fans(shape: tuple[int, ...]) -> tuple[float, float]:
    if len(shape) == 2:
        return shape[0], shape[1]
    if 3 <= len(shape) <= 5:
        window = math.prod(shape[2:])
        return shape[1] * window, shape[0] * window
    return math.sqrt(math.prod(shape)), math.sqrt(math.prod(shape))


def _mean_fan(name: str, t: Tensor, fan_in: float, fan_out: float) -> float:
    if not (0 <= fan_in < math.inf and 0 <= fan_out < math.inf):
        got = f"{name}: got fans {fan_in} and {fan_out}"
        raise ValueError(f"{got}, want finite numbers, none below 0")
    if not fan_in and not fan_out:
        fan_in, fan_out = _fans(t.shape)
    return max(1.0, (fan_in + fan_out) / (2 if fan_in and fan_out else 1))


def _uniform_variance(t: Tensor, scale: float, fan: float) -> Tensor:
    return _uniform(t, math.sqrt(3.0 * scale / max(1.0, fan)))


def _normal_variance(t: Tensor, scale: float, fan: float) -> Tensor:
    return _normal(t, math.sqrt(scale / max(1.0, fan)))


def _uniform(t: Tensor, limit: float) -> Tensor:
    return t.uniform(-limit, limit)


def _normal(t: Tensor, std: float) -> Tensor:
    return t.gaussian(0.0, std)


def _leading(name: str, t: Tensor) -> tuple[int, int]:
    _need_axes(name, t, 2)
    return max(1, t.shape[0]), t.shape[1]


def _need_axes(name: str, t: Tensor, least: int) -> None:
    if len(t.shape) < least:
        raise ValueError(f"{name}: got shape {t.shape}, want at least {least} axes")


def _write(t: Tensor, values: np.ndarray) -> Tensor:
    t.copy_from_numpy(values)
    return t
