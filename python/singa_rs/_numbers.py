"""`tensor.numbers`, where the engine looks for it."""

from .tensor.numbers import as_array, as_number

__all__ = ["as_array", "as_number"]
