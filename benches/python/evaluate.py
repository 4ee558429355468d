"""Forward passes in evaluation mode: as recorded, rewritten with and without memory kept from run
to run, with batch normalisation folded (`exact=False`), and PyTorch's if it is installed.

    python benches/python/evaluate.py
    python benches/python/evaluate.py --cases resnet18 --rounds 20

All take turns in one process, and rest between turns until the threads of the last one sleep; times
are medians, ratios are medians over the rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import statistics
import time
from collections.abc import Callable

import numpy as np
from ours import network
from singa_rs import device, opt, tensor
from singa_rs.record.tracing import trace
from turns import REST
from workloads import CASES, Case, weights

#: Title -> (case, rows).
WORK = {
    "ResNet-18, batch 1": ("resnet18", 1),
    "ResNet-18, batch 16": ("resnet18", 16),
    "MLP 784-256-256-10, batch 1": ("mlp", 1),
    "MLP 784-256-256-10, batch 64": ("mlp", 64),
}
#: Title -> arguments with which the recording's graph is made.
WAYS: dict[str, dict[str, bool]] = {
    "as recorded": {"rewrite": False},
    "nothing kept": {"keep": False},
    "kept": {},
    "folded": {"exact": False},
}


def ours(case: Case, x: np.ndarray) -> dict[str, Callable[[], object]]:
    """A call for each way."""
    model = network(case, opt.SGD(lr=0.1))
    given = tensor.from_numpy(x)
    model.compile([given], is_train=False, use_graph=False)
    model.set_params(dict(zip(model.get_params(), weights(case), strict=True)))
    traced = trace(device.get_default_device(), [given], lambda: model(given))
    graphs = {way: traced.recording.graph(**options) for way, options in WAYS.items()}
    for way, graph in graphs.items():
        graph.run([given])
        operations, kept, _ = graph.constants
        sizes = f"arena {graph.arena_bytes >> 10} KiB, {operations} kept in {kept >> 10} KiB"
        print(f"  {way}: {graph.nodes} operations, {sizes}")
    return {way: lambda graph=graph: graph.run([given]) for way, graph in graphs.items()}


def theirs(case: Case, x: np.ndarray) -> Callable[[], object]:
    """PyTorch's forward pass, eager, images channels-last."""
    import torch
    from peers_torch import fill
    from peers_torch import network as peer

    torch.set_num_threads(2)
    net = peer(case).eval()
    fill(net, weights(case))
    given = torch.from_numpy(x)
    if case.is_convolutional:
        net, given = (t.to(memory_format=torch.channels_last) for t in (net, given))

    def step() -> object:
        with torch.inference_mode():
            return net(given)

    return step


def seconds(call: Callable[[], object], count: int) -> float:
    time.sleep(REST)
    call()  # the last turn left its own data in the caches
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def turns(calls: dict[str, Callable[[], object]], count: int) -> dict[str, float]:
    """A turn of each, in random order, so that periodic disturbances hit all alike."""
    order = random.sample(list(calls), len(calls))
    return {way: seconds(calls[way], count) for way in order}


def compare(title: str, rounds: int) -> None:
    """Prints a row for each contender."""
    name, rows = WORK[title]
    case = CASES[name]
    x = np.random.default_rng(0).normal(size=(rows, *case.shape[1:])).astype(np.float32)
    print(title)
    calls = ours(case, x)
    if importlib.util.find_spec("torch"):
        calls["PyTorch, eager"] = theirs(case, x)
    [call() for call in calls.values() for _ in range(3)]
    count = max(1, round(0.02 / seconds(calls["kept"], 3)))
    times = [turns(calls, count) for _ in range(rounds)]
    for way in calls:
        middle = statistics.median(row[way] for row in times)
        ratio = statistics.median(row[way] / row["nothing kept"] for row in times)
        print(f"| {title} | {way} | {middle * 1e3:.3f} ms | {ratio:.2f} |", flush=True)


def main() -> None:
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n\n")[0])).add_argument
    add("--cases", nargs="+", choices=["resnet18", "mlp"], default=["resnet18", "mlp"])
    add("--rounds", type=int, default=15)
    args = parser.parse_args()
    for title, (name, _) in WORK.items():
        if name in args.cases:
            compare(title, args.rounds)


if __name__ == "__main__":
    main()
