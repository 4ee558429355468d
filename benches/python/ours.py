"""The steps of `workloads.py` in singa_rs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

from models import LeNet, Perceptron, ResNet
from singa_rs import device, module, opt, tensor
from workloads import Case, batches, weights


def network(case: Case, optimizer: opt.Optimizer) -> module.Module:
    """The model, before its parameters are created."""
    if case.depth:
        return ResNet(case.depth, case.classes, optimizer)
    return Perceptron(list(case.widths[1:]), optimizer) if case.widths else LeNet(optimizer)


def model(case: Case, how: str, dtype: str = "float32") -> module.Module:
    """The compiled model with its initial weights; `how` is "eager" or, by default, replay."""
    optimizer = opt.SGD(lr=case.lr, momentum=case.momentum, dtype=dtype)
    net = network(case, optimizer)
    net.compile([tensor.Placeholder(case.shape, dtype=dtype)], use_graph=how != "eager")
    names = net.get_params()
    net.set_params(dict(zip(names, weights(case, dtype), strict=True)))
    return net


def make(case: Case, how: str, threads: int, dtype: str = "float32") -> Callable[[], float]:
    """A call that makes one step and returns the loss before it."""
    device.get_default_device().set_num_threads(threads)
    net = model(case, how, dtype)
    data = cycle(
        [(tensor.from_numpy(x, dtype=dtype), tensor.from_numpy(y)) for x, y in batches(case, dtype)]
    )
    return lambda: net(*next(data))[1]
