"""ONNX: models that are imported, run and trained further, and models that are exported
(SINGA sonnx)."""

from __future__ import annotations

from onnx import load, save

from . import rows
from .backend import SingaBackend, SingaRep, prepare
from .exporting import export, model_proto
from .imported import SONNXModel
from .taped import to_onnx

run_node = SingaBackend.run_node
run_model = SingaBackend.run_model

__all__ = [
    "SONNXModel", "SingaBackend", "SingaRep", "export", "load", "model_proto", "prepare", "rows",
    "run_model", "run_node", "save", "to_onnx",
]  # fmt: skip
