"""`compile(check_finite=True)` names the first operation that makes a NaN or an infinity."""

import numpy as np
import pytest
from recorded import B, Net, pair, same_states, step, tensor
from singa_rs import autograd, module, opt
from singa_rs.tensor import Tensor

FILE = "injected.py"
#: Lines that keep finite numbers finite.
HARMLESS = (
    "x = autograd.tanh(x)",
    "x = autograd.relu(x) + 0.5",
    "x = autograd.sigmoid(x) * 2 - 1",
    "x = autograd.tanh(x @ self.w)",
    "x = x + self.b",
    "x = autograd.softmax(x)",
    "x = autograd.sigmoid(autograd.transpose(x, (1, 0)) @ x)",
)
#: Lines, each with the operation in it that produces the first NaN or infinity.
FORWARD = (
    ("x = autograd.log(x * 0 - 1)", "log"),
    ("x = x / (x - x)", "div"),
    ("x = autograd.sqrt(autograd.abs(x) * -1 - 1)", "sqrt"),
    ("x = autograd.exp(x * 0 + 1000)", "exp"),
    ("x = (autograd.abs(x) + 1) * 1e38 * 1e38", "mul_scalar"),
    ("x = (x * 0 + 1e30) @ (self.w * 0 + 1e30)", "matmul"),
    ("x = x + (x * 0 + 3e38).sum()", "sum"),
    ("x = x * 1; x[0] = float('nan')", "copy"),
)
#: The same for the backward pass.
BACKWARD = (
    ("x = autograd.sqrt(x * 0)", "sqrt_grad"),
    ("x = Backward(lambda x: x * 1, lambda dy: dy / (dy - dy))(x)[0]", "div"),
    ("x = Backward(lambda x: x * 1, lambda dy: autograd.log(dy * 0 - 1))(x)[0]", "log"),
    ("x = Backward(lambda x: x * 1, lambda dy: autograd.exp(dy * 0 + 1000))(x)[0]", "exp"),
    ("x = Backward(lambda x: x * 1, lambda dy: dy * 0 + 3e38 + 3e38)(x)[0]", "add_scalar"),
)


class Backward(autograd.Operator):
    """An operator with these two functions as its forward and backward pass."""

    def __init__(self, forward, backward):
        super().__init__()
        self.forward, self.backward = forward, backward


def program(lines):
    """A model whose `forward` consists of these lines, numbered from 2 in a file of its own."""
    text = "\n".join(["def forward(self, x):", *(f"    {line}" for line in lines), "    return x"])
    names = {"autograd": autograd, "Backward": Backward}
    exec(compile(text, FILE, "exec"), names)

    class Injected(module.Module):
        forward = names["forward"]

        def __init__(self, rng):
            super().__init__()
            data = [rng.normal(size=shape).astype(np.float32) for shape in ((5, 5), (5,))]
            self.w, self.b = (Tensor(data=d, requires_grad=True, stores_grad=True) for d in data)
            self.optimizer = opt.SGD(lr=0.01)

        def train_one_batch(self, x):
            loss = self.forward(x).mean()
            self.optimizer(loss)
            return loss

    return Injected


def injected(seed, ways):
    """A model with one bad line among harmless ones, its number, and the operation to blame."""
    rng = np.random.default_rng(seed)
    bad, name = ways[seed % len(ways)]
    lines = ["x = x @ self.w", *rng.choice(HARMLESS, rng.integers(0, 7))]
    place = int(rng.integers(1, len(lines) + 1))
    lines.insert(place, bad)
    return program(lines)(rng), place + 2, name


@pytest.mark.parametrize("ways", [FORWARD, BACKWARD], ids=["forward", "backward"])
def test_a_hundred_injected_ones_are_named(ways):
    wrong = []
    for seed in range(100):
        model, line, name = injected(seed, ways)
        x = tensor(5, 5)
        model.compile([x], check_finite=True)
        with pytest.raises(FloatingPointError) as caught:
            model(x)
        found = caught.value
        if (found.operation, found.line) != (name, f"{FILE}:{line}"):
            wrong.append((seed, name, line, found.operation, found.line))
        assert f"{name} (recorded at {FILE}:{line})" in str(found) or wrong
    assert wrong == []


def test_without_a_bad_line_nothing_is_raised():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        model, x = program(["x = x @ self.w", *rng.choice(HARMLESS, 5)])(rng), tensor(5, 5)
        model.compile([x], check_finite=True)
        for _ in range(4):
            model(x)


def test_inputs_are_described_as_they_were_found():
    """Including the input that the operation overwrites with its result."""
    model = program(["x = x @ self.w * 0 + 2", "x *= float('inf')"])(np.random.default_rng(0))
    x = tensor(5, 5)
    model.compile([x], check_finite=True)
    with pytest.raises(FloatingPointError) as caught:
        model(x)
    assert caught.value.operation == "mul_scalar"
    assert caught.value.inputs == ["float32 (5, 5): from 2.000000e0 to 2.000000e0, mean 2.000000e0"]
    assert caught.value.outputs == ["float32 (5, 5): 0 NaN, 25 infinite; no finite numbers"]
    assert "input 0: float32 (5, 5): from 2" in str(caught.value)


def test_a_later_fault_is_found_in_a_replay():
    model = program(["x = autograd.log(x) @ self.w"])(np.random.default_rng(0))
    x = Tensor(data=np.ones((5, 5), np.float32))
    model.compile([x], check_finite=True)
    for _ in range(4):
        model(x)
    assert sum(graph.runs for graph in model.graphs) >= 3
    with pytest.raises(FloatingPointError, match="log .recorded at injected.py:2."):
        model(Tensor(data=-np.ones((5, 5), np.float32)))
    model(x)


def test_bits_are_those_of_eager_execution():
    recorded, eager = pair(Net, check_finite=True)
    for _ in range(5):
        step(recorded, eager, *B)
    same_states(recorded, eager)
    assert {"batch_norm", "relu"} <= {one.name for one in recorded.graphs[0].profile(1)}


class Unequal(Net):
    """Each recording differs, so the model stays eager."""

    n = 0

    def train_one_batch(self, x, y):
        Unequal.n += 1
        out = self.forward(x * Unequal.n)
        loss = self.loss(out / (0.0 if Unequal.n > 20 else 1.0), y)
        self.optimizer(loss)
        return out, loss


def test_a_function_that_stays_eager_is_checked_too():
    model, _ = pair(Unequal, check_finite=True)
    with pytest.warns(RuntimeWarning, match="runs eagerly"):
        for _ in range(18):
            model(*B)
    with pytest.raises(FloatingPointError, match="div"):
        for _ in range(9):
            model(*B)
    assert np.isinf((tensor(2) / 0).to_numpy()).all(), "and nothing else is"


def test_valid_values():
    model, x = Net(), tensor(4, 6)
    with pytest.raises(TypeError, match="check_finite"):
        model.compile([x], check_finite="yes")
    with pytest.raises(ValueError, match="use_graph=True"):
        model.compile([x], check_finite=True, use_graph=False)
