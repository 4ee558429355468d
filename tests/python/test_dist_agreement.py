"""Ranks whose losses reach different parameters of equal shapes."""

import numpy as np
import pytest
from recorded import replays
from singa_rs import dist, layer, opt, tensor
from singa_rs.module import Module

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0
METHODS = {
    "dense": lambda: opt.DistOpt(opt.SGD(1.0)),
    "half": lambda: opt.DistOpt(opt.SGD(1.0), compress="float16"),
    "sparse": lambda: opt.DistOpt(opt.SGD(1.0), compress="sparse"),
    "low_rank": lambda: opt.DistOpt(opt.SGD(1.0), compress="low_rank"),
    "shards": lambda: opt.DistOpt(opt.SGD(1.0), shard=1),
    "parameters": lambda: opt.DistOpt(opt.SGD(1.0), shard=3),
    "local": lambda: opt.LocalSGD(opt.SGD(1.0), 1),
}


class Experts(Module):
    def __init__(self, differ):
        super().__init__()
        self.first, self.second = layer.Linear(3, bias=False), layer.Linear(3, bias=False)
        self.differ = differ

    def forward(self, x):
        return self.first(x) + self.second(x)

    def train_one_batch(self, x):
        is_second = self.differ and dist.rank() == 1
        loss = (self.second if is_second else self.first)(x).sum().reshape((1,))
        self.optimizer(loss)
        return loss


def _train(method, differ, graph):
    """The error of steps, or how many were replayed."""
    dist.set_seed(0)
    x = tensor.from_numpy(np.ones((1, 8), np.float32))
    model = Experts(differ)
    model.optimizer = METHODS[method]()
    model.compile([x], is_train=True, use_graph=graph)
    try:
        for _ in range(8):
            model(x)
    except dist.DistError as error:
        return str(error)
    return replays(model) if graph else 0


def _train_all(graph):
    return [[_train(method, differ, graph) for differ in (False, True)] for method in METHODS]


@pytest.mark.parametrize("graph", [False, True])
def test_ranks_that_differ_are_told_of_the_parameters(graph):
    ranks = dist.spawn(_train_all, 2, (graph,), timeout=TIMEOUT)
    names = ("first.W (8, 3)", "second.W (8, 3)")
    for rank, found in enumerate(ranks):
        told = (
            f"rank {1 - rank} exchanges {names[1 - rank]} where rank {rank} exchanges {names[rank]}"
        )
        for runs, error in found:
            assert runs >= (3 if graph else 0)
            assert told in error


def _third(graph):
    """What a rank hears that is like rank 0, of three."""
    return _train("dense", True, graph)


def test_a_rank_that_is_not_concerned_is_told_too():
    *_, third = dist.spawn(_third, 3, (True,), timeout=TIMEOUT)
    assert "rank 1 exchanges second.W (8, 3) where rank 2 exchanges first.W (8, 3)" in third
