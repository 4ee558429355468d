"""Trains a Transformer encoder to tell whether a generated review is in favour of its subject.

    python examples/classify.py
    python examples/classify.py --checkpoint c --steps 100      # goes on to the bit if it is there

Praise is turned into blame by a "not" before it, and what follows a "but" counts, whatever came
before; so the words of a review without their order do not decide. The exit status is 1 if the
accuracy on new reviews is below `--target`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import training
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor

PRAISE = "good great moving clever funny fresh honest bright".split()
BLAME = "bad dull slow silly boring stale weak loud".split()
SUBJECTS = "film plot cast music ending story".split()
WORDS = ["", "the", "is", "not", "but", "very", "quite", "and", *SUBJECTS, *PRAISE, *BLAME]
LENGTH, HELD_OUT = 16, 1000


def clause(rng: np.random.Generator) -> tuple[list[str], bool]:
    """A statement, and whether it praises."""
    is_praise, is_negated = map(bool, rng.integers(0, 2, 2))
    words = ["the", rng.choice(SUBJECTS), "is", *["not"] * is_negated]
    words += [rng.choice(["very", "quite"])] * rng.integers(0, 2)
    return [*words, rng.choice(PRAISE if is_praise else BLAME)], is_praise != is_negated


def review(rng: np.random.Generator) -> tuple[list[int], bool]:
    """One or two statements as indices of words, and whether the last of them praises."""
    first, praises = clause(rng)
    if rng.random() < 0.7:
        last, praises_last = clause(rng)
        joint = "and" if praises == praises_last else "but"
        first, praises = [*first, joint, *last], praises_last
    return [WORDS.index(word) for word in first], praises


def reviews(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Words (count, LENGTH), padded with zeros, and labels (count,)."""
    made, labels = zip(*(review(rng) for _ in range(count)), strict=True)
    words = [row + [0] * (LENGTH - len(row)) for row in made]
    return np.array(words, np.int32), np.array(labels, np.int32)


class Classifier(module.Module):
    """Words to the logits of blame and praise: blocks of attention, and the mean of the words."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        sizes = (args.width, args.heads, 2 * args.width, args.dropout, "GELU")
        self.embed = layer.Embedding(len(WORDS), args.width)
        self.positions, self.head = layer.SinusoidalPositions(), layer.Linear(2)
        self.blocks = layer.ModuleList(
            layer.TransformerEncoderLayer(*sizes, norm_first=True) for _ in range(args.layers)
        )
        self.optimizer = opt.AdamW(opt.warmup(20, then=args.lr), weight_decay=0.05)
        self.optimizer.group("*.b", weight_decay=0)

    def forward(self, x: Tensor) -> Tensor:
        """Words (N, LENGTH) -> logits (N, 2)."""
        is_word = x != 0
        y = self.positions(self.embed(x))
        for block in self.blocks:
            y = block(y, mask=is_word.reshape((x.shape[0], 1, 1, LENGTH)))
        weights = is_word.as_type(y.dtype)
        weights = weights / weights.sum(1, keepdims=True)
        return self.head((y * weights.reshape((*x.shape, 1))).sum(1))

    def train_one_batch(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Makes one step; returns the loss before it."""
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return {"loss": loss}


def main() -> int:
    """Trains up to step `--steps`; returns the exit status."""
    sizes = {"steps": 200, "batch": 64, "width": 32, "heads": 4, "layers": 2}
    args = training.parser(__doc__, **sizes, dropout=0.1, lr=0.004, target=0.97).parse_args()
    model = Classifier(args)
    training.train(model, args, lambda rng: reviews(rng, args.batch))
    x, y = reviews(np.random.default_rng([args.seed, 0, 1]), HELD_OUT)
    found = model(x).to_numpy().argmax(1)
    for row, label in zip(x[:3], found[:3], strict=True):
        print(" ".join(WORDS[i] for i in row if i), "->", "praise" if label else "blame")
    return training.verdict(args, "accuracy", float((found == y).mean()))


if __name__ == "__main__":
    sys.exit(main())
