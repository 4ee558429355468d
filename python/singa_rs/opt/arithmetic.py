"""Schedules in the place of numbers: `optimizer.lr < 1e-4`, `optimizer.lr = optimizer.lr * 0.5`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..refusals import is_real


class AsNumber:
    """Compares, computes and formats by `float(self)`, which raises where that may differ from
    step to step."""

    def __float__(self) -> float:
        raise TypeError(
            f"{type(self).__name__}: got a schedule in the place of a number, want its value at "
            "the step, such as optimizer.lr_value.item()"
        )

    def _of(self, value: float) -> Any:
        """What arithmetic makes."""
        return value

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __lt__(self, other: Any) -> bool:
        return _compared(operator.lt, self, other)

    def __le__(self, other: Any) -> bool:
        return _compared(operator.le, self, other)

    def __gt__(self, other: Any) -> bool:
        return _compared(operator.gt, self, other)

    def __ge__(self, other: Any) -> bool:
        return _compared(operator.ge, self, other)

    def __add__(self, other: Any) -> Any:
        return _computed(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _computed(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _computed(lambda a, b: b - a, self, other)

    def __mul__(self, other: Any) -> Any:
        return _computed(operator.mul, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _computed(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _computed(lambda a, b: b / a, self, other)

    def __pow__(self, other: Any) -> Any:
        return _computed(operator.pow, self, other)


def _is_number(value: Any) -> bool:
    return is_real(value) or isinstance(value, AsNumber)


def _compared(operation: Callable[[float, float], bool], one: AsNumber, other: Any) -> bool:
    return operation(float(one), float(other)) if _is_number(other) else NotImplemented


def _computed(operation: Callable[[float, float], float], one: AsNumber, other: Any) -> Any:
    return one._of(operation(float(one), float(other))) if _is_number(other) else NotImplemented
