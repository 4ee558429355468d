"""Recording, analysing and planning a ResNet-18 step, next to the same step of PyTorch on its
`meta` device, which only computes shapes.

    python benches/python/record.py       # in an environment with singa_rs and torch: make bench

Rounds of ten calls of each in turn; medians. Preparing kernels is not counted: the first recording
does that.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

SHAPE = (16, 3, 224, 224)


def ours() -> Callable[[], object]:
    """Records, analyses and plans a step."""
    from models import ResNet
    from singa_rs import tensor

    net = ResNet(18)
    x = tensor.Placeholder(SHAPE)
    y = tensor.Placeholder(SHAPE[:1], dtype=tensor.int32)
    net.compile([x], is_train=True, use_graph=True)
    return lambda: net.plan(x, y)


def theirs() -> Callable[[], object]:
    """The same step on the meta device."""
    import torch
    from torch_resnet import resnet

    with torch.device("meta"):
        net = resnet(18)
        x, y = torch.empty(SHAPE), torch.empty(SHAPE[0], dtype=torch.long)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


#: Calls per round.
REPEATS = 10


def seconds(call: Callable[[], object]) -> float:
    """Seconds per call, over a round."""
    start = time.perf_counter()
    for _ in range(REPEATS):
        call()
    return (time.perf_counter() - start) / REPEATS


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=11)
    rounds = options.parse_args().rounds
    sides = ours(), theirs()
    for side in sides:
        side(), side()
    times = [tuple(map(seconds, sides)) for _ in range(rounds)]
    mine, other = (statistics.median(side) * 1e3 for side in zip(*times, strict=True))
    print(
        f"record and plan a ResNet-18 step: {mine:.2f} ms; PyTorch on meta: {other:.2f} ms; "
        f"1/{other / mine:.1f}"
    )


if __name__ == "__main__":
    main()
