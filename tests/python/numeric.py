"""Derivatives by finite differences in float64, as references for gradients."""

from collections.abc import Callable, Sequence

import numpy as np


def vjp(f: Callable, inputs: Sequence[np.ndarray], which: int, dys: Sequence, step=2e-3):
    """The gradient of sum(dy * f(inputs)) with respect to input `which`.

    Central differences at two steps, extrapolated (Richardson): the error is of fourth order in the
    step, about 1e-10 for the functions here.
    """

    def total(x: np.ndarray) -> float:
        outputs = f(*inputs[:which], x, *inputs[which + 1 :])
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = zip(outputs, dys, strict=False)
        return sum(float(np.sum(y * dy)) for y, dy in pairs if dy is not None)

    x = np.array(inputs[which], dtype=np.float64)
    gradient = np.zeros_like(x)
    for place in np.ndindex(x.shape):

        def central(h: float, place=place) -> float:
            ahead, behind = x.copy(), x.copy()
            ahead[place] += h
            behind[place] -= h
            return (total(ahead) - total(behind)) / (2 * h)

        gradient[place] = (4 * central(step / 2) - central(step)) / 3
    return gradient


def transposed(f: Callable, shape: Sequence[int], dy: np.ndarray) -> np.ndarray:
    """The gradient of sum(dy * f(x)) of a linear function, of an x of this shape: its values for
    unit vectors, which are exact and a quarter of the work of `vjp`."""
    gradient = np.zeros(shape)
    for place in np.ndindex(gradient.shape):
        unit = np.zeros(shape)
        unit[place] = 1
        gradient[place] = np.sum(f(unit) * dy)
    return gradient


def slope(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step=2e-3) -> np.ndarray:
    """The derivative of an elementwise function."""

    def central(h: float) -> np.ndarray:
        return (f(x + h) - f(x - h)) / (2 * h)

    return (4 * central(step / 2) - central(step)) / 3
