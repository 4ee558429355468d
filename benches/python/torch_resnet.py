"""PyTorch's ResNets of 18, 34 and 50 layers, built like torchvision's, which is not needed."""

from __future__ import annotations

import torch
from torch import nn
from workloads import Block, Unit, blocks


def unit(one: Unit, relu: bool = True) -> list[nn.Module]:
    conv = nn.Conv2d(one.inputs, one.outputs, one.kernel, one.stride, one.kernel // 2, bias=False)
    return [conv, nn.BatchNorm2d(one.outputs), *([nn.ReLU(inplace=True)] if relu else [])]


class Residual(nn.Module):
    def __init__(self, block: Block) -> None:
        super().__init__()
        *first, last = block.units
        inside = [part for one in first for part in unit(one)]
        self.body = nn.Sequential(*inside, *unit(last, relu=False))
        shortcut = block.shortcut
        self.shortcut = nn.Sequential(*unit(shortcut, False)) if shortcut else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


def resnet(depth: int, classes: int = 1000) -> nn.Module:
    body = [Residual(block) for block in blocks(depth)]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    tail.append(nn.Linear(2048 if depth == 50 else 512, classes))
    return nn.Sequential(*unit(Unit(3, 64, 7, 2)), nn.MaxPool2d(3, 2, 1), *body, *tail)
