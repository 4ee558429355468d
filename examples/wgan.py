"""Trains a Wasserstein network with a gradient penalty (Gulrajani et al., 2017) on eight clusters.

The critic is drawn to a slope of length 1 between real and generated points. This penalty is a
gradient, whose own gradient updates the critic; it is recorded like the rest of the step.

    python examples/wgan.py
    python examples/wgan.py --checkpoint wgan --steps 999      # goes on to the bit if it is there

The exit status is 1 if the share of generated points in the least covered cluster (at best an
eighth, 0.125) is below `--target`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import training
from gan import coverage, network, real_points
from singa_rs import autograd, module, opt
from singa_rs.tensor import Tensor


class WGAN(module.Module):
    """A generator of points from noise, and a critic whose scores are not bounded."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        self.generator, self.critic = network(args.width, 2), network(args.width, 1)
        self.penalty, self.rounds = args.penalty, args.rounds
        self.generates = opt.Adam(args.lr, beta_1=0.0, beta_2=0.9, params="generator")
        self.criticises = opt.Adam(args.lr, beta_1=0.0, beta_2=0.9, params="critic")

    def forward(self, noise: Tensor) -> Tensor:
        """Noise (N, features) -> points (N, 2)."""
        return self.generator(noise)

    def slope_penalty(self, real: Tensor, made: Tensor, share: Tensor) -> Tensor:
        """How far the critic's slope is from length 1 at points between real and generated."""
        between = real * share + made * (1 - share)
        between.requires_grad = True
        score = autograd.sum(self.critic(between))
        slope = autograd.gradients(score, between, create_graph=True)
        length = (autograd.reduce_sum(slope * slope, 1, 0) + 1e-12).sqrt()
        return autograd.mean(autograd.square(length - 1.0))

    def _criticise(self, noise: Tensor, real: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        made = self.forward(noise).detach()
        distance = self.critic(real).mean() - self.critic(made).mean()
        penalty = self.slope_penalty(real, made, share)
        self.criticises(self.penalty * penalty - distance)
        return distance, penalty

    def train_one_batch(self, noise: Tensor, real: Tensor, share: Tensor) -> dict[str, Tensor]:
        """Makes a step of the critic for each of its batches, then one of the generator.

        Args:
            noise: (rounds, N, features).
            real: points (rounds, N, 2).
            share: of the real point in each one between, (rounds, N, 1).
        """
        steps = [self._criticise(noise[k], real[k], share[k]) for k in range(self.rounds)]
        distance, penalty = steps[-1]
        generator = -self.critic(self.forward(noise[0])).mean()
        self.generates(generator)
        return {"distance": distance, "penalty": penalty}


def main() -> int:
    """Trains up to step `--steps`; returns the exit status."""
    sizes = {"steps": 2000, "batch": 256, "width": 128, "noise": 8, "rounds": 3}
    numbers = {"lr": 0.001, "penalty": 0.1, "target": 0.08}
    args = training.parser(__doc__, **sizes, **numbers).parse_args()

    def draw(rng: np.random.Generator) -> list[np.ndarray]:
        shape = (args.rounds, args.batch)
        real = real_points(rng, args.rounds * args.batch).reshape(*shape, 2)
        noise, share = rng.normal(size=(*shape, args.noise)), rng.uniform(size=(*shape, 1))
        return [noise.astype(np.float32), real, share.astype(np.float32)]

    model = WGAN(args)
    training.train(model, args, draw)
    noise = np.random.default_rng(args.seed).normal(size=(4000, args.noise)).astype(np.float32)
    shares = coverage(model(noise).to_numpy())
    print("share of points in each cluster:", " ".join(f"{one:.3f}" for one in shares))
    return training.verdict(args, "least share", float(shares.min()))


if __name__ == "__main__":
    sys.exit(main())
