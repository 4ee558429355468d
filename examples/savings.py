"""What recording a step saves: eager execution against replay, each in its own process.

An example calls `print_savings` at its end. That runs the same command again, with
`--measure eager` and `--measure replay`, where the example calls `print_cost`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from singa_rs import device, layer, module, tensor


def memory(field: str) -> int:
    """Bytes of memory that the process has (VmRSS), or has had at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def _begin(x: tensor.Tensor) -> tuple[int, int]:
    """Begins a measurement: the bytes of the process and of tensors before the model is created."""
    few = x[:1]
    layer.Conv2d(8, 3)(few), layer.Linear(8)(few.reshape((1, -1)))  # loads the libraries
    dev = device.get_default_device()
    dev.trim()
    dev.reset_peak()
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS"), dev.memory()["allocated"]


def print_cost(
    make: Callable[[], module.Module], x: np.ndarray, y: np.ndarray, how: str, steps: int
) -> None:
    """Prints as JSON the milliseconds of a step, "eager" or "replay", and the peak memory beyond
    that before the model: of tensors by the engine's ledger, of the process over ten steps by the
    kernel's count, and, for a graph, what its plan stated."""
    batch = tensor.from_numpy(x), tensor.from_numpy(y)
    before, held = _begin(batch[0])
    model = make()
    model.compile(batch[:1], use_graph=how == "replay")
    plan = model.plan(*batch) if how == "replay" else None
    times, peak = [], 0
    for step in range(steps):
        start = time.perf_counter()
        model(*batch)
        times.append(time.perf_counter() - start)
        if step == 9:
            peak = memory("VmHWM") - before
    cost = {
        "time": statistics.median(times[10:]) * 1e3,
        "tensors": device.get_default_device().memory()["peak"] - held,
        "process": peak,
        # The batch was already allocated.
        "stated": plan.peak_bytes - plan.accounts["staging"] if plan else None,
    }
    print(json.dumps(cost))


def _cost(how: str) -> dict[str, Any]:
    """What `print_cost` prints in a process of its own."""
    command = [sys.executable, *sys.argv, "--measure", how]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    cost: dict[str, Any] = json.loads(done.stdout)
    return cost


def print_savings() -> None:
    """Prints the table: the time and memory of a step."""
    if not Path("/proc/self/clear_refs").exists():
        print("what the graph saves is measured on Linux only")
        return
    eager, replay = _cost("eager"), _cost("replay")

    def row(name: str, key: str, unit: str, scale: float) -> None:
        a, b = eager[key] / scale, replay[key] / scale
        print(f"{name:24}{a:8.2f} {unit:3}{b:8.2f} {unit:3}{b / a:8.2f}")

    print(f"{'':24}{'eager':>11} {'replay':>11}{'ratio':>8}")
    row("time per step", "time", "ms", 1)
    row("peak memory of tensors", "tensors", "MiB", 1 << 20)
    print(f"{'  stated by the plan':36}{replay['stated'] / (1 << 20):8.2f} MiB")
    row("peak of the process", "process", "MiB", 1 << 20)
