"""PyTorch's layers and functions, by the names that models use."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from parts import Case
from torch import cat, chunk, exp, nn, sigmoid, softmax

chain, linear, dropout, flatten = nn.Sequential, nn.Linear, nn.Dropout, nn.Flatten
conv1d, conv2d, conv3d = nn.Conv1d, nn.Conv2d, nn.Conv3d
conv_transpose2d, reflect = nn.ConvTranspose2d, nn.ReflectionPad2d
max_pool2d, max_pool3d, avg_pool2d = nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool2d
batch_norm1d, batch_norm2d, layer_norm = nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm
group_norm, instance_norm, embedding = nn.GroupNorm, nn.InstanceNorm2d, nn.Embedding
relu, relu6, hardswish, gelu = nn.ReLU, nn.ReLU6, nn.Hardswish, nn.GELU
silu, tanh, elu, prelu = nn.SiLU, nn.Tanh, nn.ELU, nn.PReLU
attention, softplus, triplet = (
    F.scaled_dot_product_attention, F.softplus, F.triplet_margin_loss,
)  # fmt: skip
cross_entropy, binary = F.cross_entropy, F.binary_cross_entropy_with_logits
squares, absolute, normal_like = F.mse_loss, F.l1_loss, torch.randn_like
normalize = F.normalize
__all__ = ["cat", "chunk", "exp", "sigmoid", "softmax"]


def leaky() -> nn.Module:
    return nn.LeakyReLU(0.2)


def upsample(scale: int) -> nn.Module:
    return nn.Upsample(scale_factor=scale, mode="bilinear")


def gru(inputs: int, width: int) -> nn.Module:
    return nn.GRU(inputs, width, batch_first=True)


def two_lstm(inputs: int, width: int) -> nn.Module:
    return nn.LSTM(inputs, width, batch_first=True, bidirectional=True)


class Values(nn.Module):
    """A parameter."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.from_numpy(values))


def added(like: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(like).index_add(0, places, rows)


def taken(rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return rows.gather(1, places[:, None])[:, 0]


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.01, 0.9),
    "adam": lambda p: torch.optim.Adam(p, 1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-3),
}


def step(case: Case, threads: int) -> Callable[[], object]:
    """A training step."""
    torch.set_num_threads(threads)
    net = nn.ModuleList()

    def add(layer: nn.Module) -> nn.Module:
        net.append(layer)
        return layer

    loss, batch = case.model(sys.modules[__name__], add), list(map(torch.from_numpy, case.batch()))
    optimizer = OPTIMIZERS[case.optimizer](net.parameters())

    def train() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(*batch).backward()
        optimizer.step()

    return train
