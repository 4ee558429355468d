"""Trains a generative adversarial network (Goodfellow et al., 2014) on eight clusters in a ring.

Two optimizers each own the parameters of one network. The losses are relativistic (Jolicoeur-
Martineau, 2019): the critic compares a real point with a generated one, which covers every cluster.

    python examples/gan.py
    python examples/gan.py --checkpoint gan --steps 1000        # goes on to the bit if it is there

The exit status is 1 if the share of generated points in the least covered cluster (at best an
eighth, 0.125), counting those within three deviations of its centre, is below `--target`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import training
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor

MODES, DEVIATION = 8, 0.2
ANGLES = 2 * np.pi * np.arange(MODES) / MODES
CENTRES = np.stack([np.cos(ANGLES), np.sin(ANGLES)], 1) * 2


def network(width: int, outputs: int) -> layer.Sequential:
    """Three linear layers."""
    hidden = [layer.Linear(width, activation="TANH", kernel_init="he_normal") for _ in range(2)]
    return layer.Sequential(*hidden, layer.Linear(outputs))


class GAN(module.Module):
    """A generator of points from noise, and a critic that says which points are real."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        self.generator, self.critic = network(args.width, 2), network(args.width, 1)
        self.generates = opt.Adam(args.lr, beta_1=0.5, params="generator")
        self.criticises = opt.Adam(args.lr, beta_1=0.5, params="critic")

    def forward(self, noise: Tensor) -> Tensor:
        """Noise (N, features) -> points (N, 2)."""
        return self.generator(noise)

    def train_one_batch(self, noise: Tensor, real: Tensor) -> dict[str, Tensor]:
        """Makes a step of the critic, then one of the generator."""
        made = self.forward(noise)
        critic = autograd.softplus(self.critic(made.detach()) - self.critic(real)).mean()
        self.criticises(critic)
        generator = autograd.softplus(self.critic(real) - self.critic(made)).mean()
        self.generates(generator)
        return {"critic": critic, "generator": generator}


def real_points(rng: np.random.Generator, count: int) -> np.ndarray:
    """Points of the clusters (count, 2)."""
    points = CENTRES[rng.integers(0, MODES, count)]
    return (points + DEVIATION * rng.normal(size=(count, 2))).astype(np.float32)


def coverage(points: np.ndarray) -> np.ndarray:
    """The share of the points that are in each cluster."""
    distances = np.linalg.norm(points[:, None] - CENTRES, axis=2)
    shares: np.ndarray = (distances < 3 * DEVIATION).mean(axis=0)
    return shares


def main() -> int:
    """Trains up to step `--steps`; returns the exit status."""
    sizes = {"steps": 4000, "batch": 256, "width": 128, "noise": 8}
    args = training.parser(__doc__, **sizes, lr=0.001, target=0.08).parse_args()

    def noise(rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.normal(size=(count, args.noise)).astype(np.float32)

    def draw(rng: np.random.Generator) -> list[np.ndarray]:
        return [noise(rng, args.batch), real_points(rng, args.batch)]

    model = GAN(args)
    training.train(model, args, draw)
    shares = coverage(model(noise(np.random.default_rng(args.seed), 4000)).to_numpy())
    print("share of points in each cluster:", " ".join(f"{one:.3f}" for one in shares))
    return training.verdict(args, "least share", float(shares.min()))


if __name__ == "__main__":
    sys.exit(main())
