"""Training steps on a GPU, in turns with PyTorch's, in one process.

    python benches/python/gpu.py                            # every model
    python benches/python/gpu.py --models tiny resnet50 --amp
    python benches/python/gpu.py --models resnet50 --kernels 20  # which of ours take longest

PyTorch runs each step eagerly, and as one graph of CUDA that was captured before; without TF32, as
singa_rs does. With `--amp` products and convolutions are of bfloat16 on both sides, and PyTorch's
convolutions channels-last. A turn is some steps, and ends when the GPU has done them; batches are
there before. Needs PyTorch, and a GPU of NVIDIA.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable

import gpt
import numpy as np
import torch
from models import LeNet, Perceptron, ResNet
from peers_torch import network
from singa_rs import _core, device, layer, module, opt, tensor
from torch import nn
from workloads import CASES, exact

#: Batches that occupy a GPU, where they are larger than those of processors.
SIZES = {"resnet18": 128, "resnet50": 128, "lenet": 256}
#: Time steps, features and rows of the recurrent model.
STEPS, WIDTH, ROWS = 128, 1024, 64
#: A GPT of 124 million parameters, but for a head of its own.
GPT = gpt.Sizes(layers=12, heads=12, width=768, context=1024, batch=8, vocabulary=50257)
TURNS, SECONDS = 5, 0.1


class Sequence(module.Module):
    """Two layers of LSTM, and classes of the last step."""

    def __init__(self, optimizer: opt.Optimizer) -> None:
        super().__init__()
        self.lstm, self.head = layer.LSTM(None, WIDTH, 2, batch_first=True), layer.Linear(10)
        self.loss, self.optimizer = layer.SoftMaxCrossEntropy(), optimizer

    def forward(self, x: tensor.Tensor) -> tensor.Tensor:
        return self.head(self.lstm(x)[0][:, -1])

    def train_one_batch(self, x: tensor.Tensor, y: tensor.Tensor):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


class TorchSequence(nn.Module):
    """The same in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(WIDTH, WIDTH, 2, batch_first=True), nn.Linear(WIDTH, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A batch as arrays."""
    rng = np.random.default_rng(0)
    if name == "lstm":
        x = rng.normal(size=(ROWS, STEPS, WIDTH)).astype(np.float32)
        return x, rng.integers(0, 10, ROWS).astype(np.int32)
    if name == "gpt":
        return gpt.batch(GPT)
    case = CASES[name]
    rows = SIZES.get(name, case.shape[0])
    x = rng.normal(size=(rows, *case.shape[1:])).astype(np.float32)
    return x, rng.integers(0, case.classes, rows).astype(np.int32)


def ours(name: str, amp: bool) -> Callable[[], object]:
    """A step of this package's model."""
    gpu = device.create_cuda_gpu()
    optimizer = opt.SGD(lr=0.001, momentum=exact(0.9))
    if name == "lstm":
        net: module.Module = Sequence(optimizer)
    elif name == "gpt":
        net = gpt.model(GPT, threads=1)
    else:
        case = CASES[name]
        net = (
            ResNet(case.depth, case.classes, optimizer)
            if case.depth
            else Perceptron(list(case.widths[1:]), optimizer)
            if case.widths
            else LeNet(optimizer)
        )
    x, y = (tensor.from_numpy(array, gpu) for array in data(name))
    net.compile([x], is_train=True, use_graph=True, amp="bfloat16" if amp else None)
    return lambda: net(x, y)


def peer(name: str) -> nn.Module:
    """PyTorch's model."""
    if name == "lstm":
        return TorchSequence()
    return gpt.network(GPT) if name == "gpt" else network(CASES[name])


def theirs(name: str, amp: bool, captured: bool) -> Callable[[], object]:
    """A step of PyTorch's."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    net = peer(name).cuda()
    x, y = (torch.from_numpy(array).cuda() for array in data(name))
    y = y.long()
    if amp and x.ndim == 4:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer: torch.optim.Optimizer = (
        torch.optim.AdamW(net.parameters(), 1e-3, foreach=True, capturable=captured)
        if name == "gpt"
        else torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9, foreach=True)
    )
    mixed = torch.autocast("cuda", torch.bfloat16) if amp else contextlib.nullcontext()

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=not captured)
        with mixed:
            loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    if not captured:
        return step
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(4):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    # What was captured reads the batch and the parameters, which the step holds.
    return lambda kept=step: graph.replay()


def wait() -> None:
    """Until the GPU has done all."""
    _core.wait(device.create_cuda_gpu())
    torch.cuda.synchronize()


def turn(step: Callable[[], object], count: int) -> tuple[float, float]:
    """Seconds of a step, and of the host for it."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        step()
    host = time.perf_counter() - start
    wait()
    return (time.perf_counter() - start) / count, host / count


def kernels(step: Callable[[], object], most: int) -> None:
    """Prints the kernels that take longest, as CUDA's own profiler sees them."""
    for _ in range(4):
        step()
    wait()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        wait()
    rows = sorted(profile.key_averages(), key=lambda row: -row.device_time_total)
    print(f"{sum(row.device_time_total for row in rows) / 1e3:.3f} ms in kernels")
    for row in rows[:most]:
        print(f"{row.device_time_total / 1e3:9.3f} ms {row.count:5} x {row.key[:90]}", flush=True)


def measured(name: str, amp: bool) -> None:
    """Prints the medians of a model."""
    gpu = device.create_cuda_gpu()
    before = gpu.memory()["allocated"]
    contenders = {"singa_rs": ours(name, amp)}
    for _ in range(4):
        contenders["singa_rs"]()
    wait()
    memory = (gpu.memory()["allocated"] - before) / 2**20
    torch.cuda.reset_peak_memory_stats()
    torch_before = torch.cuda.memory_allocated()
    contenders["eager"] = theirs(name, amp, captured=False)
    for _ in range(3):
        contenders["eager"]()
    peak = (torch.cuda.max_memory_allocated() - torch_before) / 2**20
    contenders["captured"] = theirs(name, amp, captured=True)
    counts = {}
    for title, step in contenders.items():
        turn(step, 2)
        counts[title] = max(3, round(SECONDS / turn(step, 3)[0]))
    times: dict[str, list[tuple[float, float]]] = {title: [] for title in contenders}
    for _ in range(TURNS):
        for title, step in contenders.items():
            times[title].append(turn(step, counts[title]))
    middle = {
        title: [statistics.median(column) * 1e3 for column in zip(*all_, strict=True)]
        for title, all_ in times.items()
    }
    each = (f"{title} {whole:.3f} ms (host {host:.3f})" for title, (whole, host) in middle.items())
    best = min(middle[title][0] for title in ("eager", "captured"))
    ratio, title = middle["singa_rs"][0] / best, f"{name} amp" if amp else name
    print(
        f"{title}: {', '.join(each)}; ratio {ratio:.2f}; {memory:.0f} of {peak:.0f} MiB", flush=True
    )


def main() -> None:
    """Every model that is asked for."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models = ["tiny", "mlp", "lenet", "resnet18", "resnet50", "lstm", "gpt"]
    options.add_argument("--models", nargs="+", choices=models, default=models)
    options.add_argument("--amp", action="store_true")
    options.add_argument("--kernels", type=int, metavar="MOST", help="list our kernels instead")
    given = options.parse_args()
    for name in given.models:
        if given.kernels:
            kernels(ours(name, given.amp), given.kernels)
        else:
            measured(name, given.amp)


if __name__ == "__main__":
    main()
