"""States of optimizers by name: a file holds them, and the run goes on to the bit."""

import copy

import numpy as np
import pytest
from opt_nets import Net, equal, made, trained
from singa_rs import ShapeError, autograd, opt, tensor
from singa_rs.tensor import Tensor

MAKERS = {
    "adam": lambda: opt.Adam(0.01),
    "plateau": lambda: opt.SGD(opt.OnPlateau(0.1, patience=1), momentum=0.9),
    "groups": lambda: grouped(opt.AMSGrad(opt.CosineDecay(0.1, 8))),
    "lion": lambda: opt.Lion(0.01),
    # Its moments have the names of nothing that DistOpt keeps itself.
    "distributed": lambda: opt.DistOpt(opt.RMSProp(0.01, momentum=0.9)),
}


def grouped(optimizer):
    optimizer.group("two", lr=0.05)
    return optimizer


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_file_continues_a_run(kind, use_graph, tmp_path):
    def net():
        return made(Net, use_graph, MAKERS[kind]())

    def observe(net, step):
        if kind == "plateau":
            net.optimizer.observe(1.0)

    whole = trained(net(), range(8), observe)
    first, second = net(), net()
    trained(first, range(4), observe)
    first.save_states(tmp_path / "net.zip", first.optimizer.get_named_states("sgd/x"))
    second.optimizer.set_named_states(second.load_states(tmp_path / "net.zip"), "sgd/x")
    equal(trained(second, range(4, 8), observe), whole[4:])


def stepped():
    optimizer = opt.Adam(0.1)
    param = Tensor(data=np.float32([1, 2]), requires_grad=True, stores_grad=True)
    optimizer.apply("a/b", param, Tensor(data=np.float32([3, 4])))
    optimizer.step()
    return optimizer


def test_names():
    optimizer = stepped()
    assert list(optimizer.get_named_states()) == ["step_counter", "m/a/b", "v/a/b"]
    found = optimizer.get_named_states("one")
    assert list(found) == ["one/step_counter", "one/m/a/b", "one/v/a/b"]
    assert found["one/m/a/b"] is optimizer.m["a/b"]
    average = opt.MovingAverage()
    average.update({"p": tensor.ones((2,))})
    assert list(average.get_named_states("ema")) == ["ema/step_counter", "ema/average/p"]


def test_several_optimizers_share_a_file():
    one, other = stepped(), opt.Adam(0.1)
    other.set_named_states({**opt.SGD(0.1).get_named_states("a"), **one.get_named_states("b")}, "b")
    assert other.get_states()["step_counter"] == 1
    np.testing.assert_array_equal(
        other.get_states()["v"]["a/b"].to_numpy(), one.v["a/b"].to_numpy()
    )


@pytest.mark.parametrize(
    ("error", "message", "found", "prefix"),
    [
        (TypeError, "got list, want a mapping", [], ""),
        (TypeError, "got 3 for the prefix, want a str", {}, 3),
        (ValueError, "got no 'a/step_counter' among 0 names", {}, "a"),
        (ValueError, "got no 'b/step_counter' among 1 names", {"a/step_counter": 3}, "b"),
        (ValueError, "got 'z/w', want a state of", {"step_counter": 3, "z/w": np.ones(2)}, ""),
        (ValueError, "got 'm/', want a state of", {"step_counter": 3, "m/": np.ones(2)}, ""),
        (ValueError, "'a/b'", {"step_counter": 3, "m/a/b": np.ones(3)}, ""),
    ],
)
def test_what_does_not_fit_is_refused(error, message, found, prefix):
    optimizer = stepped()
    with pytest.raises(error, match=message):
        optimizer.set_named_states(found, prefix)
    assert optimizer.get_states()["step_counter"] == 1
    assert not optimizer._accumulates


def test_states_of_another_optimizer_are_left_out_with_a_warning(monkeypatch):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    with pytest.warns(UserWarning, match="SGD.set_states: leaves out m, v, which it does not have"):
        opt.SGD(0.1).set_states(stepped().get_states())


# ---- hyperparameters that were assigned ----------------------------------------------------------


