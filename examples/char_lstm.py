"""Trains an LSTM on the characters of a text (Graves, 2013), and lets it write.

    python examples/char_lstm.py                               # lines of a sonnet, learnt by heart
    python examples/char_lstm.py --text FILE --steps 3000 --layers 2 --target 1.7
    python examples/char_lstm.py --checkpoint c --steps 99     # goes on to the bit if it is there

The exit status is 1 if the mean loss of the last steps, in nats a character, is above `--target`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import training
from characters import Text, learn
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor


class CharLSTM(module.Module):
    """Characters to the logits of the next ones."""

    def __init__(self, vocabulary: int, args: argparse.Namespace) -> None:
        super().__init__()
        self.lstm = layer.LSTM(vocabulary, args.width, num_layers=args.layers, batch_first=True)
        self.head = layer.Linear(vocabulary)
        self.optimizer = opt.Adam(args.lr, clip_norm=5.0)

    def forward(self, x: Tensor, *state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Characters (N, T), and states as returned, none at first -> logits (N * T, vocabulary),
        and the states (layers, N, width) after the last character."""
        y, (h, c) = self.lstm(x, (state[0], state[1]) if state else None)
        return self.head(y.reshape((-1, y.shape[-1]))), h, c

    def train_one_batch(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Makes one step; returns the loss before it."""
        loss = autograd.softmax_cross_entropy(self.forward(x)[0], y)
        self.optimizer(loss)
        return {"loss": loss}


def write(model: CharLSTM, text: Text, count: int) -> str:
    """Continues the text's first character, each one drawn by its probability. A step reads one
    character and the states before it."""
    rng, made = np.random.default_rng(0), [int(text.data[0])]
    state: tuple[Tensor, ...] = ()
    for _ in range(count):
        logits, h, c = model(np.array([made[-1:]], np.int32), *state)
        state = h, c
        made.append(text.next(rng, logits.to_numpy()[-1]))
    return text.read(made)


def main() -> int:
    """Trains up to step `--steps`, and shows what the model writes; returns the exit status."""
    sizes = {"steps": 400, "batch": 16, "context": 48, "width": 128, "layers": 1}
    parser = training.parser(__doc__, **sizes, sample=200, lr=0.005, target=0.3)
    return learn(parser, CharLSTM, write)


if __name__ == "__main__":
    sys.exit(main())
