"""Trains a network to predict a number from the numbers of a row.

    python examples/tabular.py                                 # Friedman's (1991) function, noisy
    python examples/tabular.py --data FILE.csv --target 0.5    # the last column, from the others
    python examples/tabular.py --checkpoint t --steps 500      # goes on to the bit if it is there

The exit status is 1 if R², the share of the variance of held-out rows that is explained, is below
`--target`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import training
from singa_rs import autograd, data, layer, module, opt
from singa_rs.tensor import Tensor


def friedman(rng: np.random.Generator, rows: int = 4000) -> np.ndarray:
    """Ten uniform columns, of which five matter, and `10 sin(pi a b) + 20 (c - 1/2)² + 10 d + 5 e`
    plus normal noise of deviation 1; nothing explains more than 0.96 of its variance."""
    x = rng.uniform(size=(rows, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + x[:, 3:5] @ [10, 5]
    return np.column_stack([x, y + rng.normal(size=rows)]).astype(np.float32)


class Net(module.Module):
    """Normalised rows through a stack of linear layers."""

    def __init__(self, rows: np.ndarray, args: argparse.Namespace) -> None:
        super().__init__()
        self.mean, self.deviation = rows.mean(0), rows.std(0) + 1e-6
        widths = [args.width] * args.layers
        hidden = [
            layer.Linear(width, activation="RELU", kernel_init="he_normal") for width in widths
        ]
        self.body = layer.Sequential(*hidden, layer.Dropout(args.dropout), layer.Linear(1))
        rate = opt.ExponentialDecay(args.lr, 500, 0.5)
        self.optimizer = opt.AdamW(rate, weight_decay=args.decay, clip_norm=1.0)
        self.optimizer.group("*.b", weight_decay=0)
        self.average = opt.MovingAverage(0.99)

    def normalised(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows as features (N, columns - 1) and labels (N, 1), each of mean 0 and deviation 1."""
        scaled = (rows - self.mean) / self.deviation
        return scaled[:, :-1], scaled[:, -1:]

    def forward(self, x: Tensor) -> Tensor:
        """Features (N, columns - 1) -> labels (N, 1)."""
        return self.body(x)

    def train_one_batch(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Makes one step; returns the loss before it."""
        loss = autograd.smooth_l1_loss(self.forward(x), y)
        self.optimizer(loss)
        self.average.update(self.get_params())
        return {"loss": loss}


def main() -> int:
    """Trains up to step `--steps`; returns the exit status."""
    sizes = {"steps": 1500, "batch": 64, "width": 128, "layers": 2}
    floats = {"dropout": 0.1, "decay": 0.02, "lr": 0.003, "target": 0.92}
    parser = training.parser(__doc__, **sizes, **floats)
    parser.add_argument("--data", type=Path, help="a file of comma-separated numbers with a header")
    args = parser.parse_args()
    table = (
        data.read_csv(args.data, header=True) if args.data else friedman(np.random.default_rng(0))
    )
    table = np.random.default_rng(1).permutation(table)
    held_out, known = np.split(table, [len(table) // 5])
    model = Net(known, args)
    features, labels = model.normalised(known)

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.integers(0, len(known), args.batch)
        return features[rows], labels[rows]

    training.train(model, args, draw)
    x, y = model.normalised(held_out)
    with model.average.applied(model.get_params()):
        errors = model(x).to_numpy() - y
    return training.verdict(args, "R²", float(1 - (errors**2).mean() / y.var()))


if __name__ == "__main__":
    sys.exit(main())
