"""The models of `parity.py` in PyTorch; modules have the names of `parity_models.py`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from parity_models import DEPTH, HEADS, LATENT, SYMBOLS, WIDTH
from torch import Tensor, nn


class _Recurrent(nn.Module):
    """Symbols (N, T), one-hot, to the logits of the next ones (N, T, symbols)."""

    make: type[nn.RNNBase]

    def __init__(self) -> None:
        super().__init__()
        self.cells = self.make(SYMBOLS, WIDTH, DEPTH, batch_first=True)
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, x: Tensor) -> Tensor:
        hot = F.one_hot(x.long(), SYMBOLS).to(self.head.weight.dtype)
        return self.head(self.cells(hot)[0])


class Lstm(_Recurrent):
    make = nn.LSTM


class Gru(_Recurrent):
    make = nn.GRU


def give_recurrent(to: nn.RNNBase, name: str, value: Tensor) -> None:
    """Copies a parameter whose gates are in ONNX's order."""
    kind, place = name.split("_l", 1)
    order = (0, 2, 3, 1) if isinstance(to, nn.LSTM) else (1, 0, 2)  # of PyTorch's gates in ONNX's

    def ordered(part: Tensor) -> Tensor:
        gates = part.chunk(len(order), -1)
        return torch.cat([gates[i] for i in order], -1)

    if kind == "b":
        for part, key in zip(value.chunk(2), ("ih", "hh"), strict=True):
            getattr(to, f"bias_{key}_l{place}").copy_(ordered(part))
    else:
        key = {"W": "ih", "R": "hh"}[kind]
        getattr(to, f"weight_{key}_l{place}").copy_(ordered(value).T)


class Attention(nn.Module):
    """Causal attention of several heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.v_proj, self.out_proj = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        each = (*x.shape[:2], HEADS, WIDTH // HEADS)
        made = (p(x).view(each).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        heads = F.scaled_dot_product_attention(*made, is_causal=True)
        return self.out_proj(heads.transpose(1, 2).reshape(x.shape))


class Encoder(nn.Module):
    """Attention and a network of two layers, each after a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn = Attention()
        self.linear1, self.linear2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


def positions(steps: int) -> Tensor:
    """Sines and cosines in turn (Vaswani et al., 2017)."""
    rates = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
    angles = torch.arange(steps)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).reshape(steps, WIDTH)


class Gpt(nn.Module):
    """Symbols (N, T) to the logits of the next ones (N, T, symbols)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(SYMBOLS, WIDTH), nn.Linear(WIDTH, SYMBOLS)
        self.blocks = nn.ModuleList(Encoder() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        y = self.embed(x) + positions(x.shape[1])
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def next_symbol(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The cross entropy of the symbols that follow."""
    return F.cross_entropy(net(x.long()).flatten(0, 1).float(), y.long().flatten())


class Block(nn.Module):
    """A convolution, normalised."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)))


class UNet(nn.Module):
    """Pictures (N, 1, H, W) to logits of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.top, self.bottom, self.last = Block(1, 8), Block(8, 16), Block(16, 8)
        self.grow, self.head = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        top = self.top(x)
        up = self.grow(self.bottom(F.max_pool2d(top, 2)))
        return self.head(self.last(torch.cat([top, up], 1)))


def mask(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The cross entropy of each pixel."""
    return F.binary_cross_entropy_with_logits(net(x).float(), y)


class Vae(nn.Module):
    """Images (N, pixels) and noise (N, latent) to logits, means and log variances."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.code = nn.Linear(64, WIDTH), nn.Linear(WIDTH, 2 * LATENT)
        self.last, self.image = nn.Linear(LATENT, WIDTH), nn.Linear(WIDTH, 64)

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.code(F.relu(self.first(x))).float().split(LATENT, 1)
        code = mean + (log_variance * 0.5).exp() * noise
        return self.image(F.relu(self.last(code))), mean, log_variance


def bound(net: nn.Module, x: Tensor, noise: Tensor) -> Tensor:
    """The negative evidence lower bound of an image."""
    logits, mean, log_variance = net(x, noise)
    pixels = F.binary_cross_entropy_with_logits(logits.float(), x, reduction="sum")
    divergence = log_variance.exp() + mean * mean - 1.0 - log_variance
    return (pixels + divergence.sum() * 0.5) / (100.0 * x.shape[0])
