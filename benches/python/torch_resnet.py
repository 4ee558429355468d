"""PyTorch's ResNets of 18, 34 and 50 layers, as torchvision builds them (which is not needed)."""

from __future__ import annotations

import torch
from resnet import DEPTHS
from torch import nn


def unit(inputs: int, outputs: int, kernel: int, stride: int = 1, relu: bool = True) -> list:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return [conv, nn.BatchNorm2d(outputs), *([nn.ReLU(inplace=True)] if relu else [])]


class Block(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int, is_bottleneck: bool) -> None:
        super().__init__()
        out = width * 4 if is_bottleneck else width
        if is_bottleneck:
            parts = [*unit(inputs, width, 1), *unit(width, width, 3, stride)]
            parts += unit(width, out, 1, relu=False)
        else:
            parts = [*unit(inputs, width, 3, stride), *unit(width, out, 3, relu=False)]
        self.body = nn.Sequential(*parts)
        projects = stride != 1 or inputs != out
        self.shortcut = (
            nn.Sequential(*unit(inputs, out, 1, stride, relu=False)) if projects else nn.Identity()
        )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


def resnet(depth: int, classes: int = 1000) -> nn.Module:
    counts, is_bottleneck = DEPTHS[depth]
    layers: list = [*unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, count in enumerate(counts):
        for i in range(count):
            layers.append(Block(inputs, 64 << stage, 2 if stage and not i else 1, is_bottleneck))
            inputs = (64 << stage) * (4 if is_bottleneck else 1)
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return nn.Sequential(*layers, *tail)
