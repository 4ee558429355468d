"""The models of `singa-rs bench`, and their batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import autograd, device, layer, module, opt
from ..tensor import Tensor, from_numpy

#: Rows and features of the perceptron; rows of LeNet; rows, symbols and context of the GPT.
MLP, LENET, GPT = (64, 64), 32, (8, 64, 32)
WIDTH, HEADS, BLOCKS = 64, 4, 2


def batch(model: str) -> tuple[np.ndarray, np.ndarray]:
    """What a step gets: the same numbers in each library."""
    rng = np.random.default_rng(0)
    if model == "gpt":
        rows, symbols, context = GPT
        text = rng.integers(0, symbols, (rows, context + 1)).astype(np.int32)
        return np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])
    shape = MLP if model == "mlp" else (LENET, 1, 28, 28)
    return rng.normal(size=shape).astype(np.float32), rng.integers(0, 10, shape[0]).astype(np.int32)


class _Trained(module.Module):
    """A model that minimises the cross-entropy of its classes."""

    def __init__(self, optimizer: opt.Optimizer) -> None:
        super().__init__()
        self.optimizer = optimizer

    def train_one_batch(self, x: Tensor, y: Tensor) -> Tensor:
        """Makes one step; returns the loss before it."""
        loss = autograd.softmax_cross_entropy(self.forward(x), y, axis=-1)
        self.optimizer(loss)
        return loss


class Mlp(_Trained):
    """Three linear layers."""

    def __init__(self) -> None:
        super().__init__(opt.SGD(0.05))
        hidden = [layer.Linear(128, activation="RELU") for _ in range(2)]
        self.body = layer.Sequential(*hidden, layer.Linear(10))

    def forward(self, x: Tensor) -> Tensor:
        """(N, features) -> (N, 10)."""
        return self.body(x)


class LeNet(_Trained):
    """Two convolutions with pooling, three linear layers (LeCun et al., 1998)."""

    def __init__(self) -> None:
        super().__init__(opt.SGD(0.01, momentum=0.9))
        self.body = layer.Sequential(
            layer.Conv2d(6, 5, padding=2, activation="RELU"),
            layer.MaxPool2d(2, 2),
            layer.Conv2d(16, 5, activation="RELU"),
            layer.MaxPool2d(2, 2),
            layer.Flatten(),
            layer.Linear(120, activation="RELU"),
            layer.Linear(84, activation="RELU"),
            layer.Linear(10),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(N, 1, 28, 28) -> (N, 10)."""
        return self.body(x)


class Gpt(_Trained):
    """Two blocks of attention (Radford et al., 2018)."""

    def __init__(self) -> None:
        super().__init__(opt.AdamW(1e-3))
        form = (WIDTH, HEADS, 4 * WIDTH, 0.0, "GELU")
        self.embed, self.positions = layer.Embedding(GPT[1], WIDTH), layer.SinusoidalPositions()
        self.blocks = layer.ModuleList(
            layer.TransformerEncoderLayer(*form, norm_first=True) for _ in range(BLOCKS)
        )
        self.norm, self.head = layer.LayerNorm(WIDTH), layer.Linear(GPT[1])

    def forward(self, x: Tensor) -> Tensor:
        """Symbols (N, T) -> scores of the next ones (N, T, symbols)."""
        y = self.positions(self.embed(x))
        for block in self.blocks:
            y = block(y, is_causal=True)
        return self.head(self.norm(y))


def step_of(name: str, threads: int | None) -> tuple[Callable[[], float], int]:
    """A recorded step, and the bytes that are planned for it."""
    cpu = device.get_default_device()
    cpu.set_seed(0)
    if threads is not None:
        cpu.set_num_threads(threads)
    model = {"mlp": Mlp, "lenet": LeNet, "gpt": Gpt}[name]()
    x, y = map(from_numpy, batch(name))
    model.compile([x], use_graph=True)
    planned = model.plan(x, y).peak_bytes
    return lambda: model(x, y).item(), planned
