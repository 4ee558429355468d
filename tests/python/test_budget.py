"""Memory budgets: the arena stays within them, and recomputed values have the same bits."""

import sys
from pathlib import Path

import numpy as np
import pytest
from recorded import same_states, step
from singa_rs import (
    GraphError,
    MemoryBudgetError,
    OutOfMemoryError,
    autograd,
    layer,
    module,
    opt,
    tensor,
)
from singa_rs.tensor import Placeholder

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "python"))

from models import Perceptron, ResNet  # noqa: E402
from sequences import Lstm, Transformer  # noqa: E402

#: Name -> (model factory, input shape, batch axis).
MODELS = {
    "perceptron": (lambda by: Perceptron([64] * 16 + [10], by), (512, 64), 0),
    "resnet18": (lambda by: ResNet(18, 10, by), (32, 3, 64, 64), 0),
    "lstm": (lambda by: Lstm(32, 10, by), (30, 8, 16), 1),
    "transformer": (lambda by: Transformer(32, 4, 3, 10, by), (4, 32, 16), 0),
}


def batch(name):
    _, shape, axis = MODELS[name]
    rng = np.random.default_rng(0)
    x = tensor.from_numpy(rng.normal(size=shape).astype(np.float32))
    y = tensor.from_numpy(rng.integers(0, 10, shape[axis : axis + 1]).astype(np.int32))
    return x, y


def compiled(name, use_graph=True, **options):
    model = MODELS[name][0](opt.SGD(lr=0.01, momentum=0.9))
    x, y = batch(name)
    model.compile([x], is_train=True, use_graph=use_graph, **options)
    return model, x, y


@pytest.mark.parametrize("graph_alg", ["sequence", "parallel"])
@pytest.mark.parametrize(
    ("name", "part"),
    # Three activations of the first layer fill three quarters of so small a ResNet's arena.
    [("perceptron", 0.5), ("lstm", 0.5), ("transformer", 0.5), ("resnet18", 0.85)],
)
def test_a_part_of_the_arena_gives_the_same_bits(name, part, graph_alg):
    free, x, y = compiled(name)
    with pytest.raises(MemoryBudgetError) as refused:
        compiled(name, memory_budget=1)[0].plan(x, y)
    # The workspace of convolutions, which depends on the processor, may exceed that part.
    least = refused.value.smallest / free.plan(x, y).unconstrained_bytes
    part = min(max(part, least * (1 + 1e-9)), 1.0)
    bound, _, _ = compiled(name, memory_budget=part, graph_alg=graph_alg)
    eager, _, _ = compiled(name, use_graph=False)
    whole, less = free.plan(x, y), bound.plan(x, y)
    assert less.unconstrained_bytes == whole.unconstrained_bytes >= whole.arena_bytes
    assert less.arena_bytes <= less.budget_bytes == int(part * whole.unconstrained_bytes)
    for key, parameter in bound.get_params().items():
        parameter.copy_from(eager.get_params()[key])
    same_states(bound, eager)
    for _ in range(4):
        step(bound, eager, x, y)
    (graph,) = bound.graphs
    assert graph.arena_bytes == less.arena_bytes


def test_sizes_and_fractions():
    whole, x, y = compiled("perceptron")
    arena = whole.plan(x, y).unconstrained_bytes
    sizes = {
        arena: arena,
        f"{arena * 3 // 4}B": arena * 3 // 4,
        f"{arena // 2048}KiB": arena // 2048 * 1024,
        "0.001 GB": 1_000_000,
        0.75: arena * 3 // 4,
        1.0: arena,
    }
    for given, bytes_ in sizes.items():
        model, _, _ = compiled("perceptron", memory_budget=given)
        plan = model.plan(x, y)
        assert plan.arena_bytes <= plan.budget_bytes == bytes_, given
        assert f"{arena:,} without recomputation, within a budget of {bytes_:,}" in plan.summary()


class Normalised(module.Module):
    def __init__(self):
        super().__init__()
        self.norms = [layer.BatchNorm2d() for _ in range(6)]
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        for norm in self.norms:
            x = autograd.relu(norm(x * 1.5))
        return x

    def train_one_batch(self, x):
        loss = autograd.mse_loss(self.forward(x), x)
        self.optimizer(loss)
        return loss


def test_a_fraction_is_of_the_arena_without_recomputation():
    model, x = Normalised(), Placeholder((16, 32, 32, 32))
    model.compile([x])
    free = model.plan(x)
    assert free.budget_bytes is None and free.arena_bytes < free.unconstrained_bytes
    whole, x, y = compiled("perceptron", memory_budget=1.0)
    whole = whole.plan(x, y)
    assert whole.arena_bytes == whole.budget_bytes == whole.unconstrained_bytes
    assert whole.nodes == compiled("perceptron")[0].plan(x, y).nodes  # too small for recomputation


@pytest.mark.parametrize("wrong", ["2 gigabytes", "", "-1GB", "1", 0.0, 1.5, -1, float("nan")])
def test_invalid_budgets_are_refused(wrong):
    with pytest.raises(ValueError, match="memory_budget"):
        compiled("perceptron", memory_budget=wrong)


@pytest.mark.parametrize("wrong", [True, [1], object()])
def test_invalid_sizes_are_refused(wrong):
    with pytest.raises(TypeError, match="memory_budget"):
        compiled("perceptron", memory_budget=wrong)


def test_an_unmet_budget_names_the_smallest_and_the_live_tensors():
    model, x, y = compiled("perceptron", memory_budget=1024)
    with pytest.raises(MemoryBudgetError, match=r"models\.py:\d+") as caught:
        model(x, y)
    error = caught.value
    assert isinstance(error, OutOfMemoryError) and not isinstance(error, GraphError)
    assert error.budget == 1024 < error.bound <= error.smallest
    assert str(error.smallest) in str(error) and str(error.outside) in str(error)
    assert error.outside >= sum(p.size() * 4 for p in model.get_params().values())
    assert error.largest and all(bytes_ > 0 for _, bytes_, _ in error.largest)
    smallest, _, _ = compiled("perceptron", memory_budget=error.smallest)
    assert smallest.plan(x, y).arena_bytes <= error.smallest
    smaller, _, _ = compiled("perceptron", memory_budget=error.smallest - 1)
    with pytest.raises(MemoryBudgetError):
        smaller.plan(x, y)


def test_a_fraction_bounds_steps_of_training_alone():
    model, x, y = compiled("perceptron", memory_budget=0.4)
    for _ in range(3):
        model(x, y)
    model.eval()
    for _ in range(3):
        model(x)
    assert len(model.graphs) == 2


def test_what_a_budget_excludes():
    with pytest.raises(ValueError, match="memory_budget"):
        compiled("perceptron", memory_budget=0.5, check_finite=True)