class Slower(opt.DecayScheduler):
    """A schedule of the program's own."""

    def __init__(self, init_value, rate):
        super().__init__(init_value)
        self.rate = rate

    def call(self, step):
        return self.init_value / (1 + step.as_type(tensor.float64) * self.rate)


def assigning(net, step):
    """Lowers what there is after the second step."""
    if step != 1:
        return
    one, (group,) = net.optimizer, net.optimizer._groups
    one.lr, one.clip_norm, one.weight_decay = 0.001, 0.05, opt.Warmup(3, opt.CosineDecay(0.1, 9))
    group.lr, group.beta_1 = opt.OnPlateau(0.3, patience=2), 0.5
    one.beta_2_value.set_value(0.75)  # in the tensor


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_run_goes_on_with_hyperparameters_that_were_assigned(named, use_graph, tmp_path):
    def net():
        return made(Net, use_graph, grouped(opt.AdamW(0.1, clip_norm=5.0)))

    whole = trained(net(), range(8), assigning)
    first, second, third = net(), net(), net()
    trained(first, range(4), assigning)
    if named:
        first.save_states(tmp_path / "net.zip", first.optimizer.get_named_states("a"))
        second.optimizer.set_named_states(second.load_states(tmp_path / "net.zip"), "a")
    else:
        first.save(tmp_path / "net", {"a": first.optimizer})
        second.load(tmp_path / "net", state={"a": second.optimizer})
    third.set_params(second.get_params())
    third.optimizer.set_states(second.optimizer.get_states())
    for one in (second, third):
        equal(trained(one, range(4, 8)), whole[4:])


def test_what_was_not_assigned_stays_with_the_constructor():
    first, second = opt.SGD(0.1, momentum=0.9), opt.SGD(0.2, momentum=0.5, clip_norm=3.0)
    assert set(first.get_states()) == {"step_counter"}
    first.momentum = 0.75
    assert first.get_states()["hyperparameters"] == {"momentum": 0.75}
    second.set_states(first.get_states())
    assert repr(second) == "SGD(lr=0.2, momentum=0.75, clip_norm=3)"
    assert second.get_states() == first.get_states()
    second.set_states({"step_counter": 0})
    assert second.mom_value.tolist() == [0.75]


def test_averages_and_wrapped_optimizers_keep_what_was_assigned():
    for make, name in (
        (lambda: opt.MovingAverage(0.9), "decay"),
        (lambda: opt.DistOpt(opt.SGD(0.9)), "lr"),
    ):
        first, second = make(), make()
        setattr(first, name, 0.625)
        second.set_named_states(first.get_named_states("a"), "a")
        assert float(getattr(second, name)) == 0.625


@pytest.mark.parametrize(
    "make",
    [
        lambda: opt.Constant(1 / 3), lambda: opt.ExponentialDecay(0.3, 7, 0.9, True),
        lambda: opt.StepDecay(0.1, 3, 0.7), lambda: opt.LinearDecay(0.1, 3, 0.01),
        lambda: opt.CosineDecay(0.1, 5), lambda: opt.OneCycle(0.7, 9, 0.4, 3.0, 7.0),
        lambda: opt.warmup(3, 1 / 3), lambda: opt.warmup(2, opt.StepDecay(0.1, 3)),
        lambda: opt.OnPlateau(0.3, 0.5, 1, 0.1, 2, 0.01, "max"),
    ],
)  # fmt: skip
def test_schedules_of_the_package_are_made_again(make):
    first, second = opt.SGD(0.5), opt.SGD(0.5)
    for one in (first, second):
        one.step()
    first.lr = make()
    if first.lr.state is not None:
        first.observe(1.0)
    second.set_states(first.get_states())
    assert second.lr is not first.lr
    for step in range(12):
        if first.lr.state is not None:
            first.observe(step % 3), second.observe(step % 3)
        first.step(), second.step()
        assert first.lr_value.item() == second.lr_value.item()
    assert second.get_states()["step_counter"] == 13


def test_a_schedule_of_the_program_has_to_be_assigned_before(monkeypatch):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    first, second, third = opt.SGD(0.5), opt.SGD(opt.StepDecay(0.5, 3)), opt.SGD(0.5)
    first.lr = opt.Warmup(2, Slower(0.5, 0.1))
    with pytest.warns(UserWarning, match="stays StepDecay.*; assign the .*Slower.* before"):
        second.set_states(first.get_states())
    assert isinstance(second.lr, opt.StepDecay)
    third.lr = mine = opt.Warmup(2, Slower(0.5, 0.1))
    third.set_states(first.get_states())
    assert third.lr is mine and third.get_states() == first.get_states()


