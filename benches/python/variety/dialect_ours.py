"""This package's layers and functions, by the names that models use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from parts import Case, Loss
from singa_rs import autograd, device, layer, module, opt, tensor
from singa_rs.autograd import cat, chunk, exp, sigmoid, softmax
from singa_rs.tensor import Tensor

chain, linear, dropout, flatten = layer.Sequential, layer.Linear, layer.Dropout, layer.Flatten
reflect, embedding, layer_norm = layer.ReflectionPad2d, layer.Embedding, layer.LayerNorm
max_pool2d, max_pool3d, avg_pool2d = layer.MaxPool2d, layer.MaxPool3d, layer.AvgPool2d
relu, relu6, hardswish, gelu = layer.ReLU, layer.ReLU6, layer.Hardswish, layer.GELU
silu, tanh, elu, prelu = layer.SiLU, layer.Tanh, layer.ELU, layer.PReLU
attention, softplus = autograd.scaled_dot_product_attention, autograd.softplus
cross_entropy = autograd.softmax_cross_entropy
binary, absolute = autograd.binary_cross_entropy_with_logits, autograd.l1_loss
squares, normal_like, triplet = autograd.mse_loss, tensor.randn_like, layer.TripletMarginLoss()
__all__ = ["cat", "chunk", "exp", "sigmoid", "softmax"]


def _conv(kind: Any) -> Callable[..., layer.Layer]:
    """A convolution that is given PyTorch's arguments."""

    def make(
        inputs: int, outputs: int, kernel: int, stride=1, padding=0, dilation=1, groups=1
    ) -> layer.Layer:
        more = {} if dilation == groups == 1 else {"dilation": dilation, "group": groups}
        return kind(outputs, kernel, stride=stride, padding=padding, **more)

    return make


conv1d, conv2d, conv3d = map(_conv, (layer.Conv1d, layer.Conv2d, layer.Conv3d))
conv_transpose2d = _conv(layer.ConvTranspose2d)


def batch_norm1d(channels: int) -> layer.Layer:
    return layer.BatchNorm1d()


def batch_norm2d(channels: int) -> layer.Layer:
    return layer.BatchNorm2d()


def group_norm(groups: int, channels: int) -> layer.Layer:
    return layer.GroupNorm(groups)


def instance_norm(channels: int) -> layer.Layer:
    return layer.InstanceNorm()


def leaky() -> layer.Layer:
    return layer.LeakyReLU(0.2)


def upsample(scale: int) -> layer.Layer:
    return layer.Upsample(scale_factor=scale, mode="bilinear")


def gru(inputs: int, width: int) -> layer.Layer:
    return layer.GRU(inputs, width, batch_first=True)


def two_lstm(inputs: int, width: int) -> layer.Layer:
    return layer.LSTM(inputs, width, batch_first=True, bidirectional=True)


class Values(layer.Layer):
    """A parameter."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__()
        self.values = tensor.from_numpy(values)
        self.values.requires_grad = self.values.stores_grad = True


def normalize(x: Tensor) -> Tensor:
    return autograd.normalize(x, axis=1)


def added(like: Tensor, places: Tensor, rows: Tensor) -> Tensor:
    return tensor.zeros_like(like).index_add(0, places, rows)


def taken(rows: Tensor, places: Tensor) -> Tensor:
    return autograd.take_along_dim(rows, places.unsqueeze(1), 1)[:, 0]


OPTIMIZERS = {
    "sgd": lambda: opt.SGD(lr=0.01, momentum=0.9),
    "adam": lambda: opt.Adam(lr=1e-3),
    "adamw": lambda: opt.AdamW(lr=1e-3),
}


class Net(module.Module):
    """The layers of a case, and its loss."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.layers = layer.ModuleList()
        self.loss: Loss = case.model(sys.modules[__name__], self._add)
        self.optimizer = OPTIMIZERS[case.optimizer]()

    def _add(self, one: layer.Layer) -> layer.Layer:
        self.layers.append(one)
        return one

    def forward(self, *batch: Tensor) -> Tensor:
        return self.loss(*batch)

    def train_one_batch(self, *batch: Tensor) -> Tensor:
        loss = self.loss(*batch)
        self.optimizer(loss)
        return loss


def step(case: Case, threads: int) -> Callable[[], object]:
    """A training step."""
    device.get_default_device().set_num_threads(threads)
    net, batch = Net(case), list(map(tensor.from_numpy, case.batch()))
    net.compile(batch, is_train=True, use_graph=True)
    return lambda: net(*batch)
