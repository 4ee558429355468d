"""Attention alone, forward and backward, against PyTorch's, in turns.

    python benches/python/attention.py                    # 8 heads of 64, 512 to 4096 steps
    python benches/python/attention.py --causal --steps 1024

Prints the medians of both, their ratio, and the growth of the peak memory of a process with the
steps. Each contender lives in a process of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from contenders import Contender, begin, compare

HEADS, WIDTH = 8, 64


def ours(steps: int, causal: bool, threads: int) -> Callable[[], None]:
    """A step of this package, recorded."""
    from singa_rs import autograd, device, tensor

    dev = device.get_default_device()
    dev.set_num_threads(threads)
    autograd.training = True
    q, k, v, dy = (tensor.from_numpy(array) for array in arrays(steps))
    dy.requires_grad = False
    for x in (q, k, v):
        x.requires_grad = x.stores_grad = True

    def step() -> None:
        y = autograd.scaled_dot_product_attention(q, k, v, is_causal=causal)
        list(autograd.backward(y, dy))

    return step


def theirs(steps: int, causal: bool, threads: int) -> Callable[[], None]:
    """A step of PyTorch."""
    import torch

    torch.set_num_threads(threads)
    q, k, v, dy = (torch.from_numpy(array) for array in arrays(steps))
    for x in (q, k, v):
        x.requires_grad_()

    def step() -> None:
        attend = torch.nn.functional.scaled_dot_product_attention
        y = attend(q, k, v, is_causal=causal)
        torch.autograd.grad(y, (q, k, v), dy)

    return step


def arrays(steps: int) -> list[np.ndarray]:
    """q, k, v and the gradient of the result."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, HEADS, steps, WIDTH)).astype(np.float32) for _ in range(4)]


def main() -> None:
    """Prints the table."""
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n")[0])).add_argument
    add("--steps", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    add("--threads", type=int, default=2)
    add("--turns", type=int, default=9)
    add("--causal", action="store_true")
    args = parser.parse_args()
    begin("PyTorch", args.threads, "steps | keys")
    for steps in args.steps:
        pair = tuple(Contender(make, steps, args.causal, args.threads) for make in (ours, theirs))
        compare(f"{steps} | {'causal' if args.causal else 'all keys'}", pair, args.turns)


if __name__ == "__main__":
    main()
