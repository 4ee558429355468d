"""Small networks with the inputs and results of those that SINGA's examples fetch from the zoo."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper

_DRAWS = np.random.default_rng(0)


def classifier(
    channels: int, edge: int, classes: int, width: int = 8, opset: int = 9
) -> ModelProto:
    """Pictures of `edge` pixels -> a number for each class: convolution, batch normalisation,
    pooling over everything, a product."""
    nodes = [
        helper.make_node("Conv", ["x", "W", "b"], ["c"], strides=[4, 4], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "b", "b", "scale"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "V", "a"], ["y"]),
    ]
    held = {
        "W": _DRAWS.normal(0, 0.2, (width, channels, 3, 3)), "b": np.zeros(width),
        "scale": np.ones(width),
        "V": _DRAWS.normal(size=(width, classes)), "a": np.zeros(classes),
    }  # fmt: skip
    return _model(nodes, held, (1, channels, edge, edge), (1, classes), opset)


def detector(channels: int = 125, edge: int = 416) -> ModelProto:
    """Pictures -> `channels` numbers for each of 13 x 13 cells."""
    cells = edge // 32
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[32, 32], strides=[32, 32]),
        helper.make_node("Conv", ["p", "W"], ["c"]),
        helper.make_node("LeakyRelu", ["c"], ["y"], alpha=0.1),
    ]
    held = {"W": _DRAWS.normal(0, 0.001, (channels, 3, 1, 1))}
    return _model(nodes, held, (1, 3, edge, edge), (1, channels, cells, cells), 8)


def enlarger(edge: int = 224, factor: int = 3) -> ModelProto:
    """Pictures of one channel -> such pictures, `factor` times as wide and as high."""
    nodes = [
        helper.make_node("Conv", ["x", "W"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("DepthToSpace", ["c"], ["y"], blocksize=factor),
    ]
    held = {"W": _DRAWS.normal(0, 0.2, (factor**2, 1, 3, 3))}
    wide = edge * factor
    return _model(nodes, held, (1, 1, edge, edge), (1, 1, wide, wide), 10)


_OF_1000 = partial(classifier, 3, 224, 1000)
#: For each archive, the file in it and the network.
NETWORKS: dict[str, tuple[str, Callable[[], ModelProto]]] = {
    "vgg16.tar.gz": ("vgg16/vgg16.onnx", _OF_1000),
    "vgg19.tar.gz": ("vgg19/vgg19.onnx", _OF_1000),
    "resnet18v1.tar.gz": ("resnet18v1/resnet18v1.onnx", partial(_OF_1000, width=512)),
    "mobilenetv2-1.0.tar.gz": ("mobilenetv2-1.0/mobilenetv2-1.0.onnx", _OF_1000),
    "densenet121.tar.gz": ("densenet121/model.onnx", _OF_1000),
    "shufflenet-9.tar.gz": ("shufflenet/model.onnx", _OF_1000),
    "shufflenet-v2-10.tar.gz": ("model/test_shufflenetv2/model.onnx", _OF_1000),
    "squeezenet1.1-7.tar.gz": ("squeezenet1.1/squeezenet1.1.onnx", _OF_1000),
    "resnet100.tar.gz": ("resnet100/resnet100.onnx", partial(classifier, 3, 112, 512)),
    "emotion_ferplus.tar.gz": ("emotion_ferplus/model.onnx", partial(classifier, 1, 64, 8)),
    "tiny_yolov2.tar.gz": ("tiny_yolov2/Model.onnx", detector),
    "super-resolution-10.tar.gz": ("super_resolution/super_resolution.onnx", enlarger),
}


def _model(nodes: list, held: dict, x: tuple, y: tuple, opset: int) -> ModelProto:
    constants = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in held.items()]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", *shape[1:]])
        for name, shape in (("x", x), ("y", y))
    ]
    graph = helper.make_graph(nodes, "made", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", opset)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=4)
    onnx.checker.check_model(made, full_check=True)
    return made
