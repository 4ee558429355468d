"""The package's exceptions. Each names the operation, what it got and what it wanted."""

from ._core import (
    CheckpointError,
    DeviceError,
    DTypeError,
    GraphError,
    OutOfMemoryError,
    ShapeError,
)

__all__ = [
    "CheckpointError",
    "DTypeError",
    "DeviceError",
    "GraphError",
    "OutOfMemoryError",
    "ShapeError",
]
