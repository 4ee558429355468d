"""What rewriting saves: the bytes that the operations of a step read and write, as counted by the
graph, and the step's time, before and after.

    python benches/python/traffic.py                          # all models
    python benches/python/traffic.py --models transformer
    python benches/python/traffic.py --processor              # one thread's processor time

Rewritten graphs keep every bit (exact), or may change rounding (`exact=False`); unless a row says
otherwise, they also recompute cheap values. All are made from one recording, run in one process and
take turns in an order that changes from round to round; ratios are those of the medians of their
times, relative to the graph as recorded.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable

import budget
from models import LeNet, Perceptron
from singa_rs import device
from singa_rs.record.tracing import trace

MIB = 1 << 20


MODELS = {
    **budget.MODELS,
    "mlp": (lambda by: Perceptron([256, 256, 10], by), (64, 784), 0),
    "lenet": (LeNet, (64, 1, 28, 28), 0),
}

#: Title -> options of a graph; the first one is the graph as recorded.
WAYS = {
    "as recorded": {"rewrite": False},
    "exact, nothing again": {"recompute": False},
    "exact": {},
    "exact=False": {"exact": False},
}


def graphs(name: str) -> tuple[list, list]:
    """The graphs of a step in all ways, and its arguments."""
    model, x, y = budget.fresh(name, MODELS)
    model.compile([x], is_train=True, use_graph=False)
    traced = trace(device.get_default_device(), [x, y], lambda: model(x, y))
    return [traced.recording.graph(**way) for way in WAYS.values()], [x, y]


def seconds(graph: object, arguments: list, clock: Callable[[], float]) -> float:
    """The time of one run."""
    start = clock()
    graph.run(arguments)
    return clock() - start


def compare(name: str, steps: int, clock: Callable[[], float]) -> None:
    """Prints a row for each way."""
    made, arguments = graphs(name)
    for _ in range(3):
        [seconds(graph, arguments, clock) for graph in made]
    times: list[list[float]] = [[] for _ in made]
    for _ in range(steps):
        for i in random.sample(range(len(made)), len(made)):
            times[i].append(seconds(made[i], arguments, clock))
    medians = [statistics.median(each) for each in times]
    nodes = [json.loads(graph.to_json())["nodes"] for graph in made]
    traffic = [sum(node["bytes"] for node in each) for each in nodes]
    for i, way in enumerate(WAYS):
        moved = f"{traffic[i] / MIB:.0f} MiB, {traffic[i] / traffic[0]:.2f}"
        took = f"{medians[i] * 1e3:.1f} ms, **{medians[i] / medians[0]:.3f}**"
        arena = f"{made[i].arena_bytes / MIB:.1f} MiB"
        print(f"| {' | '.join([name, way, str(len(nodes[i])), moved, arena, took])} |", flush=True)


def main() -> None:
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n\n")[0])).add_argument
    add("--models", nargs="+", choices=MODELS, default=list(MODELS))
    add("--steps", type=int, default=15)
    add("--threads", type=int, default=2)
    add("--processor", action="store_true", help="processor time of one thread, not of the wall")
    args = parser.parse_args()
    clock = time.thread_time if args.processor else time.perf_counter
    device.get_default_device().set_num_threads(1 if args.processor else args.threads)
    print("| step | graph | operations | bytes read and written | arena | time |")
    print("| --- " * 6 + "|")
    for name in args.models:
        compare(name, args.steps, clock)


if __name__ == "__main__":
    main()
