"""Losses of training steps next to PyTorch's, from the same weights and batches.

    python benches/python/parity.py        # in an environment with singa_rs and torch
    python benches/python/parity.py gpt    # those with `gpt` in their name

Each model is trained for 20 steps with each optimizer, in float32 and with products in bfloat16
(`compile(amp=)` beside `torch.autocast`). Prints the largest relative difference of a loss; the
exit status is 1 if one is above 1e-5 in float32, or 2e-2 in mixed precision.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import parity_models as ours
import parity_torch as theirs
import torch
from singa_rs import device, module, opt
from singa_rs.tensor import Tensor, from_numpy

STEPS = 20
BOUNDS = {None: 1e-5, "bfloat16": 2e-2}
Arrays = tuple[np.ndarray, ...]


class Case(NamedTuple):
    """A model in both libraries, the loss of a batch in each, and how batches are drawn."""

    ours: Callable[[], Any]
    theirs: Callable[[], torch.nn.Module]
    loss: tuple[Callable, Callable]
    draw: Callable[[np.random.Generator], Arrays]


def symbols(rng: np.random.Generator) -> Arrays:
    """Symbols (batch, steps), and those that follow."""
    made = rng.integers(0, ours.SYMBOLS, (8, 33)).astype(np.int32)
    return made[:, :-1].copy(), made[:, 1:].copy()


def pictures(rng: np.random.Generator) -> Arrays:
    """Pictures, and 1 where something is bright."""
    x = rng.normal(size=(4, 1, 32, 32)).astype(np.float32)
    return x, (x + np.roll(x, 1, 2) > 0.5).astype(np.float32)


def images(rng: np.random.Generator) -> Arrays:
    """Images in [0, 1], and the noise of their codes."""
    x = rng.uniform(size=(32, 64)).astype(np.float32)
    return x, rng.normal(size=(32, ours.LATENT)).astype(np.float32)


CASES = {
    "lstm": Case(ours.Lstm, theirs.Lstm, (ours.next_symbol, theirs.next_symbol), symbols),
    "gru": Case(ours.Gru, theirs.Gru, (ours.next_symbol, theirs.next_symbol), symbols),
    "gpt": Case(ours.Gpt, theirs.Gpt, (ours.next_symbol, theirs.next_symbol), symbols),
    "unet": Case(ours.UNet, theirs.UNet, (ours.mask, theirs.mask), pictures),
    "vae": Case(ours.Vae, theirs.Vae, (ours.bound, theirs.bound), images),
}
OPTIMIZERS = {
    "sgd": (
        lambda: opt.SGD(0.05, momentum=0.9),
        lambda params: torch.optim.SGD(params, 0.05, momentum=0.9),
    ),
    "adamw": (
        lambda: opt.AdamW(1e-3, weight_decay=0.01),
        lambda params: torch.optim.AdamW(params, 1e-3, weight_decay=0.01),
    ),
}


class Step(module.Module):
    """A network, its loss and its optimizer."""

    def __init__(self, case: Case, optimizer: opt.Optimizer) -> None:
        super().__init__()
        self.net, self.optimizer, self.loss = case.ours(), optimizer, case.loss[0]

    def forward(self, *batch: Tensor) -> Tensor:
        """The loss of a batch."""
        return self.loss(self.net, *batch)

    def train_one_batch(self, *batch: Tensor) -> Tensor:
        """Makes one step; returns the loss before it."""
        loss = self.forward(*batch)
        self.optimizer(loss)
        return loss


def give(step: Step, net: torch.nn.Module) -> None:
    """Copies our parameters into PyTorch's model, whose modules have the same names."""
    for name, param in step.get_params().items():
        path, _, last = name.removeprefix("net.").rpartition(".")
        to, value = net.get_submodule(path), torch.from_numpy(param.to_numpy())
        with torch.no_grad():
            if isinstance(to, torch.nn.RNNBase):
                theirs.give_recurrent(to, last, value)
            elif last in ("b", "bias"):
                to.bias.copy_(value)
            else:
                to.weight.copy_(value.T if isinstance(to, torch.nn.Linear) else value)


def losses(
    case: Case, optimizers: tuple[Callable, Callable], amp: str | None
) -> tuple[list[float], list[float]]:
    """Those of our steps, and of PyTorch's."""
    rng = np.random.default_rng(0)
    batches = [case.draw(rng) for _ in range(STEPS)]
    device.get_default_device().set_seed(0)
    step, net = Step(case, optimizers[0]()), case.theirs()
    step.compile([from_numpy(one) for one in batches[0]], amp=amp)
    give(step, net)
    optimizer, found = optimizers[1](net.parameters()), []
    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=amp is not None):
            loss = case.loss[1](net, *map(torch.from_numpy, batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return [step.train_one_batch(*batch).item() for batch in batches], found


def main() -> int:
    """Prints a line for each comparison; returns the exit status."""
    only, is_apart = sys.argv[1] if len(sys.argv) > 1 else "", False
    torch.set_num_threads(2)
    for name, case in CASES.items():
        for optimizer, both in OPTIMIZERS.items() if only in name else ():
            for amp, bound in BOUNDS.items():
                mine, other = (np.array(one) for one in losses(case, both, amp))
                apart = np.abs(mine / other - 1).max()
                is_apart |= bool(not apart <= bound)
                title = f"{name}, {optimizer}, {amp or 'float32'}"
                print(f"{title:24} {apart:.1e} at most {bound:.0e}, last loss {mine[-1]:.5f}")
    return int(is_apart)


if __name__ == "__main__":
    sys.exit(main())
