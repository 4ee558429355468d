"""Trains a small GPT (Radford et al., 2018) on the characters of a text, and lets it write.

    python examples/gpt.py                                     # lines of a sonnet, learnt by heart
    python examples/gpt.py --text FILE --steps 3000 --target 1.6
    python examples/gpt.py --checkpoint gpt.zip --steps 200    # goes on to the bit if it is there

The exit status is 1 if the mean loss of the last steps, in nats a character, is above `--target`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import training
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor

SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
"""


class GPT(module.Module):
    """Characters to the logits of the next ones: blocks of causal attention."""

    def __init__(self, vocabulary: int, args: argparse.Namespace) -> None:
        super().__init__()
        width, self.positions = args.width, layer.SinusoidalPositions()
        sizes = (width, args.heads, 4 * width, 0.0, "GELU")
        make = layer.TransformerEncoderLayer
        self.embed, self.head = layer.Embedding(vocabulary, width), layer.Linear(vocabulary)
        self.blocks = layer.ModuleList(make(*sizes, norm_first=True) for _ in range(args.layers))
        self.norm, self.caches = layer.LayerNorm(width), []
        self.optimizer = opt.Adam(args.lr)

    def forward(self, x: Tensor) -> Tensor:
        """Characters (N, T) -> logits (N * T, vocabulary)."""
        caches = self.caches or [None] * len(self.blocks)
        y = self.positions(self.embed(x), self.caches[0].position if self.caches else 0)
        for block, cache in zip(self.blocks, caches, strict=True):
            y = block(y, is_causal=True, cache=cache)
        return self.head(self.norm(y).reshape((-1, y.shape[-1])))

    def train_one_batch(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Makes one step; returns the loss before it."""
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return {"loss": loss}


def write(model: GPT, symbols: str, start: str, count: int, context: int) -> str:
    """Continues a text, each character drawn by its probability; keys and values are kept from step
    to step, and all but the latest half let go once there is no room."""
    rng, made = np.random.default_rng(0), [symbols.index(c) for c in start]
    heads, width = model.blocks[0].self_attn.num_heads, model.blocks[0].self_attn.head_dim
    model.caches = [layer.KeyValueCache(1, heads, context, width) for _ in model.blocks]
    new, held = made[-context:], 0
    for _ in range(count):
        if held + len(new) > context:
            new, held = made[-(context // 2 or 1) :], 0
            for cache in model.caches:
                cache.clear()
        logits = model(np.int32([new])).to_numpy()[-1].astype(np.float64)
        chances = np.exp((logits - logits.max()) / 0.7)
        made.append(int(rng.choice(len(symbols), p=chances / chances.sum())))
        new, held = made[-1:], held + len(new)
    return "".join(symbols[i] for i in made)


def main() -> int:
    """Trains up to step `--steps`, and shows what the model writes; returns the exit status."""
    sizes = {"steps": 300, "batch": 16, "context": 64, "width": 64, "heads": 4, "layers": 2}
    parser = training.parser(__doc__, **sizes, sample=200, lr=0.002, target=0.3)
    parser.add_argument("--text", type=Path, help="a file to learn instead of the sonnet")
    args = parser.parse_args()
    text = args.text.read_text(encoding="utf-8") if args.text else SONNET
    if len(text) <= args.context:
        sys.exit(f"gpt: got a text of {len(text)}, want more than the context of {args.context}")
    symbols = "".join(sorted(set(text)))
    data, places = np.int32([symbols.index(c) for c in text]), np.arange(args.context)

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        at = rng.integers(0, len(data) - args.context, args.batch)[:, None] + places
        return data[at], data[at + 1].ravel()

    model = GPT(len(symbols), args)
    losses = [step["loss"] for step in training.train(model, args, draw)]
    print(write(model, symbols, text[0], args.sample, args.context))
    mean = float(np.mean(losses[-20:])) if losses else float("nan")
    return training.verdict(args, "mean loss", mean, least=False)


if __name__ == "__main__":
    sys.exit(main())
