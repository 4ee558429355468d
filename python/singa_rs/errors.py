"""The package's exceptions. Each names the operation, what it got and what it wanted."""

from ._core import (
    CheckpointError,
    DeviceError,
    DTypeError,
    GraphError,
    MemoryBudgetError,
    OutOfMemoryError,
    ShapeError,
)

__all__ = [
    "CheckpointError",
    "DTypeError",
    "DeviceError",
    "GraphError",
    "MemoryBudgetError",
    "OutOfMemoryError",
    "ShapeError",
]
