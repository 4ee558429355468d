"""`tensor.dtypes`, where the engine looks for it."""

from .tensor.dtypes import to_storage

__all__ = ["to_storage"]
