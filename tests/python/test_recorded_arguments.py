"""Arguments of recorded steps: each call uses its own."""

import numpy as np
import pytest
from recorded import CPU, RNG, Net, batch, pair, replays, same, step
from singa_rs import autograd, module, tensor
from singa_rs.errors import GraphError
from singa_rs.tensor import Placeholder, from_numpy


def test_new_argument_tensors():
    recorded, eager = pair(Net)
    for _ in range(6):
        x, y = batch()
        step(recorded, eager, from_numpy(x), from_numpy(y))
    assert replays(recorded) == 4 and len(recorded.graphs) == 1


def test_arguments_filled_again():
    recorded, eager = pair(Net)
    x, y = Placeholder((4, 6), device=CPU), Placeholder((4,), device=CPU, dtype=tensor.int32)
    for _ in range(6):
        bx, by = batch()
        x.copy_from(bx)
        y.copy_from(by)
        step(recorded, eager, x, y)
    assert replays(recorded) == 4


def test_unfilled_placeholder_is_refused():
    recorded, _ = pair(Net)
    y = Placeholder((4,), device=CPU, dtype=tensor.int32)
    with pytest.raises(GraphError, match="train_one_batch.*unfilled Placeholder"):
        recorded(from_numpy(batch()[0]), y)


def test_arrays_that_the_caller_reuses():
    recorded, eager = pair(Net)
    x, y = batch()
    kept = []
    for _ in range(6):
        x[:], y[:] = batch()
        out, _ = step(recorded, eager, x, y)
        kept.append((out, out.to_numpy()))
    x[:] = 0
    for out, value in kept:
        assert out.to_numpy().tobytes() == value.tobytes()
    assert replays(recorded) == 4


@pytest.mark.parametrize("names", [["a", "b", "b", "a"], np.array([{"a": 1}, None, "b", 2.0])])
def test_arrays_of_text_or_objects(names):
    """They are passed on as they are, and what is in them is not compared."""

    class Named(Net):
        def train_one_batch(self, x, y, names):
            out, loss = super().train_one_batch(x, y)
            return out * sum(isinstance(one, str) for one in names.tolist()), loss

    recorded, eager = pair(Named)
    names = np.array(names)
    for i in range(8):
        names[:2] = "b" if i % 3 or names.dtype.kind == "U" else 1
        step(recorded, eager, *batch(), names)
    assert not recorded.graphs


def test_arrays_of_text_in_the_place_of_numbers():
    class Either(Net):
        def train_one_batch(self, x, y):
            y = np.array(y == "b", np.int32) if isinstance(y, np.ndarray) else y
            return super().train_one_batch(x, y)

    recorded, eager = pair(Either)
    for i in range(8):
        x, y = batch()
        step(recorded, eager, x, np.array(["a", "b", "b", "a"]) if i > 4 else y)
    assert replays(recorded) == 3


@pytest.mark.filterwarnings("ignore:.*runs eagerly from now on")
def test_arguments_in_a_set():
    class Seeing(Net):
        def train_one_batch(self, x, y):
            self.seen = {x, y}
            return super().train_one_batch(x, y)

    models = pair(Seeing)
    for _ in range(6):
        step(*models, *map(from_numpy, batch()))
        assert [len(model.seen) for model in models] == [2, 2]


def test_smaller_last_batch():
    recorded, eager = pair(Net)
    for _ in range(4):
        for rows in (4, 4, 3):
            step(recorded, eager, *batch(rows))
    assert replays(recorded) == 12 - 2 * 2 and len(recorded.graphs) == 2


def test_strided_argument():
    recorded, eager = pair(Net)
    for _ in range(4):
        x, y = batch(6, 4)
        step(recorded, eager, from_numpy(x).transpose()[:4], from_numpy(y[:4]))


class Product(module.Module):
    """Writes into its first argument and reads the second."""

    def forward(self, a, b):
        a += 1
        return a * b, b


def test_same_tensor_as_two_arguments():
    recorded, eager = Product(), Product()
    recorded.eval()
    recorded.graph(True)
    eager.eval()
    for round_ in range(9):
        values = np.full((2, 3), round_, np.float32)
        results = []
        for model in (recorded, eager):
            a = from_numpy(values)
            b = a if round_ % 3 == 0 else from_numpy(values)
            b = a[:] if round_ % 3 == 1 else b
            results.append(model(a, b))
        same(*results)
    assert len(recorded.graphs) == 2  # to a graph, a view of the whole argument is the argument


def test_parameter_as_an_argument():
    class Scaled(Net):
        def train_one_batch(self, x, y):
            out = super().forward(x * self.fc1.b.sum())
            loss = self.loss(out, y)
            self.optimizer(loss)
            return out

        def forward(self, x, w=None):
            return super().forward(x if w is None else x @ w)

    recorded, eager = pair(Scaled)
    for model in (recorded, eager):
        model.eval()
    x = from_numpy(batch(4, 4)[0])
    free = from_numpy(RNG.normal(size=(4, 6)).astype(np.float32))
    for own in (False, False, False, True, True, True, False):
        results = []
        for model in (recorded, eager):
            w = model.fc1.W.transpose()[:4] if own else free
            if own:
                w = tensor.reshape(model.fc1.W, (5, 6))[:4]
            results.append(model.forward(x, w))
        same(*results)


def test_other_arguments_are_part_of_the_key():
    class Optional(Net):
        def train_one_batch(self, x, y, mode="full", scale=1.0):
            loss = self.loss(self.forward(x) * scale, y)
            if mode == "full":
                self.optimizer(loss)
            return loss, mode

    recorded, eager = pair(Optional)
    for _ in range(3):
        for mode, scale in (("full", 1.0), ("none", 1.0), ("full", 2.0), ("full", 1)):
            step(recorded, eager, *batch(), mode, scale)
    assert len(recorded.graphs) == 4


def test_requires_grad_of_an_argument():
    class Sensitivity(module.Module):
        def train_one_batch(self, x):
            y = autograd.reduce_sum(x * x, axes=None, keepdims=0)
            return y, y.requires_grad

    recorded = Sensitivity()
    recorded.graph(True)
    recorded.train()
    for _ in range(3):
        for flag in (True, False):
            x = from_numpy(batch()[0])
            x.requires_grad = flag
            assert recorded(x)[1] is flag


def test_a_result_that_is_an_argument_is_that_argument():
    class Echo(module.Module):
        def forward(self, x, pair):
            return {"x": x, "view": x[0], "pair": pair, "n": 3, "sum": x + pair[0]}

    recorded = Echo()
    recorded.graph(True)
    recorded.eval()
    for _ in range(4):
        x, y = (from_numpy(batch()[0]) for _ in range(2))
        answer = recorded(x, (y, None))
        assert answer["x"] is x and answer["pair"] == (y, None) and answer["n"] == 3
        assert answer["view"].shares_block(x)
        same(answer["sum"], x + y)
