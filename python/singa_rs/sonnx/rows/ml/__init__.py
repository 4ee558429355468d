"""ONNX's domain of classical machine learning, `ai.onnx.ml`."""

from . import features, labels, linear, maps, support_vectors, trees

__all__ = ["features", "labels", "linear", "maps", "support_vectors", "trees"]