@pytest.mark.parametrize(
    "value", [-1.0, np.nan, "", "[]", "[3, 4]", '["StepDecay", {}]', "[" * 9999, None, np.ones(2)]
)
def test_hyperparameters_that_do_not_fit_are_refused(value):
    optimizer = stepped()
    with pytest.raises((TypeError, ValueError), match=r"Adam\.set_states: hyperparameters: lr"):
        optimizer.set_states({"step_counter": 7, "hyperparameters": {"lr": value}})
    assert optimizer.get_states()["step_counter"] == 1 and optimizer.lr_value.item() > 0


def test_hyperparameters_of_another_optimizer_are_left_out(monkeypatch):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    with pytest.warns(UserWarning, match="leaves out hyperparameters/0.beta_1, which it does not"):
        opt.SGD(0.1).set_states({"hyperparameters": {"0.beta_1": 0.5}})


class Halved(opt.SGD):
    """Assigns in its own constructor."""

    def __init__(self, lr):
        super().__init__(lr)
        self.lr, self.weight_decay = lr / 2, 0.01


class Mixed:
    def __init__(self, *args):
        super().__init__(*args)


class Plain(Mixed, Halved):
    """Has no constructor of its own."""


@pytest.mark.parametrize("kind", [Halved, Plain])
def test_what_the_constructor_of_a_subclass_assigns_is_its_own(kind):
    first, second = kind(0.1), kind(0.4)
    assert set(first.get_states()) == {"step_counter"}
    second.set_states(first.get_states())
    assert float(second.lr) == 0.2
    first.momentum = 0.5
    assert first.get_states()["hyperparameters"] == {"momentum": 0.5}


class By(opt.DecayScheduler):
    """A schedule with an argument of any kind."""

    def __init__(self, init_value, how):
        super().__init__(init_value)
        self.how = how

    def call(self, step):
        return step.as_type(tensor.float64) + self.init_value


def test_the_text_of_a_schedule_of_the_program_has_no_addresses():
    def told(how):
        optimizer = opt.SGD(0.1)
        optimizer.lr = By(0.5, how)
        return optimizer.get_states()["hyperparameters"]["lr"]

    assert told(lambda: 0).endswith('.By", {"init_value": 0.5, "how": "function"}]')
    assert told(lambda: 0) == told(lambda: 1) and told({(1, 2): 3}) == told({})
    assert told(np.float32(0.25)) == told(0.25) != told(0.5)


@pytest.mark.parametrize("more", [{}, {"exchange_residual": {}}])
@pytest.mark.parametrize("step", ["abc", None, [1, 2], {}, -1, 2.5])
def test_a_step_that_does_not_fit_is_refused(step, more):
    optimizer = opt.DistOpt(opt.SGD(0.1))
    with pytest.raises((TypeError, ValueError), match=r"DistOpt\.set_states: step_counter: got"):
        optimizer.set_states({"step_counter": step, **more})


# ---- states without moments ----------------------------------------------------------------------


class Averaged(Net):
    """Keeps averages, and adds up every other gradient."""

    def __init__(self, optimizer):
        super().__init__(optimizer)
        self.average = opt.MovingAverage(0.8)

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer.accumulate(loss * 0.5)
        loss = super().train_one_batch(x, y)
        self.average.update(self.get_params())
        return loss


MOMENTS = {**MAKERS, "sgd": lambda: opt.SGD(0.1, momentum=0.9)}


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("kind", MOMENTS)
def test_moments_start_afresh_where_states_have_none(kind, use_graph, tmp_path):
    net = made(Averaged, use_graph, MOMENTS[kind]())
    state = {"sgd": net.optimizer, "average": net.average}
    net.save(tmp_path / "net", state)
    first = trained(net)
    averages = {name: t.to_numpy() for name, t in net.average.averages.items()}
    loss = net.forward(tensor.ones((4, 6))).sum()
    net.optimizer.accumulate(loss)  # which nothing has taken yet
    net.load(tmp_path / "net", state=state)
    with pytest.raises(ValueError, match="has no average yet"):
        net.average.copy_to(net.get_params())
    equal(trained(net), first)
    equal([{name: t.to_numpy() for name, t in net.average.averages.items()}], [averages])


