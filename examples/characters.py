"""A text as the numbers of its characters, for the examples that learn to write."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import training
from singa_rs import module

SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
"""


class Text:
    """The text that `--text` names, lines of a sonnet by default."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.text = args.text.read_text(encoding="utf-8") if args.text else SONNET
        if len(self.text) <= args.context:
            sys.exit(f"got a text of {len(self.text)}, want more than the context, {args.context}")
        self.symbols = "".join(sorted(set(self.text)))
        self.data = np.array([self.symbols.index(c) for c in self.text], np.int32)
        self.places, self.batch = np.arange(args.context), args.batch

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Characters (batch, context), and those that follow, in one row (batch * context)."""
        first = rng.integers(0, len(self.data) - len(self.places), self.batch)
        at = first[:, None] + self.places
        return self.data[at], self.data[at + 1].ravel()

    def read(self, numbers: Iterable[int]) -> str:
        """The characters that numbers stand for."""
        return "".join(self.symbols[i] for i in numbers)

    def next(self, rng: np.random.Generator, logits: np.ndarray) -> int:
        """A character drawn by its logits, a little more decided than they are."""
        chances = np.exp((logits.astype(np.float64) - logits.max()) / 0.7)
        return int(rng.choice(len(self.symbols), p=chances / chances.sum()))


def learn(
    parser: argparse.ArgumentParser,
    make: Callable[[int, argparse.Namespace], module.Module],
    write: Callable[[Any, Text, int], str],
) -> int:
    """Trains the model of a vocabulary, and lets it write `--sample` characters; returns the exit
    status."""
    parser.add_argument("--text", type=Path, help="a file to learn instead of the sonnet")
    args = parser.parse_args()
    text = Text(args)
    model = make(len(text.symbols), args)
    losses = [step["loss"] for step in training.train(model, args, text.draw)]
    print(write(model, text, args.sample))
    mean = float(np.mean(losses[-20:])) if losses else float("nan")
    return training.verdict(args, "mean loss", mean, least=False)
