"""Training steps of several processes beside PyTorch's DistributedDataParallel (gloo), in turns.

python benches/python/ranks.py --ranks 2 --rounds 8

Each process has one thread and its part of the batch. Both libraries start from the same weights
and average their gradients. A turn is as many steps as take a third of a second; times are medians
over the rounds of rank 0's mean, and the ratio's over the rounds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import time
import traceback
from collections.abc import Callable
from itertools import cycle
from multiprocessing.connection import Connection
from typing import Any

from process import peak
from workloads import CASES, batches, weights

Step = Callable[[], Any]
MODELS = ("mlp", "lenet", "resnet18")
#: Seconds of a turn.
TURN = 0.33


def parts(name: str, rank: int, ranks: int) -> tuple[Any, list[Any]]:
    """A case with this rank's part of the batch, and its batches."""
    case = CASES[name]
    data = [(x[rank::ranks], y[rank::ranks]) for x, y in batches(case)]
    return case._replace(shape=data[0][0].shape), data


def ours(name: str, rank: int, ranks: int) -> Step:
    """A step of singa_rs."""
    from ours import network
    from singa_rs import device, dist, opt, tensor

    dist.init()
    device.get_default_device().set_num_threads(1)
    case, data = parts(name, rank, ranks)
    net = network(case, opt.DistOpt(opt.SGD(lr=case.lr, momentum=case.momentum)))
    net.compile([tensor.Placeholder(case.shape)])
    net.set_params(dict(zip(net.get_params(), weights(case), strict=True)))
    turns = cycle([(tensor.from_numpy(x), tensor.from_numpy(y)) for x, y in data])
    return lambda: net(*next(turns))[1].item()


def theirs(name: str, rank: int, ranks: int) -> Step:
    """A step of PyTorch: buckets that gradients are views of, and a static graph."""
    import torch
    from peers_torch import fill, network
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    case, data = parts(name, rank, ranks)
    net = network(case)
    fill(net, weights(case))
    pairs = [(torch.from_numpy(x), torch.from_numpy(y).long()) for x, y in data]
    if case.is_convolutional:
        net = net.to(memory_format=torch.channels_last)
        pairs = [(x.to(memory_format=torch.channels_last), y) for x, y in pairs]
    model = DistributedDataParallel(net, gradient_as_bucket_view=True, static_graph=True)
    rule = torch.optim.SGD(net.parameters(), lr=case.lr, momentum=case.momentum)
    turns = cycle(pairs)

    def step() -> float:
        rule.zero_grad(set_to_none=True)
        x, y = next(turns)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        rule.step()
        return loss.item()

    return step


SIDES = {"singa_rs": ours, "PyTorch": theirs}


def work(side: str, name: str, rank: int, ranks: int, port: int, pipe: Connection) -> None:
    """A process: takes numbers of steps, and answers seconds a step, the loss and its memory."""
    place = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks}
    os.environ.update({key: str(value) for key, value in place.items()})
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
    try:
        step = SIDES[side](name, rank, ranks)
        for _ in range(6):
            loss = step()
        pipe.send(loss)
        for steps in iter(pipe.recv, 0):
            begin = time.perf_counter()
            for _ in range(steps):
                loss = step()
            pipe.send(((time.perf_counter() - begin) / steps, loss, peak()))
    except Exception:
        pipe.send(traceback.format_exc())


class Group:
    """The processes of one library."""

    def __init__(self, side: str, name: str, ranks: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        spawn = multiprocessing.get_context("spawn")
        ends = [spawn.Pipe() for _ in range(ranks)]
        self.pipes = [own for own, _ in ends]
        self.processes = [
            spawn.Process(target=work, args=(side, name, rank, ranks, port, pipe))
            for rank, (_, pipe) in enumerate(ends)
        ]
        for process in self.processes:
            process.start()
        self.loss = self.answers()[0]
        self.steps = 3
        self.steps = max(3, round(TURN / self.turn()[0]))

    def answers(self) -> list[Any]:
        found = [pipe.recv() for pipe in self.pipes]
        for one in found:
            if isinstance(one, str):
                raise RuntimeError(one)
        return found

    def turn(self) -> tuple[float, float, int]:
        """Rank 0's seconds a step and loss, and the most memory of a rank."""
        for pipe in self.pipes:
            pipe.send(self.steps)
        found = self.answers()
        return found[0][0], found[0][1], max(memory for *_, memory in found)

    def end(self) -> None:
        for pipe in self.pipes:
            pipe.send(0)
        for process in self.processes:
            process.join()


def compare(name: str, ranks: int, rounds: int) -> None:
    """Prints a line of the table."""
    groups = [Group(side, name, ranks) for side in SIDES]
    turns = [[group.turn() for group in groups] for _ in range(rounds)]
    times = [
        statistics.median(seconds[0] for seconds in column) for column in zip(*turns, strict=True)
    ]
    ratio = statistics.median(own[0] / other[0] for own, other in turns)
    memory = [max(turn[2] for turn in column) / 2**20 for column in zip(*turns, strict=True)]
    for group in groups:
        group.end()
    print(
        f"{CASES[name].title:32} {ranks} ranks: {times[0] * 1e3:9.3f} ms, PyTorch "
        f"{times[1] * 1e3:9.3f} ms, ratio {ratio:.2f}; memory {memory[0]:.0f} MiB, "
        f"{memory[1]:.0f} MiB, ratio {memory[0] / memory[1]:.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    for name in given.models:
        compare(name, given.ranks, given.rounds)


if __name__ == "__main__":
    main()
