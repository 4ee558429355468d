"""Sums of gradients (`Optimizer.accumulate`) of parameters that the loss of an update does not
reach."""

import numpy as np
import pytest
from singa_rs import autograd, module, opt, tensor
from singa_rs.tensor import Tensor
from test_opt_parameters import MODES, X, compiled, parameter


@pytest.fixture
def training(monkeypatch):
    monkeypatch.setattr(autograd, "training", True)


class Tasks(module.Module):
    def __init__(self):
        super().__init__()
        self.body, self.a, self.b = parameter(1.0, (2, 2)), parameter(1.0), parameter(1.0)
        self.optimizer = opt.SGD(0.1)

    def forward(self, x, task="a"):
        return x @ self.body @ (self.a if task == "a" else self.b)

    def train_one_batch(self, x, task):
        loss = self.forward(x, task).square().mean() * 0.01
        (self.optimizer.accumulate if task == "a" else self.optimizer)(loss)
        return loss


@MODES
def test_sums_of_what_has_no_gradient_after_loading_are_part_of_the_update(use_graph, tmp_path):
    net = compiled(Tasks, use_graph)
    for task in "ababa":
        net(X, task)
    net.save(tmp_path / "n", state={"o": net.optimizer})
    other = compiled(Tasks, use_graph)
    other.load(tmp_path / "n", state={"o": other.optimizer})
    for task in "bab":
        net(X, task), other(X, task)
        for name, one in net.get_params().items():
            assert one.to_numpy().tobytes() == other.get_params()[name].to_numpy().tobytes(), name


class Decaying(Tasks):
    """Updates by AdamW, of which a group has a head."""

    def __init__(self):
        super().__init__()
        self.optimizer = opt.AdamW(0.1, weight_decay=0.1, clip_norm=1.0)
        self.optimizer.group("a", lr=0.01)
        self.ema = opt.MovingAverage(0.9)

    def stepped(self, task):
        """Whether a step moves the head a: of a task, of a loss that is infinite, or none, before
        which the head is frozen."""
        before = self.a.to_numpy()
        if task == "f":
            self.a.requires_grad = False
        else:
            self(np.full_like(X, np.inf) if task == "i" else X, "b" if task == "b" else "a")
            self.ema.update(self.get_params())
        return bool((self.a.to_numpy() != before).any())

    def bits(self):
        found = {**self.get_params(), **{f"ema {k}": v for k, v in self.ema.averages.items()}}
        found |= {f"m {k}": v for k, v in self.optimizer.get_states()["m"].items()}
        return {name: one.to_numpy().tobytes() for name, one in found.items()}


@pytest.mark.parametrize("amp", [None, "float16"])
def test_what_has_no_gradient_is_updated_by_what_was_added_alone(amp, tmp_path):
    tasks = "abb" * 4 + ("ibb" if amp else "aab") + "afbbb"
    moves = "010" * 4 + ("000" if amp else "001") + "00100"
    ends = []
    for use_graph, cut in [(False, 0), (True, 0), (True, 5), (True, 7), (False, 17), (True, 17)]:
        net = Decaying()
        net.compile([X], use_graph=use_graph, amp=amp)
        found = []
        for number, task in enumerate(tasks):
            if number == cut > 0:
                net.save(tmp_path / "n", state={"o": net.optimizer, "e": net.ema})
                net, is_trained = Decaying(), net.a.requires_grad
                net.compile([X], use_graph=use_graph, amp=amp)
                net.load(tmp_path / "n", state={"o": net.optimizer, "e": net.ema})
                net.a.requires_grad = is_trained
            found.append(net.stepped(task))
        assert "".join(str(int(one)) for one in found) == moves, (use_graph, cut)
        ends.append(net.bits())
    assert all(one == ends[0] for one in ends)


def test_sums_of_unknown_parameters_are_not_left_out(training):
    net, other = compiled(Tasks, False), compiled(Tasks, False)
    net(X, "a")
    other.optimizer.set_states(net.optimizer.get_states())
    before = other.body.to_numpy()
    with pytest.raises(ValueError, match="'accumulated' waits for a, which has no gradient"):
        other(X, "b")
    assert other.body.to_numpy().tobytes() == before.tobytes()
    other.optimizer.accumulate(other.forward(tensor.from_numpy(X)).sum() * 0)
    other(X, "b")
    assert not (other.a.to_numpy() == 1).any()


def test_sums_of_what_is_not_trained_are_refused(training):
    w = Tensor(data=np.ones(2, np.float32)).requires_grad_()
    with pytest.raises(ValueError, match="only of tensors whose requires_grad_"):
        opt.SGD(0.1).accumulate((w * w).sum())


def test_a_step_after_sums_alone_says_that_nothing_is_updated(training, monkeypatch):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    w = parameter(1.0)
    optimizer = opt.SGD(0.1)
    for _ in "ab":
        optimizer.accumulate((w * w).sum())
    with pytest.warns(
        UserWarning, match=r"SGD\.step: no parameter .*accumulate.*optimizer\(loss\)"
    ):
        optimizer.step()


def test_a_step_after_an_update_by_sums_says_nothing(training, monkeypatch, recwarn):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    w = parameter(1.0)
    optimizer = opt.SGD(0.1)
    optimizer.accumulate((w * w).sum())
    optimizer.call((w * w).sum())
    optimizer.step()
    assert not recwarn.list
