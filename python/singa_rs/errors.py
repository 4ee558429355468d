"""The package's exceptions. Each names the operation, what it got and what it wanted."""

from ._core import (
    CheckpointError,
    DeviceError,
    DTypeError,
    GraphError,
    InternalError,
    MemoryBudgetError,
    OutOfMemoryError,
    ShapeError,
)

__all__ = [
    "CheckpointError",
    "DTypeError",
    "DeviceError",
    "GraphError",
    "InternalError",
    "MemoryBudgetError",
    "OutOfMemoryError",
    "ShapeError",
]
