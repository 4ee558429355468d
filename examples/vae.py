"""Trains a variational autoencoder (Kingma and Welling, 2014) on handwritten digits, and draws new
ones.

    python examples/vae.py                                 # scikit-learn's digits of 8x8 pixels
    python examples/vae.py --checkpoint vae --steps 1000       # goes on to the bit if it is there

The exit status is 1 if the bound on the held-out digits' negative log likelihood, in nats an image,
is above `--target`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import training
from digits import load_digits
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs.tensor import Tensor, from_numpy


class VAE(module.Module):
    """Images to a normal distribution of codes, and codes back to the logits of images."""

    def __init__(self, pixels: int, args: argparse.Namespace) -> None:
        super().__init__()
        hidden = (layer.Linear(args.width, activation="RELU") for _ in range(2))
        self.latent = args.latent
        self.encoder = layer.Sequential(next(hidden), layer.Linear(2 * args.latent))
        self.decoder = layer.Sequential(next(hidden), layer.Linear(pixels))
        self.optimizer = opt.Adam(args.lr)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Images (N, pixels) -> the logits of images, the codes' means and log variances."""
        mean, log_variance = autograd.split(self.encoder(x), 1, [self.latent, self.latent])
        noise = Tensor(mean.shape, mean.device).gaussian(0, 1)
        code = mean + autograd.exp(log_variance * 0.5) * noise
        return self.decoder(code), mean, log_variance

    def bound(self, x: Tensor) -> Tensor:
        """The negative evidence lower bound: nats an image, for pixels in [0, 1]."""
        logits, mean, log_variance = self.forward(x)
        pixels = autograd.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        divergence = autograd.exp(log_variance) + mean * mean - 1.0 - log_variance
        return (pixels + divergence.sum() * 0.5) / x.shape[0]

    def train_one_batch(self, x: Tensor) -> dict[str, Tensor]:
        """Makes one step; returns the bound before it."""
        loss = self.bound(x)
        self.optimizer(loss)
        return {"loss": loss}


def show(images: np.ndarray) -> str:
    """Images (N, 8, 8) in [0, 1] side by side, as characters."""
    rows = np.concatenate(list(images), axis=1)
    return "\n".join("".join(" .:*#"[int(pixel * 4.99)] * 2 for pixel in row) for row in rows)


def main() -> int:
    """Trains up to step `--steps`; returns the exit status."""
    sizes = {"steps": 3000, "batch": 64, "width": 256, "latent": 16}
    args = training.parser(__doc__, **sizes, lr=0.002, target=24.5).parse_args()
    digits = load_digits()
    x, held_out = (one.reshape(len(one), -1) for one in (digits.x, digits.test_x))

    def draw(rng: np.random.Generator) -> list[np.ndarray]:
        return [x[rng.integers(0, len(x), args.batch)]]

    model = VAE(x.shape[1], args)
    training.train(model, args, draw)
    codes = Tensor((8, args.latent), training.on(args)).gaussian(0, 1)
    print(show(tensor.to_numpy(autograd.sigmoid(model.decoder(codes))).reshape(-1, 8, 8)))
    images = from_numpy(held_out, training.on(args))
    bounds = [model.bound(images).item() for _ in range(20)]
    return training.verdict(args, "bound", float(np.mean(bounds)), least=False)


if __name__ == "__main__":
    sys.exit(main())
