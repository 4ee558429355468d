"""Trains a Transformer (Vaswani et al., 2017) to translate numbers in words into digits.

    python examples/translate.py
    python examples/translate.py --checkpoint t --steps 200      # goes on to the bit if it is there

The exit status is 1 if the share of numbers, none of them seen in training, that are translated
without any mistake is below `--target`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import training
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
WORDS = ["", "hundred", "thousand", "and", *ONES, *TENS]
PAD, START, END = 0, 11, 12  # the digit d is d + 1
LENGTH, DIGITS, HELD_OUT = 7, 5, 500


def in_words(number: int) -> str:
    """A number below 10,000."""
    if number >= 100:
        size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
        rest = number % size
        joint = " and " if 0 < rest < 100 else " " if rest else ""
        return f"{ONES[number // size]} {name}{joint}{in_words(rest) if rest else ''}"
    if number < 20:
        return ONES[number]
    return TENS[number // 10 - 2] + (f" {ONES[number % 10]}" if number % 10 else "")


def source(texts: list[str]) -> np.ndarray:
    """Words as indices (N, LENGTH), padded with zeros."""
    rows = [[WORDS.index(word) for word in text.split()] for text in texts]
    return np.array([row + [PAD] * (LENGTH - len(row)) for row in rows], np.int32)


def target(numbers: np.ndarray) -> np.ndarray:
    """Digits between a start and an end (N, DIGITS + 1), padded with zeros."""
    rows = [[START, *(int(d) + 1 for d in str(number)), END] for number in numbers]
    return np.array([row + [PAD] * (DIGITS + 1 - len(row)) for row in rows], np.int32)


class Translator(module.Module):
    """Words to a memory, by an encoder, and digits to the logits of the next ones, by a decoder."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        sizes = (args.width, args.heads, 4 * args.width, args.dropout, "GELU")
        self.words, self.digits = (layer.Embedding(n, args.width) for n in (len(WORDS), 13))
        self.positions, self.head = layer.SinusoidalPositions(), layer.Linear(13)
        encoder, decoder = layer.TransformerEncoderLayer, layer.TransformerDecoderLayer
        count = range(args.layers)
        self.encoder = layer.ModuleList(encoder(*sizes, norm_first=True) for _ in count)
        self.decoder = layer.ModuleList(decoder(*sizes, norm_first=True) for _ in count)
        self.optimizer = opt.Adam(opt.warmup(50, then=args.lr), clip_norm=1.0)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Words (N, LENGTH) and digits (N, T) -> logits (N, T, 13)."""
        is_word = (x != PAD).reshape((x.shape[0], 1, 1, LENGTH))
        memory, made = self.positions(self.words(x)), self.positions(self.digits(y))
        for block in self.encoder:
            memory = block(memory, mask=is_word)
        for reader in self.decoder:
            made = reader(made, memory, memory_mask=is_word)
        return self.head(made)

    def train_one_batch(self, x: Tensor, y: Tensor, after: Tensor) -> dict[str, Tensor]:
        """Makes one step: digits `y` are followed by `after`; returns the loss before it."""
        logits = self.forward(x, y)
        loss = autograd.softmax_cross_entropy(logits, after, axis=-1, ignore_index=PAD)
        self.optimizer(loss)
        return {"loss": loss}

    def translate(self, texts: list[str]) -> list[str]:
        """The likeliest digits, one after another."""
        x, made = source(texts), np.full((len(texts), DIGITS + 1), PAD, np.int32)
        made[:, 0] = START
        for at in range(1, DIGITS + 1):
            made[:, at] = self(x, made[:, :DIGITS]).to_numpy()[:, at - 1].argmax(-1)
        rows = made[:, 1:].tolist()
        return ["".join(str(d - 1) for d in row[: [*row, END].index(END)]) for row in rows]


def main() -> int:
    """Trains up to step `--steps`; returns the exit status."""
    sizes = {"steps": 500, "batch": 64, "width": 64, "heads": 4, "layers": 2}
    args = training.parser(__doc__, **sizes, dropout=0.0, lr=0.002, target=0.98).parse_args()
    shuffled = np.random.default_rng(0).permutation(10_000)
    held_out, known = shuffled[:HELD_OUT], shuffled[HELD_OUT:]

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        numbers = rng.choice(known, args.batch)
        digits = target(numbers)
        return source([in_words(n) for n in numbers]), digits[:, :-1], digits[:, 1:]

    model = Translator(args)
    training.train(model, args, draw, inputs=2)
    made = model.translate([in_words(n) for n in held_out])
    print(f"{in_words(held_out[0])}: {made[0]}")
    right = np.mean([text == str(n) for text, n in zip(made, held_out, strict=True)])
    return training.verdict(args, "exact matches", float(right))


if __name__ == "__main__":
    sys.exit(main())
