"""States of optimizers by name: a file holds them, and the run goes on to the bit."""

import numpy as np
import pytest
from opt_nets import Net, equal, made, trained
from singa_rs import opt, tensor
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
