"""Residual networks of 18, 34 and 50 layers (He et al., 2015)."""

from __future__ import annotations

from singa_rs import layer, module, opt
from singa_rs.tensor import Tensor

#: Depth -> blocks per stage, and whether they are bottlenecks.
DEPTHS = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True)}


class Unit(layer.Layer):
    """A convolution without bias, batch normalisation and optionally ReLU."""

    def __init__(self, channels: int, kernel: int, stride: int = 1, relu: bool = True) -> None:
        super().__init__()
        self.conv = layer.Conv2d(
            channels,
            kernel,
            stride=stride,
            padding=kernel // 2,
            bias=False,
            kernel_init="he_normal",
        )
        self.norm = layer.BatchNorm2d()
        self.relu = layer.ReLU() if relu else None

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, channels, H / stride, W / stride)."""
        y = self.norm(self.conv(x))
        return y if self.relu is None else self.relu(y)


class Block(layer.Layer):
    """Two 3x3 convolutions, or a bottleneck of 1x1, 3x3 and 1x1, next to a shortcut."""

    def __init__(self, width: int, stride: int, is_bottleneck: bool, projects: bool) -> None:
        super().__init__()
        out = width * 4 if is_bottleneck else width
        if is_bottleneck:
            units = [Unit(width, 1), Unit(width, 3, stride), Unit(out, 1, relu=False)]
        else:
            units = [Unit(width, 3, stride), Unit(out, 3, relu=False)]
        self.units = units
        self.shortcut = Unit(out, 1, stride, relu=False) if projects else None
        self.relu = layer.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, outputs, H / stride, W / stride)."""
        y = x
        for unit in self.units:
            y = unit(y)
        return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(module.Module):
    """The network, trained by gradient descent with momentum unless another optimizer is given."""

    def __init__(
        self, depth: int = 18, classes: int = 1000, optimizer: opt.Optimizer | None = None
    ) -> None:
        super().__init__()
        counts, is_bottleneck = DEPTHS[depth]
        self.stem = Unit(64, 7, 2)
        self.pool = layer.MaxPool2d(3, 2, 1)
        self.blocks = []
        for stage, count in enumerate(counts):
            for i in range(count):
                stride = 2 if stage and not i else 1
                projects = not i and (is_bottleneck or stage > 0)
                self.blocks.append(Block(64 << stage, stride, is_bottleneck, projects))
        self.classifier = layer.Linear(classes)
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = optimizer or opt.SGD(lr=0.1, momentum=0.9)

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, 3, H, W) -> (N, classes), before the softmax."""
        x = self.pool(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.classifier(x.mean((2, 3)))

    def train_one_batch(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Makes one step; returns the outputs and the loss before it."""
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss
