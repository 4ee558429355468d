"""Trains the network of digits.py in C: writes its step and its batches, and judges the result.

    make library
    cc -Isrc/capi examples/train.c target/library/release/libsinga_rs.so -o train
    python examples/digits_step.py export FOLDER              # step.srs and batches.raw
    ./train FOLDER/step.srs FOLDER/batches.raw FOLDER/trained.srs
    python examples/digits_step.py evaluate FOLDER/trained.srs

Both commands take the options of digits.py that shape the network and its training. Each batch is
the images and then the labels, as they lie in memory. The exit status of `evaluate` is 1 if the
accuracy on the held-out digits is below `--target`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import digits
import numpy as np
from singa_rs import Step, data, device, opt, tensor

Batch = tuple[np.ndarray, np.ndarray]


def network(known: digits.Digits, args: argparse.Namespace) -> digits.Net:
    """The network of digits.py with its optimizer, compiled."""
    device.get_default_device().set_seed(args.seed)
    steps = args.epochs * (len(known.x) // args.batch)
    lr = opt.ExponentialDecay(args.lr, decay_steps=max(1, steps), decay_rate=0.02)
    model = digits.network(known, args, opt.Adam(lr))
    model.compile([tensor.Placeholder((args.batch, *known.x.shape[1:]))], use_graph=True)
    return model


def batches(known: digits.Digits, args: argparse.Namespace) -> Iterator[Batch]:
    """All batches of a training, in order."""
    rng = np.random.default_rng(args.seed)
    for _ in range(args.epochs):
        for x, y in data.batches(known.x, known.y, size=args.batch, rng=rng, partial=False):
            yield digits.shifted(x, rng, args.shift).astype(np.float32), y


def export(folder: Path, args: argparse.Namespace) -> None:
    """Writes the step and the batches."""
    known = digits.load_digits()
    folder.mkdir(parents=True, exist_ok=True)
    network(known, args).save_step(folder / "step.srs", *next(batches(known, args)))
    with open(folder / "batches.raw", "wb") as file:
        for batch in batches(known, args):
            file.writelines(one.tobytes() for one in batch)


def accuracy(trained: Path, args: argparse.Namespace) -> float:
    """The accuracy of the network with the states of a trained step."""
    known = digits.load_digits()
    model = network(known, args)
    model.set_states(Step.load(trained).states)
    return digits.evaluate(model, known.test_x, known.test_y)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("command", choices=["export", "evaluate"])
    add("path", type=Path, help="a folder to write to, or a trained step")
    add("--seed", type=int, default=0)
    add("--epochs", type=int, default=30)
    add("--batch", type=int, default=32)
    add("--lr", type=float, default=0.004)
    add("--shift", type=float, default=0.4)
    add("--width", type=int, default=32)
    add("--target", type=float, default=0.97, help="the least accuracy")
    return parser.parse_args()


def main() -> int:
    """Exports or evaluates; returns the exit status."""
    args = arguments()
    if args.command == "export":
        export(args.path, args)
        return 0
    reached = accuracy(args.path, args)
    print(f"test accuracy: {reached:.2%}, target {args.target:.2%}")
    return 0 if reached >= args.target else 1


if __name__ == "__main__":
    sys.exit(main())
