"""Trains a network at a rate that follows from the curvature of its loss.

Along the direction of greatest curvature, gradient descent is stable up to a rate of 2 divided by
that curvature. Each step multiplies a direction by the Hessian, as the gradient of a gradient
(Pearlmutter, 1994), which turns it towards that of greatest curvature, and takes `--share` of the
stable rate; until the direction has turned, the curvature counts as at least `--least`. Nothing
returns to Python: the direction and the rate are tensors of the recorded step.

    python examples/curvature.py
    python examples/curvature.py --checkpoint c --steps 99      # goes on to the bit if it is there

The exit status is 1 if R², the share of the variance that is explained, is below `--target`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

import numpy as np
import training
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor, from_numpy
from tabular import friedman


def flat(tensors: Iterable[Tensor]) -> Tensor:
    """All elements, one tensor after another."""
    return autograd.cat([autograd.reshape(one, (one.numel,)) for one in tensors], 0)


class Net(module.Module):
    """Two linear layers, and the direction in which their loss is most curved."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        hidden = layer.Linear(args.width, activation="TANH", kernel_init="he_normal")
        self.body, self.optimizer = layer.Sequential(hidden, layer.Linear(1)), opt.SGD(1.0)
        self.share, self.least = args.share, args.least
        count = 10 * args.width + 2 * args.width + 1
        drawn = np.random.default_rng(args.seed).normal(size=count) / np.sqrt(count)
        self.direction = from_numpy(drawn.astype(np.float32), training.on(args))

    def forward(self, x: Tensor) -> Tensor:
        """Features (N, 10) -> labels (N, 1)."""
        return self.body(x)

    def train_one_batch(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Makes one step; returns the loss before it, and the curvature."""
        params = list(self.get_params().values())
        loss = autograd.mse_loss(self.forward(x), y)
        slopes = autograd.gradients(loss, params, create_graph=True)
        bent = flat(autograd.gradients(flat(slopes), self.direction, xs=params))
        curvature = autograd.sum(bent * self.direction)  # Rayleigh's quotient
        self.direction.copy_from(bent / (autograd.sum(bent * bent).sqrt() + 1e-12))
        rate = 2 * self.share / autograd.clip(autograd.abs(curvature), self.least, 1e6)
        for param, slope in zip(params, slopes, strict=True):
            self.optimizer.update(param, slope.detach() * rate)
        return {"loss": loss, "curvature": curvature}


def greatest(model: Net, x: np.ndarray, y: np.ndarray, step: float = 1e-3) -> float:
    """The curvature along the direction, by differences of the gradient instead of products."""
    model.train()
    features, labels = (from_numpy(one, model.direction.device) for one in (x, y))
    params, parts = list(model.get_params().values()), []
    direction, kept = model.direction.to_numpy(), [param.to_numpy() for param in params]
    for sign in (1, -1):
        ends = np.cumsum([one.size for one in kept])[:-1]
        for param, one, part in zip(params, kept, np.split(direction, ends), strict=True):
            param.copy_from(one + sign * step * part.reshape(one.shape))
        loss = autograd.mse_loss(model.body(features), labels)
        parts.append(flat(autograd.gradients(loss, params)).to_numpy())
    for param, one in zip(params, kept, strict=True):
        param.copy_from(one)
    model.eval()
    return float((parts[0] - parts[1]) @ direction / (2 * step))


def main() -> int:
    """Trains up to step `--steps`; returns the exit status."""
    sizes = {"steps": 500, "width": 64, "rows": 1000}
    args = training.parser(__doc__, **sizes, share=0.5, least=10.0, target=0.75).parse_args()
    table = friedman(np.random.default_rng(0), args.rows)
    table = (table - table.mean(0)) / table.std(0)
    x, y = table[:, :-1], table[:, -1:]
    model = Net(args)
    losses = training.train(model, args, lambda rng: (x, y))
    if losses:
        print(
            f"curvature {losses[-1]['curvature']:.4f}, by differences {greatest(model, x, y):.4f}"
        )
    errors = model(x).to_numpy() - y
    return training.verdict(args, "R²", float(1 - (errors**2).mean() / y.var()))


if __name__ == "__main__":
    sys.exit(main())
