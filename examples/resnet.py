"""Trains a residual network of 18, 34 or 50 layers (He et al., 2015) on images.

    python examples/resnet.py                                  # patterns made up for the purpose
    python examples/resnet.py --data DIR --size 224            # a folder of folders of pictures
    python examples/resnet.py --save net                       # ... and keep what was learnt
    python examples/resnet.py --load net --epochs 0            # only evaluate it

A fifth of the images is held out. Ends with a table of what recording the step saved: eager
execution against replay, each in its own process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np
from images import Images, folder, synthetic
from progress import Progress
from residual import DEPTHS, ResNet
from savings import print_cost, print_savings
from singa_rs import device, opt, tensor
from singa_rs.errors import CheckpointError


def network(images: Images, args: argparse.Namespace) -> ResNet:
    """A new model."""
    optimizer = opt.SGD(args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    return ResNet(args.depth, images.classes, optimizer)


def evaluate(model: ResNet, images: Images, batch: int) -> tuple[float, float]:
    """The mean cross entropy, and the share of images that the model classifies correctly."""
    model.eval()
    losses, hits = [], []
    for x, y in images.batches(batch):
        scores = model(x).to_numpy().astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[np.arange(len(y)), y]
        losses.append(np.log(np.exp(scores).sum(axis=1)) - own)
        hits.append(scores.argmax(axis=1) == y)
    return float(np.concatenate(losses).mean()), float(np.concatenate(hits).mean())


def train_epoch(
    model: ResNet, images: Images, rng: np.random.Generator, steps: int, args: argparse.Namespace
) -> Iterator[tuple[int, float]]:
    """So many steps; yields the images of each and its loss."""
    model.train()
    for _, (x, y) in zip(range(steps), images.batches(args.batch, rng), strict=False):
        _, loss = model(x, y)
        yield len(x), loss.item()


def train(model: ResNet, kept: Images, held: Images, args: argparse.Namespace) -> None:
    """Trains for all epochs, with an evaluation after each."""
    rng = np.random.default_rng(args.seed)
    steps = min(args.steps or len(kept.x), len(kept.x) // args.batch)
    progress = Progress(args.epochs, steps * args.batch)
    for epoch in range(1, args.epochs + 1):
        start, losses = time.perf_counter(), []
        for count, loss in train_epoch(model, kept, rng, steps, args):
            losses.append(loss)
            progress.batch(count)
        speed = len(losses) * args.batch / (time.perf_counter() - start)
        accuracy = evaluate(model, held, args.batch)[1]
        progress.epoch(epoch, float(np.mean(losses)), accuracy, speed)
    progress.close()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--depth", type=int, choices=DEPTHS, default=18)
    add("--data", metavar="DIR", help="a folder with a folder of pictures for each class")
    add("--images", type=int, default=640, help="synthetic images, without --data")
    add("--classes", type=int, default=10, help="of the synthetic images")
    add("--size", type=int, default=64, help="the images' height and width")
    add("--batch", type=int, default=16)
    add("--epochs", type=int, default=3)
    add("--steps", type=int, help="at most so many an epoch")
    add("--device", choices=["cpu", "cuda"], default="cpu")
    add("--lr", type=float, default=0.02)
    add("--momentum", type=float, default=0.9)
    add("--weight-decay", type=float, default=1e-4)
    add("--seed", type=int, default=0)
    add("--save", metavar="PATH", help="write a checkpoint in the end, PATH.onnx and its state")
    add("--load", metavar="PATH", help="begin with what --save wrote")
    add("--eager", action="store_true", help="without recording")
    add("--savings", action=argparse.BooleanOptionalAction, default=True, help="the last table")
    add("--measure", choices=["eager", "replay"], help="print the cost of a step as JSON, no more")
    return parser.parse_args()


def prepare(args: argparse.Namespace) -> Images:
    """All images; ends the program if there are not enough."""
    try:
        if args.data:
            images = folder(args.data, args.size)
        else:
            images = synthetic(args.images, args.size, args.classes)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        sys.exit(str(error))
    kept = len(images.split()[0].x)
    if kept < args.batch:
        sys.exit(f"--batch {args.batch}: there are only {kept} images to train on")
    return images


def compiled(images: Images, args: argparse.Namespace) -> ResNet:
    """The model, ready to use; ends the program if what is to be loaded does not fit."""
    model = network(images, args)
    dev = device.create_cuda_gpu() if args.device == "cuda" else device.get_default_device()
    dev.set_seed(args.seed)
    inputs = tensor.Placeholder((args.batch, 3, args.size, args.size), dev)
    model.compile([inputs], use_graph=not args.eager)
    try:
        if args.load:
            model.load(args.load, state={"optimizer": model.optimizer})
    except CheckpointError as error:
        sys.exit(str(error))
    return model


def main() -> None:
    """Does all that the command line asks for."""
    args = arguments()
    device.get_default_device().set_seed(args.seed)
    images = prepare(args)
    kept, held = images.split()
    if args.measure:
        batch = next(kept.batches(args.batch, np.random.default_rng(0)))
        print_cost(lambda: network(images, args), *batch, args.measure, steps=20)
        return
    print(f"{len(kept.x)} images of {images.classes} classes to train on, {len(held.x)} held out")
    model = compiled(images, args)
    train(model, kept, held, args)
    print("test loss {:.6f}, test accuracy {:.2%}".format(*evaluate(model, held, args.batch)))
    if args.save:
        model.save(args.save, {"optimizer": model.optimizer})
    if args.savings and args.epochs and not args.eager:
        print_savings()


if __name__ == "__main__":
    main()
