"""Ranks whose losses reach different parameters of equal shapes, or that begin differently."""

import dist_models
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


# ---- ranks that begin with other values ----------------------------------------------------------

PARTIAL = {**METHODS, "partial": lambda: opt.DistOpt(opt.SGD(1.0))}


def _begun(method, how, graph):
    """The error of steps, or how many were replayed."""
    dist.set_seed(dist.rank() if how == "seed" else 0)
    model = dist_models.MLP("partial" if method == "partial" else "plain")
    (x, y), *_ = dist_models.batches(1)
    x, y = tensor.from_numpy(x), tensor.from_numpy(y)
    model.optimizer = PARTIAL[method]()
    model.compile([x], is_train=True, use_graph=graph)
    if dist.rank() == 1:
        if how == "value":  # a single bit of what comes last
            model.first.b[3] = -0.0
        elif how == "lr":
            model.optimizer.opt.lr = 0.5
        elif how == "planned":
            model.plan(x, y)
    try:
        for _ in range(9):
            model(x, y)
    except dist.DistError as error:
        return str(error)
    return replays(model) if graph else 0


def _begun_all(how, graph):
    return {method: _begun(method, how, graph) for method in PARTIAL}


@pytest.mark.parametrize("graph", [False, True])
def test_ranks_that_begin_with_other_values_are_told(graph):
    for how, name in (("seed", ".W"), ("value", "first.b (16,)")):
        for rank, found in enumerate(dist.spawn(_begun_all, 2, (how, graph), timeout=TIMEOUT)):
            for error in found.values():
                assert f"rank {1 - rank} begins with another value of " in error
                assert name in error and "dist.set_seed" in error


@pytest.mark.parametrize("how", ["equal", "planned"])
def test_steps_that_compared_are_replayed_without(how):
    for found in dist.spawn(_begun_all, 2, (how, True), timeout=TIMEOUT):
        assert all(type(runs) is int and runs >= 3 for runs in found.values()), found


def test_hyperparameters_of_ranks_have_to_be_equal():
    """Where all update by the same gradients."""
    for rank, found in enumerate(dist.spawn(_begun_all, 2, ("lr", True), timeout=TIMEOUT)):
        own = [found.pop("local"), found.pop("partial")]
        assert all(type(runs) is int for runs in own)
        for error in found.values():
            assert f"rank {1 - rank} begins with another value of SGD.lr than rank {rank}" in error


def _mixed():
    """Steps of both kinds, and what they leave."""
    dist.set_seed(0)
    model, found = dist_models.MLP("partial"), []
    model.optimizer = opt.DistOpt(opt.SGD(0.1))
    for step, (x, y) in enumerate(dist_models.batches(8)):
        rows = slice(dist.rank() * 4, dist.rank() * 4 + 4)
        if step == 0:
            model.compile([x[rows]], is_train=True, use_graph=True)
        model.train_by = "partial" if step < 4 else "plain"
        found.append(model(x[rows], y[rows]).item())
    return len(found)


def test_ranks_may_differ_after_updates_of_their_own():
    assert dist.spawn(_mixed, 2, timeout=TIMEOUT) == [8, 8]
