"""The steps of `workloads.py` in PyTorch: eager, channels-last, compiled.

Each is as fast as possible: the compiled convolutional models are channels-last as well, and the
fused optimizer runs where it is the faster one (with it a convolutional model's update takes half
as long, a perceptron's longer).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, pairwise

import numpy as np
import torch
from torch import nn
from torch_resnet import resnet
from workloads import Case, batches, weights


def network(case: Case) -> nn.Module:
    """The model with PyTorch's initial weights."""
    if case.depth:
        return resnet(case.depth, case.classes)
    if case.widths:
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(case.widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers[:-1])
    return nn.Sequential(
        *(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(800, 500), nn.ReLU(inplace=True), nn.Linear(500, case.classes)),
    )


def fill(net: nn.Module, arrays: list[np.ndarray]) -> None:
    """Copies the weights in; a dense layer's weight is transposed in PyTorch."""
    with torch.no_grad():
        for parameter, array in zip(net.parameters(), arrays, strict=True):
            parameter.copy_(torch.from_numpy(array.T if array.ndim == 2 else array))


def make(case: Case, how: str, threads: int, dtype: str = "float32") -> Callable[[], torch.Tensor]:
    """A call that makes one step and returns the loss before it; `how` is "eager", "channels-last"
    or "compiled"."""
    torch.set_num_threads(threads)
    net = network(case).to(getattr(torch, dtype))
    fill(net, weights(case, dtype))
    data = [(torch.from_numpy(x), torch.from_numpy(y).long()) for x, y in batches(case, dtype)]
    if how != "eager" and case.is_convolutional:
        net = net.to(memory_format=torch.channels_last)
        data = [(x.to(memory_format=torch.channels_last), y) for x, y in data]
    optimizer = torch.optim.SGD(
        net.parameters(), lr=case.lr, momentum=case.momentum, fused=case.is_convolutional
    )

    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(net(x), y)

    if how == "compiled":
        forward = torch.compile(forward)
    turns = cycle(data)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = forward(*next(turns))
        loss.backward()
        optimizer.step()
        return loss

    return step
