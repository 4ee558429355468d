"""ONNX: models that are imported, run and trained further, and models that are exported
(SINGA sonnx)."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, load, save

from . import rows
from .backend import SingaBackend, SingaRep, prepare
from .exporting import export, model_proto
from .imported import SONNXModel
from .taped import to_onnx

run_node = SingaBackend.run_node

__all__ = [
    "SONNXModel", "SingaBackend", "SingaRep", "export", "load", "model_proto", "prepare", "rows",
    "run_model", "run_node", "save", "to_onnx",
]  # fmt: skip


def run_model(model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
    """The outputs of a model for these inputs, run once (`onnx.backend.base.Backend.run_model`)."""
    return SingaBackend.run_model(model, inputs, device, **kwargs)


def __dir__() -> list[str]:
    return sorted(__all__)
