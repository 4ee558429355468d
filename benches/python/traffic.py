"""What rewriting saves: bytes that the operations of a step read and write, as the graph counts
them, and the step's time, before and after.

    python benches/python/traffic.py                          # all models
    python benches/python/traffic.py --models transformer

Both graphs are made of one recording, run in one process and take turns; the ratio is that of the
medians of their times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from budget import MODELS, fresh
from singa_rs import device
from singa_rs.record.taking import take

MIB = 1 << 20


def graphs(name: str) -> tuple[list, list]:
    """The graph of a step as it was recorded, and rewritten; its arguments."""
    model, x, y = fresh(name)
    model.compile([x], is_train=True, use_graph=False)
    taken = take(device.get_default_device(), [x, y], lambda: model(x, y))
    made = [taken.recording.graph(rewrite=rewrite) for rewrite in (False, True)]
    return made, [x, y]


def seconds(graph: object, arguments: list) -> float:
    """The time of one run."""
    start = time.perf_counter()
    graph.run(arguments)
    return time.perf_counter() - start


def compare(name: str, steps: int) -> None:
    """Prints a row."""
    made, arguments = graphs(name)
    nodes = [json.loads(graph.to_json())["nodes"] for graph in made]
    counts = [f"{len(each)}" for each in nodes]
    traffic = [sum(node["bytes"] for node in each) for each in nodes]
    for _ in range(3):
        [seconds(graph, arguments) for graph in made]
    times = [[seconds(graph, arguments) for graph in made] for _ in range(steps)]
    before, after = map(statistics.median, zip(*times, strict=True))
    moved = f"{traffic[0] / MIB:.0f} to {traffic[1] / MIB:.0f} MiB, {traffic[1] / traffic[0]:.2f}"
    taken = f"{before * 1e3:.1f} to {after * 1e3:.1f} ms"
    row = [name, " to ".join(counts), moved, taken, f"**{after / before:.3f}**"]
    print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n\n")[0])).add_argument
    add("--models", nargs="+", choices=MODELS, default=list(MODELS))
    add("--steps", type=int, default=15)
    args = parser.parse_args()
    print("| step | operations | bytes read and written | time | ratio |\n" + "| --- " * 5 + "|")
    for name in args.models:
        compare(name, args.steps)


if __name__ == "__main__":
    main()
