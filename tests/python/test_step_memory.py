"""Memory with a lifetime within a step, planned and eager, against its lower bound."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from singa_rs import device, tensor
from singa_rs.record.tracing import trace

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "python"))

from models import MODELS, OPTIMIZERS, ResNet  # noqa: E402


def recorded(model, shape):
    """The graph of a training step that was recorded with placeholders."""
    x = tensor.Placeholder(shape)
    y = tensor.Placeholder(shape[:1], dtype=tensor.int32)
    model.compile([x], is_train=True, use_graph=True)
    return model.plan(x, y)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: MODELS["digits"][0](OPTIMIZERS["SGD"]()), MODELS["digits"][1]),
        (lambda: ResNet(18), (16, 3, 224, 224)),
        (lambda: ResNet(50), (8, 3, 224, 224)),
    ],
    ids=["digits", "resnet18", "resnet50"],
)
def test_the_arena_is_as_small_as_the_order_of_operations_allows(make, shape):
    plan = recorded(make(), shape)
    assert 0 < plan.lower_bound_bytes <= plan.arena_bytes <= 1.0005 * plan.lower_bound_bytes


def own_bound(graph):
    """The peak of live bytes if no result shares memory with its inputs: blocks live from the first
    operation that names them to the last, and are rounded up to 64 bytes."""
    steps = np.zeros(len(graph["nodes"]) + 1, np.int64)
    for block in graph["blocks"]:
        if block["role"] in ("temporary", "slot") and block["first"] is not None:
            end = len(steps) if block["role"] == "slot" else block["last"] + 1
            steps[block["first"] : end] += -(-block["bytes"] // 64) * 64
    for number, node in enumerate(graph["nodes"]):
        if node["scratch"] is not None:
            steps[number] += -(-node["scratch"]["bytes"] // 64) * 64
    return steps.max()


@pytest.mark.parametrize("name", MODELS)
def test_replay_takes_no_more_than_eager_and_eager_little_more_than_its_bound(name):
    make, shape = MODELS[name]
    rng = np.random.default_rng(0)
    x = tensor.from_numpy(rng.normal(size=shape).astype(np.float32))
    y = tensor.from_numpy(rng.integers(0, 10, shape[:1]).astype(np.int32))
    eager, replayed = (make(OPTIMIZERS["SGD"]()) for _ in range(2))
    eager.compile([x], is_train=True, use_graph=False)
    replayed.compile([x], is_train=True, use_graph=True)
    for _ in range(3):
        eager(x, y), replayed(x, y)
    dev = device.get_default_device()
    before = dev.memory()["allocated"]
    dev.reset_peak()
    eager(x, y)
    traced = dev.memory()["peak"] - before
    (graph,) = replayed.graphs
    memory = graph.memory()
    assert memory["arena"] + memory["results"] <= traced
    own = trace(dev, [x, y], lambda: eager(x, y)).recording.graph(rewrite=False)
    assert traced <= 1.15 * own_bound(json.loads(own.to_json()))
