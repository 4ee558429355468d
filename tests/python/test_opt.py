"""Optimizers and schedules against the same recurrences in NumPy float64."""

import numpy as np
import pytest
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs.tensor import Tensor

STEPS = 5
SHAPE = (3, 4)


def sgd(lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    def step(t, p, g, s):
        g = g + weight_decay * p
        if momentum:
            s["b"] = momentum * s.get("b", 0) + (1 - dampening) * g
            g = g + momentum * s["b"] if nesterov else s["b"]
        return p - lr * g

    return step


def rmsprop(lr, rho, epsilon, weight_decay=0.0):
    def step(t, p, g, s):
        g = g + weight_decay * p
        s["a"] = rho * s.get("a", 0) + (1 - rho) * g * g
        return p - lr * g / np.sqrt(s["a"] + epsilon)

    return step


def adagrad(lr, epsilon, weight_decay=0.0):
    def step(t, p, g, s):
        g = g + weight_decay * p
        s["h"] = s.get("h", 0) + g * g
        return p - lr * g / np.sqrt(s["h"] + epsilon)

    return step


def adam(lr, beta_1=0.9, beta_2=0.999, epsilon=1e-8, weight_decay=0.0, decoupled=False):
    def step(t, p, g, s):
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        s["m"] = beta_1 * s.get("m", 0) + (1 - beta_1) * g
        s["v"] = beta_2 * s.get("v", 0) + (1 - beta_2) * g * g
        m, v = s["m"] / (1 - beta_1 ** (t + 1)), s["v"] / (1 - beta_2 ** (t + 1))
        return p - lr * m / (np.sqrt(v) + epsilon)

    return step


def lion(lr, beta_1=0.9, beta_2=0.99, weight_decay=0.0):
    def step(t, p, g, s):
        m = s.get("m", 0)
        s["m"] = beta_2 * m + (1 - beta_2) * g
        return p - lr * (np.sign(beta_1 * m + (1 - beta_1) * g) + weight_decay * p)

    return step


CASES = {
    "sgd": (lambda: opt.SGD(0.1), sgd(0.1)),
    "momentum": (lambda: opt.SGD(0.1, 0.9), sgd(0.1, 0.9)),
    "dampening": (lambda: opt.SGD(0.1, 0.9, 0.3), sgd(0.1, 0.9, 0.3)),
    "decay": (lambda: opt.SGD(0.1, weight_decay=0.01), sgd(0.1, weight_decay=0.01)),
    "all": (lambda: opt.SGD(0.1, 0.9, 0.3, 0.01), sgd(0.1, 0.9, 0.3, 0.01)),
    "nesterov": (
        lambda: opt.SGD(0.1, 0.9, 0, 0.01, True),
        sgd(0.1, 0.9, 0, 0.01, nesterov=True),
    ),
    "rmsprop": (lambda: opt.RMSProp(0.1, 0.8, 1e-3), rmsprop(0.1, 0.8, 1e-3)),
    "rmsprop_decay": (lambda: opt.RMSProp(0.1, 0.8, 1e-3, 0.02), rmsprop(0.1, 0.8, 1e-3, 0.02)),
    "adagrad": (lambda: opt.AdaGrad(0.1, 1e-3), adagrad(0.1, 1e-3)),
    "adagrad_decay": (lambda: opt.AdaGrad(0.1, 1e-3, 0.02), adagrad(0.1, 1e-3, 0.02)),
    "lion": (lambda: opt.Lion(0.1), lion(0.1)),
    "lion_decay": (lambda: opt.Lion(0.1, 0.8, 0.95, 0.02), lion(0.1, 0.8, 0.95, 0.02)),
    "adam": (lambda: opt.Adam(0.1), adam(0.1)),
    "adam_decay": (
        lambda: opt.Adam(0.1, 0.8, 0.95, 1e-3, 0.02),
        adam(0.1, 0.8, 0.95, 1e-3, 0.02),
    ),
    "adamw": (
        lambda: opt.AdamW(0.1, weight_decay=0.02),
        adam(0.1, weight_decay=0.02, decoupled=True),
    ),
}


def parameter(values, name="p", dtype=None):
    return Tensor(data=values, dtype=dtype, stores_grad=True, name=name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("case", CASES)
def test_recurrence(case, dtype):
    make, step = CASES[case]
    rng = np.random.default_rng(0)
    start = rng.standard_normal(SHAPE).astype(dtype)
    optimizer, param = make(), parameter(start, dtype=dtype)
    want, memory = start.astype(np.float64), {}
    for t in range(STEPS):
        grad = rng.standard_normal(SHAPE).astype(dtype)
        given = Tensor(data=grad, dtype=dtype)
        optimizer.apply("p", param, given)
        optimizer.step()
        want = step(t, want, grad.astype(np.float64), memory)
        np.testing.assert_array_equal(given.to_numpy(), grad)
    tolerance = {"float16": 2e-2, "float32": 2e-6, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(param.to_numpy(), want, rtol=tolerance, atol=tolerance)
    assert optimizer.get_states()["step_counter"] == STEPS


def test_exponential_decay():
    step = Tensor((1,), dtype=tensor.int32)
    smooth = opt.ExponentialDecay(0.4, 10, 0.5)
    stairs = opt.ExponentialDecay(0.4, 10, 0.5, staircase=True)
    for t in (0, 5, 9, 10, 25):
        step.set_value(t)
        assert smooth(step).shape == (1,)
        np.testing.assert_allclose(smooth(step).item(), 0.4 * 0.5 ** (t / 10), rtol=1e-6)
        np.testing.assert_allclose(stairs(step).item(), 0.4 * 0.5 ** (t // 10), rtol=1e-6)
    assert opt.Constant(0.25)(step).item() == 0.25
    assert smooth.init_value == 0.4


def test_schedule_is_followed():
    optimizer = opt.SGD(opt.ExponentialDecay(1.0, 1, 0.5))
    param = parameter(np.zeros(1, np.float32))
    for _ in range(3):
        optimizer.apply("p", param, Tensor(data=np.ones(1, np.float32)))
        optimizer.step()
    np.testing.assert_allclose(param.to_numpy(), [-1.75])
    np.testing.assert_allclose(optimizer.lr_value.item(), 0.125)


def test_user_schedule():
    class Linear(opt.DecayScheduler):
        def call(self, step):
            return self.init_value - step.as_type(tensor.float32) * 0.1

    class Wrong(opt.DecayScheduler):
        def call(self, step):
            return 0.1

    optimizer = opt.SGD(Linear(1.0), momentum=Linear(0.9))
    optimizer.step()
    np.testing.assert_allclose(optimizer.lr_value.item(), 0.9, rtol=1e-6)
    np.testing.assert_allclose(optimizer.mom_value.item(), 0.8, rtol=1e-6)
    with pytest.raises(TypeError, match="lr"):
        opt.SGD(Wrong(0.1))


def test_learning_rate_changes_between_steps():
    optimizer, param = opt.SGD(0.5), parameter(np.zeros(2, np.float32))
    one = Tensor(data=np.ones(2, np.float32))
    holder = optimizer.lr_value
    optimizer.apply("p", param, one)
    optimizer.lr = np.float64(0.25)
    optimizer.apply("p", param, one)
    optimizer.lr *= 2
    optimizer.apply("p", param, one)
    np.testing.assert_allclose(param.to_numpy(), [-1.25, -1.25])
    assert optimizer.lr_value is holder and float(optimizer.lr) == 0.5


def test_equal_names_do_not_share_moments():
    optimizer = opt.SGD(1.0, momentum=0.5)
    a, b = (parameter(np.zeros(1, np.float32), "W") for _ in range(2))
    for _ in range(2):
        optimizer.apply("W", a, Tensor(data=np.float32([1])))
        optimizer.apply("W", b, Tensor(data=np.float32([10])))
    np.testing.assert_allclose(a.to_numpy(), [-2.5])
    np.testing.assert_allclose(b.to_numpy(), [-25])
    moments = optimizer.get_states()["moments"]
    assert list(moments) == ["W", "W#2"]
    assert moments["W"] is optimizer.moments["W"]


def test_another_tensor_on_the_same_memory_keeps_its_moments():
    optimizer, param = opt.SGD(1.0, momentum=0.5), parameter(np.zeros(1, np.float32))
    for _ in range(2):
        optimizer.apply("p", param.data, Tensor(data=np.float32([1])))
    np.testing.assert_allclose(param.to_numpy(), [-2.5])


@pytest.mark.parametrize("case", ["momentum", "rmsprop", "adagrad", "adam"])
def test_states_continue_a_run(case):
    rng = np.random.default_rng(1)
    grads = [Tensor(data=rng.standard_normal(SHAPE)) for _ in range(6)]
    start = rng.standard_normal(SHAPE).astype(np.float32)

    def run(optimizer, param, some):
        for grad in some:
            optimizer.apply("p", param, grad)
            optimizer.step()

    whole, first = parameter(start), parameter(start)
    run(CASES[case][0](), whole, grads)
    earlier, later = CASES[case][0](), CASES[case][0]()
    run(earlier, first, grads[:3])
    counter = later.step_counter
    later.set_states(earlier.get_states())
    second = parameter(first.to_numpy())
    run(later, second, grads[3:])
    np.testing.assert_array_equal(second.to_numpy(), whole.to_numpy())
    assert later.step_counter is counter and later.get_states()["step_counter"] == 6


def test_states_are_set_in_place_and_checked():
    optimizer, param = opt.SGD(1.0, momentum=0.5), parameter(np.zeros(2, np.float32))
    optimizer.apply("p", param, Tensor(data=np.float32([1, 2])))
    buffer = optimizer.moments["p"]
    optimizer.set_states({"moments": {"p": np.float32([5, 6])}, "step_counter": 5})
    assert optimizer.moments["p"] is buffer
    np.testing.assert_array_equal(buffer.to_numpy(), [5, 6])
    with pytest.raises(ValueError, match="'p'"):
        optimizer.set_states({"moments": {"p": np.zeros(3, np.float32)}, "step_counter": 9})
    assert optimizer.get_states()["step_counter"] == 5
    for wrong in (-1, 1.5, np.inf):
        with pytest.raises(ValueError, match="step_counter"):
            optimizer.set_states({"step_counter": wrong})


def test_moments_are_accounted_as_states():
    optimizer, param = opt.Adam(0.1), parameter(np.zeros((64, 64), np.float32))
    before = param.device.memory()["states"]
    optimizer.apply("p", param, Tensor(data=np.ones((64, 64), np.float32)))
    assert param.device.memory()["states"] - before >= 2 * 4 * 64 * 64


BAD = [
    (ValueError, "lr", lambda: opt.SGD(-0.1)),
    (ValueError, "lr", lambda: opt.SGD(float("nan"))),
    (ValueError, "lr", lambda: opt.Adam(np.inf)),
    (TypeError, "lr", lambda: opt.SGD("0.1")),
    (TypeError, "lr", lambda: opt.SGD(True)),
    (ValueError, "momentum", lambda: opt.SGD(0.1, -0.9)),
    (ValueError, "weight_decay", lambda: opt.SGD(0.1, weight_decay=-1)),
    (ValueError, "nesterov", lambda: opt.SGD(0.1, nesterov=True)),
    (ValueError, "nesterov", lambda: opt.SGD(0.1, 0.9, 0.1, nesterov=True)),
    (ValueError, "rho", lambda: opt.RMSProp(rho=1.0)),
    (ValueError, "epsilon", lambda: opt.RMSProp(epsilon=-1e-8)),
    (ValueError, "epsilon", lambda: opt.AdaGrad(epsilon=-1)),
    (ValueError, "beta_1", lambda: opt.Adam(beta_1=1)),
    (ValueError, "beta_2", lambda: opt.AdamW(beta_2=-0.1)),
    (TypeError, "init_value", lambda: opt.Constant(None)),
    (ValueError, "decay_steps", lambda: opt.ExponentialDecay(0.1, 0, 0.9)),
    (ValueError, "decay_rate", lambda: opt.ExponentialDecay(0.1, 10, -0.9)),
]


@pytest.mark.parametrize(("error", "argument", "make"), BAD)
def test_wrong_arguments(error, argument, make):
    with pytest.raises(error, match=argument):
        make()


def test_wrong_learning_rate_changes_nothing():
    optimizer = opt.SGD(0.1)
    with pytest.raises(ValueError, match="lr"):
        optimizer.lr = -1
    assert float(optimizer.lr) == 0.1 and optimizer.lr_value.item() == np.float32(0.1)


def test_hyperparameters_are_as_precise_as_the_parameters():
    optimizer = opt.SGD(0.1, momentum=opt.ExponentialDecay(0.9, 10, 0.3))
    optimizer.apply("p", parameter(np.zeros(1, np.float32)), Tensor(data=np.ones(1, np.float32)))
    assert optimizer.lr_value.dtype == optimizer.mom_value.dtype == tensor.float32
    optimizer.step()
    one = Tensor(data=np.ones(1), dtype="float64")
    optimizer.apply("q", parameter(np.zeros(1), dtype="float64"), one)
    assert optimizer.lr_value.dtype == optimizer.mom_value.dtype == tensor.float64
    assert optimizer.lr_value.item() == 0.1
    np.testing.assert_allclose(optimizer.mom_value.item(), 0.9 * 0.3**0.1, rtol=1e-15)
    optimizer.lr = 0.3
    assert optimizer.lr_value.item() == 0.3
    assert opt.SGD(0.1, dtype="float64").lr_value.item() == 0.1


def test_values_written_into_a_hyperparameter_persist():
    optimizer, param = opt.SGD(0.1), parameter(np.zeros(1), dtype="float64")
    optimizer.lr_value.set_value(0.25)
    optimizer.apply("p", param, Tensor(data=np.ones(1), dtype="float64"))
    assert param.to_numpy() == -0.25


class Regression(module.Module):
    """Learns a line in float64."""

    def __init__(self, optimizer):
        super().__init__()
        self.layer, self.optimizer = layer.Linear(1), optimizer

    def forward(self, x):
        return self.layer(x)

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("make", [lambda: opt.SGD(0.1, 0.9), lambda: opt.Adam(0.1)])
def test_graphs_have_precise_hyperparameters(make):
    x = tensor.from_numpy(np.linspace(-1, 1, 8)[:, None], dtype="float64")
    y = tensor.from_numpy(3 * np.linspace(-1, 1, 8)[:, None] + 1, dtype="float64")

    def losses(use_graph):
        model = Regression(make())
        model.compile([x], use_graph=use_graph)
        model.set_params({name: 0 * value for name, value in model.get_params().items()})
        made = [model.train_one_batch(x, y).item() for _ in range(8)]
        assert model.optimizer.lr_value.item() == 0.1
        return made

    assert losses(True) == losses(False)


def test_gradient_of_another_shape():
    with pytest.raises(ValueError, match="sgd"):
        opt.SGD().apply("p", parameter(np.zeros(2)), Tensor(data=np.zeros(3)))


def test_whole_step():
    x = Tensor(data=np.float32([[1, 2], [3, 4]]))
    t = Tensor(data=np.float32([[1], [0]]))
    dense = layer.Linear(1, kernel_init="ones")
    for call in ("__call__", "backward_and_update"):
        optimizer = opt.SGD(0.1)
        with autograd._training_scope(True):
            loss = autograd.mse_loss(dense(x), t)
            before = {k: v.to_numpy() for k, v in dense.get_params().items()}
            error = x.to_numpy() @ before["W"] + before["b"] - t.to_numpy()
            getattr(optimizer, call)(loss)
        np.testing.assert_allclose(
            dense.W.to_numpy(), before["W"] - 0.1 * x.to_numpy().T @ error, rtol=1e-5
        )
        np.testing.assert_allclose(dense.b.to_numpy(), before["b"] - 0.1 * error.sum(0), rtol=1e-5)
        assert optimizer.get_states() == {"step_counter": 1}


def test_call_does_not_step():
    x = Tensor(data=np.ones((1, 1), np.float32))
    optimizer, dense = opt.SGD(0.1), layer.Linear(1)
    with autograd._training_scope(True):
        optimizer.call(autograd.mse_loss(dense(x), x))
    assert optimizer.get_states()["step_counter"] == 0


def test_user_optimizer():
    class Sign(opt.Optimizer):
        def apply(self, param_name, param_value, param_grad):
            self.device_check(param_value, self.lr_value)
            param_value -= tensor.sign(param_grad) * self.lr_value

    param = parameter(np.zeros(2, np.float32))
    Sign(0.5).apply("p", param, Tensor(data=np.float32([3, -4])))
    np.testing.assert_array_equal(param.to_numpy(), [-0.5, 0.5])


def test_update_is_deprecated():
    param = parameter(np.zeros(1, np.float32))
    with pytest.warns(DeprecationWarning, match="update"):
        opt.SGD(1.0).update(param, Tensor(data=np.float32([1])))
    np.testing.assert_array_equal(param.to_numpy(), [-1])
