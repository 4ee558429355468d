"""Operations that users write, in tensor operations and in NumPy."""

import numpy as np
import pytest
from singa_rs import GraphError, ShapeError, autograd, module, tensor
from singa_rs.tensor import Tensor, from_numpy


@pytest.fixture(autouse=True)
def training():
    autograd.training = True
    yield
    autograd.training = False


def parameter(values):
    made = from_numpy(np.array(values, float))
    made.stores_grad = True
    return made


class Powers(autograd.Operator):
    """The square and the cube."""

    def forward(self, x):
        assert isinstance(x, Tensor)
        self.x = x
        return x * x, x * x * x

    def backward(self, square, cube):
        return square * 2 * self.x + cube * 3 * self.x * self.x


class HostSine(autograd.Operator):
    """A sine times a factor, in NumPy."""

    host = True

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def infer(self, x):
        return x.shape, x.dtype

    def forward(self, x):
        assert isinstance(x, np.ndarray)
        self.x = x
        return np.sin(x) * self.factor

    def backward(self, dy):
        return dy * np.cos(self.x) * self.factor


def test_several_outputs():
    w = parameter([1.0, 2.0])
    square, cube = Powers()(w)
    assert (square.tolist(), cube.tolist()) == ([1, 4], [1, 8])
    assert square.creator is cube.creator
    found = autograd.gradients((square + cube * 2).sum())
    assert found[w].tolist() == [8, 28]


def test_an_unused_output():
    w = parameter([1.0, 2.0])
    assert autograd.gradients(Powers()(w)[1].sum())[w].tolist() == [3, 12]


def test_one_instance_may_be_called_again():
    op, w = Powers(), parameter([1.0, 2.0])
    y = op(w)[0] + op(w * 3)[0]
    assert autograd.gradients(y.sum())[w].tolist() == [20, 40]


def test_on_the_host():
    w = parameter([0.0, 1.0])
    (y,) = HostSine(2.0)(w)
    np.testing.assert_allclose(y.to_numpy(), 2 * np.sin([0, 1]), rtol=1e-6)
    found = autograd.gradients(y.sum())
    np.testing.assert_allclose(found[w].to_numpy(), 2 * np.cos([0, 1]), rtol=1e-6)


def test_host_exceptions_propagate():
    class Broken(HostSine):
        def forward(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Broken(1.0)(parameter([1.0]))


def test_nothing_is_recorded_inside():
    class Inside(autograd.Operator):
        def forward(self, x):
            y = x * 2
            assert y._creator is None
            return y

        def backward(self, dy):
            dx = dy * 2
            assert dx._creator is None
            return dx

    w = parameter([1.0])
    assert autograd.gradients(Inside()(w)[0])[w].tolist() == [2]


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda dy: (dy, dy), GraphError, "returned 2 gradients, want 1"),
        (lambda dy: dy.sum(), ShapeError, r"shape \(\)"),
        (lambda dy: dy.as_type("float64"), ShapeError, "float64"),
    ],
)
def test_gradients_are_checked(answer, error, message):
    class Wrong(autograd.Operator):
        def forward(self, x):
            return x + 1

        def backward(self, dy):
            return answer(dy)

    y = Wrong("wrong")(parameter([1.0, 2.0]))[0]
    with pytest.raises(error, match=f"wrong.*{message}"):
        autograd.gradients(y.sum())


def test_no_gradient_for_an_input():
    class First(autograd.Operator):
        def forward(self, x, y):
            return x + y * 0

        def backward(self, dy):
            return dy, None

    a, b = parameter([1.0]), parameter([1.0])
    found = autograd.gradients(First()(a, b)[0])
    assert a in found and b not in found


def test_saved_tensors_must_not_change():
    w = parameter([1.0, 2.0])
    loss = Powers()(w)[0].sum()
    w += 1
    with pytest.raises(GraphError, match="changed in place"):
        autograd.gradients(loss)


def test_inputs_must_be_tensors_or_arrays():
    with pytest.raises(TypeError, match="want a Tensor"):
        Powers()([1.0, 1.0])
    assert Powers()(np.ones(2))[0].shape == (2,)


def test_a_rule_that_a_recording_has_used_is_another_node_elsewhere():
    rule = autograd.ReLU()

    class Net(module.Module):
        def forward(self, x):
            return rule(x)[0]

        def train_one_batch(self, x):
            return self.forward(x).sum().reshape((1,))

    x = tensor.from_numpy(np.array([[-1.0, 2.0]], np.float32))
    net = Net()
    net.compile([x])
    for _ in range(3):
        net(x)
    given = tensor.from_numpy(np.array([[-1.0, 2.0]], np.float32))
    given.stores_grad = True
    loss = rule(given)[0].sum()
    net.plan(x)
    loss.backward()
    assert given.grad.numpy().tolist() == [[0.0, 1.0]]


def test_an_operation_may_have_settings():
    class Scaled(autograd.Operator):
        def __init__(self):
            super().__init__()
            self.settings = {"by": 2.0}

        def forward(self, x):
            return x * self.settings["by"]

        def backward(self, dy):
            return dy * self.settings["by"]

    operation, x = Scaled(), from_numpy(np.ones(2, np.float32))
    made = [operation(x) for _ in range(2)]
    assert [(one[0] if isinstance(one, tuple) else one).sum().item() for one in made] == [4, 4]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "answer, got",
    [
        (lambda x: None, "None"),
        (lambda x: np.ones(3), r"ndarray of shape \(3,\)"),
        (lambda x: (x, None), r"\w*Tensor of shape \(2,\), None"),
        (lambda x: [x, 1.0], ".*, 1.0"),
        (lambda x: {"y": 1}, "{'y': 1}"),
        (lambda x: (), r"\(\)"),
    ],
)
def test_results_are_checked(answer, got, recorded):
    class Wrong(autograd.Operator):
        def forward(self, x):
            return answer(x)

    autograd.training = recorded
    with pytest.raises(TypeError, match=f"^mine: forward returned {got}, want a Tensor or a tuple"):
        Wrong("mine")(parameter([1.0, 2.0]))
