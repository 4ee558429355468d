"""What the examples share: numbers on the command line, steps that resume to the bit, the verdict.

A `train_one_batch` returns losses by name; a model's attributes that are optimizers or averages
of weights are saved along with it. Whatever is random in a step follows from the seed and the
number of the step alone, so that a resumed run draws the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from singa_rs import device, module, opt
from singa_rs.tensor import from_numpy
from tqdm import tqdm

#: Draws the arrays of a batch.
Draw = Callable[[np.random.Generator], Sequence[np.ndarray]]
#: What has states beside the model's.
KEEP_STATES = (opt.Optimizer, opt.MovingAverage)


def parser(doc: str | None, **numbers: float) -> argparse.ArgumentParser:
    """A command line with `--device`, `--checkpoint` and a number for each default."""
    made = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    made.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="default cpu")
    made.add_argument("--checkpoint", type=Path, help="a folder, gone on from if it has any")
    made.add_argument(
        "--every", type=int, default=1000, help="steps from one checkpoint to the next"
    )
    for name, value in {"seed": 0, **numbers}.items():
        made.add_argument(f"--{name}", type=type(value), default=value, help=f"default {value}")
    return made


def on(args: argparse.Namespace) -> device.Device:
    """The device that `--device` names."""
    return device.create_cuda_gpu() if args.device == "cuda" else device.get_default_device()


def seed(dev: device.Device, number: int) -> None:
    """Seeds what is drawn on a device and on the CPU."""
    for one in (device.get_default_device(), dev):
        one.set_seed(number)


def optimizers(model: module.Module) -> dict[str, Any]:
    """A model's optimizers and averages, by the names of its attributes."""
    return {name: one for name, one in vars(model).items() if isinstance(one, KEEP_STATES)}


def train(
    model: module.Module, args: argparse.Namespace, draw: Draw, inputs: int = 1
) -> list[dict[str, Any]]:
    """Makes the steps up to `args.steps`, from that of the checkpoint on; returns their losses.

    `draw` makes a batch, the arguments of `train_one_batch`; `forward` takes the first `inputs`.
    """
    dev = on(args)
    seed(dev, args.seed)
    batch = draw(np.random.default_rng(args.seed))
    model.compile([from_numpy(one, dev) for one in batch[:inputs]])
    kept = module.Checkpoints(args.checkpoint, args.every, keep=2) if args.checkpoint else None
    resumed = kept.resume(model, optimizers(model)) if kept else None
    done, losses = resumed.step if resumed else 0, []
    if done > args.steps:
        sys.exit(f"--steps: got {args.steps}, but {args.checkpoint} is of step {done}")
    for step in (bar := tqdm(range(done, args.steps), unit="step")):
        rng = np.random.default_rng([args.seed, step])
        seed(dev, int(rng.integers(1 << 31)))
        made = model(*draw(rng))
        losses.append({name: loss.item() for name, loss in made.items()})
        bar.set_postfix({name: f"{loss:.4f}" for name, loss in losses[-1].items()}, refresh=False)
        if kept and (step + 1 == args.steps or (step + 1) % args.every == 0):
            kept.save(step + 1, model, optimizers(model), losses[-1])
    model.eval()
    seed(dev, args.seed)  # what is drawn now does not depend on where the run began
    return losses


def verdict(args: argparse.Namespace, what: str, value: float, least: bool = True) -> int:
    """Prints the result; returns the exit status, 1 if it is below `args.target`, or with
    `least=False` above it."""
    print(f"step {args.steps}: {what} {value:.6f}, target {args.target}")
    return 0 if (value >= args.target if least else value <= args.target) else 1
