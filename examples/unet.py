"""Trains a U-Net (Ronneberger et al., 2015) to find discs in noisy pictures of discs and squares.

    python examples/unet.py
    python examples/unet.py --checkpoint unet --steps 200        # goes on to the bit if it is there

The exit status is 1 if the intersection over union of the discs found in new pictures is below
`--target`.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import training
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor

SIZE, SHAPES, HELD_OUT = 32, 4, 100


def block(channels: int) -> layer.Sequential:
    """Two convolutions, each normalised."""
    parts = []
    for _ in range(2):
        conv = layer.Conv2d(channels, 3, padding=1, bias=False, kernel_init="he_normal")
        parts += [conv, layer.BatchNorm2d(), layer.ReLU()]
    return layer.Sequential(*parts)


class UNet(module.Module):
    """Down to coarser pictures and up again; on the way up, each level also sees its own picture
    from the way down."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        widths = [args.width << level for level in range(args.levels)]
        self.down = layer.ModuleList(block(width) for width in widths)
        self.up = layer.ModuleList(block(width) for width in reversed(widths[:-1]))
        self.pool, self.grow, self.join = layer.MaxPool2d(2), layer.Upsample(2), layer.Cat(1)
        self.head = layer.Conv2d(1, 1)
        self.optimizer = opt.AdamW(opt.ExponentialDecay(args.lr, 200, 0.5))

    def forward(self, x: Tensor) -> Tensor:
        """Pictures (N, 1, H, W) -> the logits of a disc at each pixel, of the same shape."""
        seen = [self.down[0](x)]
        for level in self.down[1:]:
            seen.append(level(self.pool(seen[-1])))
        y = seen.pop()
        for level in self.up:
            y = level(self.join([seen.pop(), self.grow(y)]))
        return self.head(y)

    def train_one_batch(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Makes one step; returns the loss before it."""
        loss = autograd.binary_cross_entropy_with_logits(self.forward(x), y)
        self.optimizer(loss)
        return {"loss": loss}


def pictures(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy pictures (count, 1, SIZE, SIZE), and 1 where a disc is; later shapes hide earlier."""
    x, y = (np.zeros((count, 1, SIZE, SIZE), np.float32) for _ in range(2))
    grid = np.indices((SIZE, SIZE))
    for picture, mask in zip(x[:, 0], y[:, 0], strict=True):
        for is_disc in rng.integers(0, 2, SHAPES):
            away = grid - rng.integers(0, SIZE, (2, 1, 1))
            radius = rng.integers(4, 9)
            inside = np.hypot(*away) <= radius if is_disc else abs(away).max(0) < 0.9 * radius
            picture[inside], mask[inside] = rng.uniform(0.4, 1), is_disc
    return x + rng.normal(0, 0.1, x.shape).astype(np.float32), y


def main() -> int:
    """Trains up to step `--steps`; returns the exit status."""
    sizes = {"steps": 600, "batch": 16, "width": 8, "levels": 3}
    args = training.parser(__doc__, **sizes, lr=0.004, target=0.8).parse_args()
    model = UNet(args)
    training.train(model, args, lambda rng: pictures(rng, args.batch))
    x, y = pictures(np.random.default_rng([args.seed, 0, 1]), HELD_OUT)
    found, discs = model(x).to_numpy() > 0, y > 0
    overlap = (found & discs).sum() / (found | discs).sum()
    return training.verdict(args, "intersection over union", float(overlap))


if __name__ == "__main__":
    sys.exit(main())
