"""Steps of several processes over a limited network, beside what `Module.plan` forecasts for it.

    python benches/python/network.py --ranks 2 4 --rate 1Gb   # as root, on Linux

Each rank is in a network namespace of its own, joined by a bridge to the others, and sends at most
at the given rate (iproute2's `ip` and `tc`); MPI goes through TCP. All ranks make their forecast at
the same time, so that they share the processors as they do in the steps; the links' latency, some
tens of microseconds, is given as 50.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from ours import network as network_of
from workloads import CASES, batches, weights

MODELS = ("mlp", "lenet", "resnet18")
#: Prefix of the namespaces, links and the bridge that are made.
NAME, BRIDGE, SUBNET = "singa", "singabr", "10.77.0"
LATENCY = "50us"
#: Steps before those that are timed, and how many are.
WARMING, TIMED = 4, 12
#: How MPICH reaches ranks in other namespaces of one machine.
BY_TCP = {
    "MPIR_CVAR_NOLOCAL": "1",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": "eth0",
    "UCX_LOG_LEVEL": "error",
    "OMP_NUM_THREADS": "1",
}


def optimizers(case: Any) -> dict[str, Callable[[], Any]]:
    """How each scheme of the forecast is had."""
    from singa_rs import opt

    class Sparse(opt.DistOpt):
        """One in a hundred elements."""

        def __call__(self, loss: Any) -> None:
            self.backward_and_sparse_update(loss, spars=0.01, topK=True)

    def sgd() -> opt.SGD:
        return opt.SGD(lr=case.lr, momentum=case.momentum)

    return {
        "all gradients": lambda: opt.DistOpt(sgd()),
        "float16": lambda: opt.DistOpt(sgd(), compress="float16"),
        "sparse, 1%": lambda: Sparse(sgd()),
        "shard=1": lambda: opt.DistOpt(sgd(), shard=1),
        "shard=3": lambda: opt.DistOpt(sgd(), shard=3),
    }


def made(case: Any, optimizer: Any, data: list[Any]) -> Callable[[], Any]:
    """A model with the case's weights."""
    net = network_of(case, optimizer)
    net.compile([data[0][0]], is_train=True)
    net.set_params(dict(zip(net.get_params(), weights(case), strict=True)))
    return net


def work(name: str, rate: str) -> None:
    """A rank: what it forecasts, and what its steps take; rank 0 prints both."""
    from singa_rs import dist, opt, tensor

    dist.init()
    case, found = CASES[name], {}
    parts = [
        (x[dist.rank() :: dist.size()], y[dist.rank() :: dist.size()]) for x, y in batches(case)
    ]
    data = [(tensor.from_numpy(x), tensor.from_numpy(y)) for x, y in parts]
    alone = made(case, opt.SGD(lr=case.lr, momentum=case.momentum), data)
    dist.barrier()
    plan = alone.plan(*data[0], ranks=dist.size(), network=f"{rate}, {LATENCY}")
    rows = {row.scheme: row for row in plan.forecast.rows}
    for scheme, optimizer in optimizers(case).items():
        net, turns = made(case, optimizer(), data), cycle(data)
        for _ in range(WARMING):
            net(*next(turns))[1].item()
        before = dist.bytes_sent()
        times = [_seconds(net, next(turns)) for _ in range(TIMED)]
        sent = (dist.bytes_sent() - before) / TIMED
        row = rows[scheme]
        took = statistics.median(times)
        hidden = 1 - (took - plan.forecast.alone) / row.exchanging
        found[scheme] = [row.seconds, took, row.sent, sent, row.overlap, hidden]
        dist.barrier()
    if dist.rank() == 0:
        print(json.dumps(found), flush=True)


def _seconds(net: Any, batch: Any) -> float:
    begin = time.perf_counter()
    net(*batch)[1].item()
    return time.perf_counter() - begin


def call(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@contextlib.contextmanager
def hosts(ranks: int, rate: str) -> Iterator[list[str]]:
    """The names of so many namespaces that reach each other."""
    names = [f"{NAME}{rank}" for rank in range(ranks)]
    try:
        call("ip", "link", "add", BRIDGE, "type", "bridge")
        call("ip", "link", "set", BRIDGE, "up")
        for rank, name in enumerate(names):
            call("ip", "netns", "add", name)
            call(*f"ip link add {name} type veth peer name eth0 netns {name}".split())
            call("ip", "link", "set", name, "master", BRIDGE, "up")
            call(*f"ip -n {name} addr add {SUBNET}.{rank + 1}/24 dev eth0".split())
            call("ip", "-n", name, "link", "set", "eth0", "up")
            call("ip", "-n", name, "link", "set", "lo", "up")
            limit = f"rate {rate.replace('b', 'bit').lower()} burst 256kb latency 50ms"
            call(*f"tc -n {name} qdisc add dev eth0 root tbf {limit}".split())
        yield names
    finally:
        for link in [*names, BRIDGE]:
            subprocess.run(["ip", "link", "del", link], capture_output=True)
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def compare(name: str, ranks: int, rate: str) -> None:
    """Prints a line of the table for each scheme."""
    launcher = str(Path(sys.executable).with_name("mpiexec"))
    with hosts(ranks, rate) as names:
        command = [launcher]
        for host in names:
            program = [sys.executable, __file__, "--one", name, "--rate", rate]
            command += [":"] * (len(command) > 1)
            command += ["-n", "1", "ip", "netns", "exec", host, *program]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **BY_TCP}, timeout=500
        )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    for scheme, (told, took, told_sent, sent, hidden, measured) in found.items():
        # What a rank computes for a scheme cannot be told from what is not hidden.
        shown = f" and {100 * measured:.0f}%" if scheme == "all gradients" else ""
        print(
            f"| {CASES[name].title}, {ranks} | {scheme} | {told * 1e3:.1f} ms | {took * 1e3:.1f} ms"
            f" | **{told / took:.2f}** | {told_sent / 1e6:.2f} and {sent / 1e6:.2f} MB"
            f" | {100 * hidden:.0f}%{shown} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--rate", default="1Gb")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return work(given.one, given.rate)
    print("| model, ranks | scheme | forecast | measured | ratio | sent | hidden |")
    print("|---|---|---|---|---|---|---|")
    for name in given.models:
        for ranks in given.ranks:
            compare(name, ranks, given.rate)
    return None


if __name__ == "__main__":
    main()
