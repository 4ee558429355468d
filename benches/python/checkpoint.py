"""Checkpoints: how long writing and loading one takes, beside reading its bytes.

    python benches/python/checkpoint.py
    python benches/python/checkpoint.py --rounds 15 --threads 1
    python benches/python/checkpoint.py --threads 1 --processor    # on a machine that is not idle

All ways take turns. `--processor` measures processor time, without waiting for the disk and for
other programs. Files are in the page cache, and are flushed to disk when they are written. A way's
time is the median over the rounds, as is its ratio to reading the bytes of the same files into
memory that the process has not used before.
"""

from __future__ import annotations

import argparse
import mmap
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from residual import ResNet  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from singa_rs import device, opt, tensor  # noqa: E402


def trained(depth: int) -> ResNet:
    """A residual network that has made a step, so that its optimizer has moments."""
    model = ResNet(depth, 1000, opt.SGD(0.1, momentum=0.9))
    x = tensor.from_numpy(np.zeros((1, 3, 64, 64), np.float32))
    model.compile([x], use_graph=False)
    model(x, tensor.from_numpy(np.zeros(1, np.int32)))
    return model


def read(*paths: str) -> None:
    """Reads files, each into memory that is new to the process."""
    for path in paths:
        with open(path, "rb") as file, mmap.mmap(-1, os.path.getsize(path)) as buffer:
            file.readinto(buffer)


def ways(model: ResNet, folder: str) -> dict[str, tuple[Callable[[], object], tuple[str, ...]]]:
    """What is timed, and the files that it reads or writes."""
    stem = os.path.join(folder, "net")
    onnx, state, other, archive = (
        f"{stem}{end}" for end in (".onnx", ".state.safetensors", ".safetensors", ".zip")
    )
    held, moments = {"sgd": model.optimizer}, model.optimizer.get_named_states("sgd")
    save_file({name: one.to_numpy() for name, one in model.get_states().items()}, other)
    return {
        "save": (lambda: model.save(stem, held), (onnx, state)),
        "load, the model": (lambda: model.load(stem), (onnx,)),
        "load, all": (lambda: model.load(stem, state=held), (onnx, state)),
        "load_states, safetensors": (lambda: model.load_states(other), (other,)),
        "save_states": (lambda: model.save_states(archive, moments), (archive,)),
        "load_states, SINGA's zip": (lambda: model.load_states(archive), (archive,)),
    }


def seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """The time of a call."""
    start = clock()
    call()
    return clock() - start


def measure(depth: int, rounds: int, clock: Callable[[], float]) -> None:
    """Prints the table of a network."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        work = ways(trained(depth), folder)
        for call, _ in work.values():
            call()
        times: dict[str, list[float]] = {name: [] for name in work}
        reads: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(rounds):
            for name, (call, paths) in work.items():
                times[name].append(seconds(call, clock))
                reads[name].append(seconds(lambda paths=paths: read(*paths), clock))
        print(
            f"| ResNet-{depth} | size | time | reading the bytes | ratio |\n|---|---|---|---|---|"
        )
        for name, (_, paths) in work.items():
            size = sum(map(os.path.getsize, paths)) / 1e6
            ratio = statistics.median(a / b for a, b in zip(times[name], reads[name], strict=True))
            ours, bytes_alone = (statistics.median(one[name]) * 1e3 for one in (times, reads))
            cells = f"{size:.0f} MB | {ours:.0f} ms | {bytes_alone:.0f} ms | {ratio:.2f}"
            print(f"| {name} | {cells} |")


def main() -> None:
    """Measures both networks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="measure processor time")
    args = parser.parse_args()
    device.get_default_device().set_num_threads(args.threads)
    for depth in (18, 50):
        measure(depth, args.rounds, time.process_time if args.processor else time.perf_counter)


if __name__ == "__main__":
    main()
