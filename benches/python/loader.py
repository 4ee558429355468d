"""A training step fed by a loader, against the same step on one batch that is always there.

    python benches/python/loader.py
    python benches/python/loader.py --workers process

A small convolutional network on images that are shifted and mirrored at random by two workers in
the background. Both sides take turns, a few steps each. Prints the mean time of a step on either
side, the part of it that the calling thread computed (all of the step's work, with `--threads 1`),
the ratio of each, and the part that it waited for its batch: medians over the rounds.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from singa_rs import autograd, data, device, layer, module, opt
from singa_rs.tensor import Tensor

BATCH, IMAGES, CLASSES, SHIFT = 64, 4096, 10, 4


class Net(module.Module):
    """Two convolutions and a linear layer, trained with momentum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = layer.Conv2d(width, 3, padding=1, activation="RELU")
        self.second = layer.Conv2d(2 * width, 3, padding=1, activation="RELU")
        self.pool, self.flat = layer.MaxPool2d(2, 2), layer.Flatten()
        self.fc, self.loss = layer.Linear(CLASSES), layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(0.01, momentum=0.9)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.flat(self.pool(self.second(self.pool(self.first(x))))))

    def train_one_batch(self, x: Tensor, y: Tensor) -> Tensor:
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def augmented(batch: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Images shifted by up to four pixels in each direction and mirrored, each at random."""
    images, labels = batch
    rng, (count, _, height, width) = data.rng(), images.shape
    padded = np.pad(images, ((0, 0), (0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (2, 3))
    top, left = rng.integers(0, 2 * SHIFT + 1, (2, count))
    made = windows[np.arange(count), :, top, left]
    mirrored = rng.random(count) < 0.5
    made[mirrored] = made[mirrored, ..., ::-1]
    return made, labels


def forever(loader: data.DataLoader) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of one epoch after another."""
    while True:
        yield from loader


class Times(NamedTuple):
    """Mean seconds of a step: in all, on the processor of the calling thread, and waiting."""

    wall: float
    thread: float
    waiting: float


def timed(net: Net, batches: Iterator[tuple[Tensor, Tensor]], steps: int) -> Times:
    """The times of some steps, each with the next batch."""
    waited, wall, thread = 0.0, time.perf_counter(), time.thread_time()
    for _ in range(steps):
        before = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - before
        net(*batch)
    spent = time.perf_counter() - wall, time.thread_time() - thread, waited
    return Times(*(seconds / steps for seconds in spent))


def rounds(net: Net, loader: data.DataLoader, count: int, steps: int) -> list[tuple[Times, Times]]:
    """Times on the fixed batch and of steps that are fed, in turn."""
    fed = forever(loader)
    fixed = itertools.repeat(next(fed))
    return [(timed(net, fixed, steps), timed(net, fed, steps)) for _ in range(count)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=21)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--width", type=int, default=32)
    options.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 1) - 1))
    options.add_argument("--workers", choices=("thread", "process"), default="thread")
    args = options.parse_args()
    device.get_default_device().set_num_threads(args.threads)
    autograd.training = True
    rng = np.random.default_rng(0)
    images = rng.random((IMAGES, 3, 32, 32), np.float32)
    labels = rng.integers(0, CLASSES, IMAGES).astype(np.int32)
    net = Net(args.width)
    with data.DataLoader(
        (images, labels), BATCH, True, drop_last=True, num_workers=2, workers=args.workers,
        prefetch=4, transform=augmented, persistent_workers=True,
    ) as loader:  # fmt: skip
        net.compile([Tensor((BATCH, 3, 32, 32))], is_train=True, use_graph=True)
        rounds(net, loader, 1, args.steps)  # recorded, and warm
        times = rounds(net, loader, args.rounds, args.steps)
    print("| | fixed batch | fed | ratio |")
    for name in ("wall", "thread"):
        fixed, fed = ([getattr(one, name) for one in side] for side in zip(*times, strict=True))
        ratio = statistics.median(b / a for a, b in zip(fixed, fed, strict=True))
        shown = [f"{statistics.median(side) * 1e3:.2f} ms" for side in (fixed, fed)]
        print(f"| {name} | {shown[0]} | {shown[1]} | {ratio:.3f} |")
    waiting = statistics.median(fed.waiting for _, fed in times)
    share = statistics.median(fed.waiting / fed.wall for _, fed in times)
    print(f"| waiting | | {waiting * 1e3:.2f} ms | {share:.1%} of the step |")


if __name__ == "__main__":
    main()
