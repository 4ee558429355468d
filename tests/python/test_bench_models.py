"""The benchmark models: their parameters are those in their description, and eager execution and
replay are bitwise equal."""

import sys
from pathlib import Path

import pytest
from recorded import replays, same_states, step
from singa_rs import tensor

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "python"))

import ours  # noqa: E402
from workloads import CASES, batches, weights  # noqa: E402

SMALL = [name for name, case in CASES.items() if not case.depth]


@pytest.mark.parametrize("name", CASES)
def test_parameters_are_those_described(name):
    case = CASES[name]
    net = ours.network(case, None)
    net.compile([tensor.Placeholder(case.shape)])
    shapes = [parameter.shape for parameter in net.get_params().values()]
    assert shapes == [array.shape for array in weights(case)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SMALL)
def test_eager_and_replay_are_equal_to_the_bit(name, dtype):
    case = CASES[name]
    replayed, eager = (ours.model(case, how, dtype) for how in ("replay", "eager"))
    same_states(replayed, eager)
    data = [
        (tensor.from_numpy(x, dtype=dtype), tensor.from_numpy(y)) for x, y in batches(case, dtype)
    ]
    losses = [step(replayed, eager, *data[i % 2])[1].item() for i in range(6)]
    assert replays(replayed) >= 3
    assert losses[0] != losses[4]