def test_values_that_wait_are_those_of_the_last_states():
    optimizer = opt.SGD(0.1, momentum=0.9)
    optimizer.set_states({"step_counter": 3, "moments": {"p": np.ones(2), "q": np.ones(2)}})
    optimizer.set_states({"step_counter": 2, "moments": {"p": np.ones(2)}})
    assert set(optimizer.get_states()["moments"]) == {"p"}


def test_states_without_a_step_are_a_part():
    optimizer = stepped()
    before = optimizer.v["a/b"].tolist()
    optimizer.set_states({"m": {"a/b": np.float32([7, 8])}})
    assert optimizer.m["a/b"].tolist() == [7, 8] and optimizer.v["a/b"].tolist() == before
    optimizer.set_states({"step_counter": 1, "m": {"a/b": np.float32([7, 8])}})
    assert optimizer.m["a/b"].tolist() == [7, 8] and optimizer.v["a/b"].tolist() == [0, 0]


def test_a_step_alone_is_just_set():
    optimizer = stepped()
    before = optimizer.v["a/b"].tolist()
    optimizer.set_states({"step_counter": 5})
    assert optimizer.get_states()["step_counter"] == 5 and optimizer.v["a/b"].tolist() == before
    optimizer.set_states({"step_counter": 0})
    assert optimizer.v["a/b"].tolist() == [0, 0]


# ---- averages ------------------------------------------------------------------------------------


def test_an_average_that_states_lack_is_forgotten():
    a, b = tensor.ones((2,)), tensor.ones((2,)) * 5
    first, second = opt.MovingAverage(0.5), opt.MovingAverage(0.5)
    first.update({"a": a})
    second.update({"a": a, "b": b})
    second.set_states(first.get_states())
    assert set(second.averages) == set(second.get_states()["average"]) == {"a"}
    with pytest.raises(ValueError, match="'b' has no average yet"):
        second.copy_to({"a": a, "b": b})
    with pytest.raises(ValueError, match="'b' was not there"):
        second.update({"a": a, "b": b})
    assert b.tolist() == [5, 5]


def test_averages_that_are_set_before_an_update_are_there():
    a, average = tensor.ones((2,)), opt.MovingAverage(0.5)
    average.update({"a": a})
    average.set_states({"step_counter": 0, "average": {"a": np.float32([7, 8])}})
    average.copy_to({"a": a})
    assert a.tolist() == [7, 8]


@pytest.mark.parametrize("use_graph", [False, True])
def test_averages_that_were_forgotten_begin_again(use_graph):
    net = made(Averaged, use_graph, opt.SGD(0.1))
    for _ in range(3):
        trained(net)
        net.average.set_states({"step_counter": 0})
        assert not net.average.averages
        (params,) = trained(net, range(1))
        equal([{k: t.to_numpy() for k, t in net.average.averages.items()}], [params])


def test_averages_that_wait_can_be_used_for_evaluation():
    a, b, average = tensor.ones((2,)), tensor.ones((3,)), opt.MovingAverage(0.5)
    average.set_states({"step_counter": 1, "average": {"a": np.float32([7, 8])}})
    assert {name: one.tolist() for name, one in average.averages.items()} == {"a": [7, 8]}
    with average.applied({"a": a}):
        assert a.tolist() == [7, 8]
    with pytest.raises(ValueError, match="'b' has no average yet"), average.applied({"b": b}):
        pass
    with pytest.raises(ShapeError, match=r"got shape \(2,\) for 'a', want \(3,\)"):
        average.copy_to({"a": b})
    other = tensor.ones((2,))
    average.update({"a": other})  # whose average it is
    assert a.tolist() == [1, 1] and average.averages["a"].tolist() == [4, 4.5]
    again = copy.deepcopy(average)
    with again.applied({"a": a}):
        assert a.tolist() == [4, 4.5]
    again.update({"a": a})
    assert again.averages["a"].tolist() == [2.5, 2.75]
