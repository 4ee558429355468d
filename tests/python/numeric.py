"""Derivatives by finite differences in float64, as references for gradients."""

from collections.abc import Callable, Sequence

import numpy as np


def vjp(
    f: Callable,
    inputs: Sequence[np.ndarray],
    which: int,
    dys: Sequence,
    step: float = 2e-3,
    is_linear: bool = False,
):
    """The gradient of sum(dy * f(inputs)) with respect to input `which`.

    Central differences at two steps, extrapolated (Richardson): the error is of fourth order in the
    step, about 1e-10 for the functions here. Of a function that is linear in the input, the values
    for unit vectors, which are exact and a quarter of the work.
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

        if is_linear:
            unit = np.zeros_like(x)
            unit[place] = 1
            gradient[place] = total(unit)
        else:
            gradient[place] = (4 * central(step / 2) - central(step)) / 3
    return gradient


def slope(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step=2e-3) -> np.ndarray:
    """The derivative of an elementwise function."""

    def central(h: float) -> np.ndarray:
        return (f(x + h) - f(x - h)) / (2 * h)

    return (4 * central(step / 2) - central(step)) / 3
