"""Trains a small GPT (Radford et al., 2018) on the characters of a text, and lets it write.

    python examples/gpt.py                                     # lines of a sonnet, learnt by heart
    python examples/gpt.py --text FILE --steps 3000 --target 1.6
    python examples/gpt.py --checkpoint gpt --steps 200        # goes on to the bit if it is there

The exit status is 1 if the mean loss of the last steps, in nats a character, is above `--target`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import training
from characters import Text, learn
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor


class GPT(module.Module):
    """Characters to the logits of the next ones: blocks of causal attention."""

    def __init__(self, vocabulary: int, args: argparse.Namespace) -> None:
        super().__init__()
        width, self.positions = args.width, layer.SinusoidalPositions()
        sizes = (width, args.heads, 4 * width, 0.0, "GELU")
        make = layer.TransformerEncoderLayer
        self.embed, self.head = layer.Embedding(vocabulary, width), layer.Linear(vocabulary)
        self.blocks = layer.ModuleList(make(*sizes, norm_first=True) for _ in range(args.layers))
        self.norm = layer.LayerNorm(width)
        self.caches: list[layer.KeyValueCache] = []
        self.optimizer = opt.Adam(args.lr)

    def forward(self, x: Tensor) -> Tensor:
        """Characters (N, T) -> logits (N * T, vocabulary)."""
        caches: Sequence[layer.KeyValueCache | None] = self.caches or [None] * len(self.blocks)
        y = self.positions(self.embed(x), self.caches[0].position if self.caches else 0)
        for block, cache in zip(self.blocks, caches, strict=True):
            y = block(y, is_causal=True, cache=cache)
        return self.head(self.norm(y).reshape((-1, y.shape[-1])))

    def train_one_batch(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Makes one step; returns the loss before it."""
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return {"loss": loss}


def write(model: GPT, text: Text, count: int) -> str:
    """Continues the text's first character, each one drawn by its probability; keys and values are
    kept from step to step, and all but the latest half let go once there is no room."""
    rng, made, context = np.random.default_rng(0), [int(text.data[0])], len(text.places)
    heads, width = model.blocks[0].self_attn.num_heads, model.blocks[0].self_attn.head_dim
    sizes, dev = (1, heads, context, width), model.head.W.device
    model.caches = [layer.KeyValueCache(*sizes, device=dev) for _ in model.blocks]
    new, held = made[-1:], 0
    for _ in range(count):
        if held + len(new) > context:
            new, held = made[-(context // 2 or 1) :], 0
            for cache in model.caches:
                cache.clear()
        logits = model(np.array([new], np.int32)).to_numpy()[-1]
        made.append(text.next(rng, logits))
        new, held = made[-1:], held + len(new)
    return text.read(made)


def main() -> int:
    """Trains up to step `--steps`, and shows what the model writes; returns the exit status."""
    sizes = {"steps": 300, "batch": 16, "context": 64, "width": 64, "heads": 4, "layers": 2}
    parser = training.parser(__doc__, **sizes, sample=200, lr=0.002, target=0.3)
    return learn(parser, GPT, write)


if __name__ == "__main__":
    sys.exit(main())
