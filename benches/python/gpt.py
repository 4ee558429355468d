"""A GPT (Radford et al., 2018) against PyTorch's, in turns: steps of training, and tokens of
generation with a cache of keys and values.

    python benches/python/gpt.py                  # both models, and generation
    python benches/python/gpt.py --compiled       # PyTorch's steps compiled

Blocks normalise first, have one product for queries, keys and values, GELU between, and no dropout;
AdamW updates all. Each contender lives in a process of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from contenders import Contender, begin, compare


class Sizes(NamedTuple):
    """A model and its batch."""

    layers: int
    heads: int
    width: int
    context: int
    batch: int
    vocabulary: int = 256


MODELS = {"small": Sizes(4, 4, 128, 128, 16), "medium": Sizes(6, 6, 384, 256, 8)}
TOKENS = 64


def batch(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Tokens, and those that follow."""
    shape = (sizes.batch, sizes.context + 1)
    tokens = np.random.default_rng(0).integers(0, sizes.vocabulary, shape).astype(np.int32)
    return np.ascontiguousarray(tokens[:, :-1]), tokens[:, 1:].ravel()


def model(sizes: Sizes, threads: int):
    """This package's model."""
    from singa_rs import autograd, device, layer, module, opt

    device.get_default_device().set_num_threads(threads)

    class Gpt(module.Module):
        def __init__(self) -> None:
            super().__init__()
            form = (sizes.width, sizes.heads, 4 * sizes.width, 0.0, "GELU")
            make = layer.TransformerEncoderLayer
            blocks = (make(*form, norm_first=True) for _ in range(sizes.layers))
            self.embed = layer.Embedding(sizes.vocabulary, sizes.width)
            self.positions, self.blocks = layer.SinusoidalPositions(), layer.ModuleList(blocks)
            self.norm, self.head = layer.LayerNorm(sizes.width), layer.Linear(sizes.vocabulary)
            self.optimizer, self.caches = opt.AdamW(1e-3), []

        def forward(self, x):
            caches = self.caches or [None] * sizes.layers
            y = self.positions(self.embed(x), self.caches[0].position if self.caches else 0)
            for block, cache in zip(self.blocks, caches, strict=True):
                y = block(y, is_causal=True, cache=cache)
            return self.head(self.norm(y).reshape((-1, sizes.width)))

        def train_one_batch(self, x, y):
            loss = autograd.softmax_cross_entropy(self.forward(x), y)
            self.optimizer(loss)
            return loss

        def start(self) -> None:
            width = sizes.width // sizes.heads
            make = layer.KeyValueCache
            self.caches = [make(1, sizes.heads, sizes.context, width) for _ in self.blocks]

    return Gpt()


def ours(sizes: Sizes, threads: int, generates: bool) -> Callable[[], None]:
    """A step of training or the generation of tokens, recorded."""
    from singa_rs.tensor import from_numpy

    net, (x, y) = model(sizes, threads), map(from_numpy, batch(sizes))
    net.compile([x], is_train=not generates, use_graph=True)
    if not generates:
        return lambda: net.train_one_batch(x, y).item()
    net.eval()
    net.start()
    token = np.zeros((1, 1), np.int32)

    def generate() -> None:
        for cache in net.caches:
            cache.clear()
        for _ in range(TOKENS):
            token[0, 0] = int(net(token).to_numpy()[-1].argmax())

    return generate


def network(sizes: Sizes):
    """PyTorch's model."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width = sizes.width
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.joint, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x, cache):
            n, steps, width = x.shape
            parts = self.joint(x).view(n, steps, 3, sizes.heads, -1).permute(2, 0, 3, 1, 4)
            q, k, v = parts
            if cache is not None:
                k, v = (torch.cat([old, new], 2) for old, new in zip(cache, (k, v), strict=True))
                cache[:] = [k, v]
            attention = functional.scaled_dot_product_attention
            y = attention(q, k, v, is_causal=cache is None)
            return self.project(y.transpose(1, 2).reshape(n, steps, width))

        def forward(self, x, cache=None):
            x = x + self.attend(self.norm1(x), cache)
            return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(sizes.vocabulary, sizes.width)
            self.register_buffer("table", torch.randn(sizes.context, sizes.width))
            self.blocks = nn.ModuleList(Block() for _ in range(sizes.layers))
            self.norm = nn.LayerNorm(sizes.width)
            self.head = nn.Linear(sizes.width, sizes.vocabulary)

        def forward(self, x, caches=None, first=0):
            y = self.embed(x) + self.table[first : first + x.shape[1]]
            for i, block in enumerate(self.blocks):
                y = block(y, None if caches is None else caches[i])
            return self.head(self.norm(y)).flatten(0, 1)

    return Gpt()


def theirs(sizes: Sizes, threads: int, generates: bool, compiled: bool) -> Callable[[], None]:
    """The same by PyTorch."""
    import torch

    torch.set_num_threads(threads)
    net, (x, y) = network(sizes), batch(sizes)
    x, y = torch.from_numpy(x).long(), torch.from_numpy(y).long()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    run = torch.compile(net) if compiled else net

    def step() -> None:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x), y)
        loss.backward()
        optimizer.step()
        loss.item()

    @torch.no_grad()
    def generate() -> None:
        empty = torch.zeros(1, sizes.heads, 0, sizes.width // sizes.heads)
        caches = [[empty, empty] for _ in net.blocks]
        token = torch.zeros(1, 1, dtype=torch.long)
        for i in range(TOKENS):
            token = net(token, caches, i)[-1].argmax().view(1, 1)

    return generate if generates else step


def contenders(
    sizes: Sizes, args: argparse.Namespace, generates: bool
) -> tuple[Contender, Contender]:
    """Ours and PyTorch's."""
    return (
        Contender(ours, sizes, args.threads, generates),
        Contender(theirs, sizes, args.threads, generates, args.compiled and not generates),
    )


def main() -> None:
    """Prints the table."""
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n")[0])).add_argument
    add("--models", nargs="+", choices=MODELS, default=list(MODELS))
    add("--threads", type=int, default=2)
    add("--turns", type=int, default=9)
    add("--compiled", action="store_true")
    args = parser.parse_args()
    begin("PyTorch", args.threads)
    for name in args.models:
        compare(f"{name}, a step", contenders(MODELS[name], args, False), args.turns)
        compare(f"{name}, {TOKENS} tokens", contenders(MODELS[name], args, True), args.turns)


if __name__ == "__main__":
    main()
