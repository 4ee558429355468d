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
from singa_rs import autograd, device, layer, module, opt
from singa_rs.tensor import Tensor, from_numpy
from tqdm import tqdm

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
        self.norm = layer.LayerNorm(width)
        self.optimizer = opt.Adam(args.lr)

    def forward(self, x: Tensor) -> Tensor:
        """Characters (N, T) -> logits (N * T, vocabulary)."""
        y = self.positions(self.embed(x))
        for block in self.blocks:
            y = block(y, is_causal=True)
        return self.head(self.norm(y).reshape((-1, y.shape[-1])))

    def train_one_batch(self, x: Tensor, y: Tensor) -> Tensor:
        """Makes one step; returns the loss before it."""
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return loss

    def save(self, path: Path, step: int) -> None:
        """Writes parameters, the optimizer's moments and the step."""
        flat = {f"{k}/{n}": t for k in "mv" for n, t in self.optimizer.get_states()[k].items()}
        self.save_states(path, {**flat, "step": from_numpy(np.int32([step]))})

    def restore(self, path: Path) -> int:
        """Reads what `save` wrote; returns the step."""
        found = self.load_states(path)
        step = int(found.pop("step").item())
        moments = {kind: {k[2:]: t for k, t in found.items() if k[0] == kind} for kind in "mv"}
        self.optimizer.set_states({"step_counter": step, **moments})
        return step


def write(model: GPT, symbols: str, start: str, count: int, context: int) -> str:
    """Continues a text, each character drawn by its probability."""
    rng, made = np.random.default_rng(0), [symbols.index(c) for c in start]
    model.eval()
    for _ in range(count):
        seen = made[-context:] + [0] * (context - len(made))  # what comes later is not seen
        logits = model(np.int32([seen])).to_numpy()[min(len(made), context) - 1].astype(np.float64)
        chances = np.exp((logits - logits.max()) / 0.7)
        made.append(int(rng.choice(len(symbols), p=chances / chances.sum())))
    return "".join(symbols[i] for i in made)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=Path, help="a file to learn instead of the sonnet")
    parser.add_argument("--checkpoint", type=Path, help="read if it exists, written in the end")
    sizes = {"steps": 300, "batch": 16, "context": 64, "width": 64, "heads": 4, "layers": 2}
    for name, value in {**sizes, "sample": 200, "seed": 0, "lr": 0.002, "target": 0.3}.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args()


def main() -> int:
    """Trains up to step `--steps`, and shows what the model writes; returns the exit status."""
    args = arguments()
    text = args.text.read_text(encoding="utf-8") if args.text else SONNET
    if len(text) <= args.context:
        sys.exit(f"gpt: got a text of {len(text)}, want more than the context of {args.context}")
    symbols = "".join(sorted(set(text)))
    data, places = np.int32([symbols.index(c) for c in text]), np.arange(args.context)
    device.get_default_device().set_seed(args.seed)
    model = GPT(len(symbols), args)
    model.compile([from_numpy(np.zeros((args.batch, args.context), np.int32))], use_graph=True)
    resumes = args.checkpoint is not None and args.checkpoint.exists()
    done, losses = model.restore(args.checkpoint) if resumes else 0, []
    for step in (bar := tqdm(range(done, args.steps), unit="step")):
        rng = np.random.default_rng([args.seed, step])  # a resumed run draws the same batches
        at = rng.integers(0, len(data) - args.context, args.batch)[:, None] + places
        losses.append(model.train_one_batch(data[at], data[at + 1].ravel()).item())
        bar.set_postfix(loss=f"{losses[-1]:.4f}")
    if args.checkpoint and losses:
        model.save(args.checkpoint, args.steps)
    print(write(model, symbols, text[0], args.sample, args.context))
    loss = float(np.mean(losses[-20:])) if losses else float("nan")
    print(f"step {max(done, args.steps)}: mean loss {loss:.6f}, target {args.target}")
    return 0 if loss <= args.target else 1


if __name__ == "__main__":
    sys.exit(main())
