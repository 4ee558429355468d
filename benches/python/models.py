"""The models of the benchmarks; for the smaller ones, their input shapes."""

from __future__ import annotations

import sys
from pathlib import Path

from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from digits import Net  # noqa: E402
from residual import ResNet  # noqa: E402

__all__ = ["MODELS", "OPTIMIZERS", "LeNet", "Perceptron", "ResNet"]


class Trained(module.Module):
    """A model whose step is a forward pass, the cross entropy, and an optimizer's update."""

    def __init__(self, optimizer: opt.Optimizer) -> None:
        super().__init__()
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = optimizer

    def train_one_batch(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


class Perceptron(Trained):
    """Dense layers with ReLU between them."""

    def __init__(self, widths: list[int], optimizer: opt.Optimizer) -> None:
        super().__init__(optimizer)
        self.layers = [layer.Linear(width) for width in widths]

    def forward(self, x: Tensor) -> Tensor:
        for dense in self.layers[:-1]:
            x = autograd.relu(dense(x))
        return self.layers[-1](x)


class LeNet(Trained):
    """Two convolutions of 5x5 with 20 and 50 channels, each pooled, and 500 hidden units (after
    LeCun et al., 1998)."""

    def __init__(self, optimizer: opt.Optimizer) -> None:
        super().__init__(optimizer)
        self.conv1, self.conv2 = layer.Conv2d(20, 5), layer.Conv2d(50, 5)
        self.pool1, self.pool2 = layer.MaxPool2d(2, 2), layer.MaxPool2d(2, 2)
        self.flatten = layer.Flatten()
        self.hidden, self.out = layer.Linear(500), layer.Linear(10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool2(self.conv2(self.pool1(self.conv1(x))))
        return self.out(autograd.relu(self.hidden(self.flatten(x))))


def digits(optimizer: opt.Optimizer) -> module.Module:
    """The network of examples/digits.py."""
    return Net(10, 32, optimizer)


#: Name -> (model factory, input shape).
MODELS = {
    "digits": (digits, (32, 1, 8, 8)),
    "perceptron": (lambda optimizer: Perceptron([1024] * 19 + [10], optimizer), (64, 784)),
    "lenet": (LeNet, (64, 1, 28, 28)),
}

#: Name -> a new optimizer.
OPTIMIZERS = {
    "SGD": lambda: opt.SGD(lr=0.01, momentum=0.9),
    "Adam": lambda: opt.Adam(lr=0.001),
}
