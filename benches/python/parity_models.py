"""The models of `parity.py`, and their losses."""

from __future__ import annotations

from typing import Any

from singa_rs import autograd, layer
from singa_rs.tensor import Tensor

SYMBOLS, WIDTH, HEADS, DEPTH, LATENT = 50, 32, 4, 2, 8


class _Recurrent(layer.Layer):
    """Symbols (N, T), one-hot, to the logits of the next ones (N, T, symbols)."""

    make: Any

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = self.make(SYMBOLS, WIDTH, DEPTH), layer.Linear(SYMBOLS)
        self.cells.batch_first = True

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x)[0])


class Lstm(_Recurrent):
    make = layer.LSTM


class Gru(_Recurrent):
    make = layer.GRU


class Gpt(layer.Layer):
    """Symbols (N, T) to the logits of the next ones (N, T, symbols)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = layer.Embedding(SYMBOLS, WIDTH), layer.Linear(SYMBOLS)
        self.positions, self.norm = layer.SinusoidalPositions(), layer.LayerNorm(WIDTH)
        self.blocks = layer.ModuleList(
            layer.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "GELU", norm_first=True)
            for _ in range(DEPTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.positions(self.embed(x))
        for block in self.blocks:
            y = block(y, is_causal=True)
        return self.head(self.norm(y))


def next_symbol(net: layer.Layer, x: Tensor, y: Tensor) -> Tensor:
    """The cross entropy of the symbols that follow."""
    return autograd.softmax_cross_entropy(net(x), y, axis=-1)


class Block(layer.Layer):
    """A convolution, normalised."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = layer.Conv2d(channels, 3, padding=1, bias=False, kernel_init="he_normal")
        self.norm = layer.BatchNorm2d()

    def forward(self, x: Tensor) -> Tensor:
        return autograd.relu(self.norm(self.conv(x)))


class UNet(layer.Layer):
    """Pictures (N, 1, H, W) to logits of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.top, self.bottom, self.last = Block(8), Block(16), Block(8)
        self.pool, self.grow = layer.MaxPool2d(2), layer.ConvTranspose2d(8, 2, stride=2)
        self.head = layer.Conv2d(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        top = self.top(x)
        up = self.grow(self.bottom(self.pool(top)))
        return self.head(self.last(autograd.cat([top, up], 1)))


def mask(net: layer.Layer, x: Tensor, y: Tensor) -> Tensor:
    """The cross entropy of each pixel."""
    return autograd.binary_cross_entropy_with_logits(net(x), y)


class Vae(layer.Layer):
    """Images (N, pixels) and noise (N, latent) to logits, means and log variances."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.code = layer.Linear(WIDTH), layer.Linear(2 * LATENT)
        self.last, self.image = layer.Linear(WIDTH), layer.Linear(64)

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        code = self.code(autograd.relu(self.first(x)))
        mean, log_variance = autograd.split(code, 1, [LATENT, LATENT])
        code = mean + autograd.exp(log_variance * 0.5) * noise
        return self.image(autograd.relu(self.last(code))), mean, log_variance


def bound(net: layer.Layer, x: Tensor, noise: Tensor) -> Tensor:
    """The negative evidence lower bound of an image."""
    logits, mean, log_variance = net(x, noise)
    pixels = autograd.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = autograd.exp(log_variance) + mean * mean - 1.0 - log_variance
    return (pixels + divergence.sum() * 0.5) / (100.0 * x.shape[0])
