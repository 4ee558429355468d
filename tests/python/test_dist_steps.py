"""Recorded steps of several ranks: the exchanges in them, and ranks whose steps differ."""

import dist_models
import numpy as np
import pytest
from recorded import replays
from singa_rs import autograd, device, dist, layer, opt, tensor
from singa_rs.errors import GraphError
from singa_rs.module import Module

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0


def vector(*values):
    return tensor.from_numpy(np.array(values, np.float32))


class Net(dist_models.MLP):
    """A net in which a rank may do something else than the others."""

    def forward(self, x):
        h = self.first(x)
        h = autograd.tanh(h) if dist.rank() == self.given.get("other") else self.relu(h)
        return self.second(h)


def _train(other, rows, ignores):
    """The losses until an error, and the error."""
    device.get_default_device().set_seed(1)
    if ignores:
        dist.ignore_steps()
    model = Net(other=other)
    model.optimizer, model.given = opt.DistOpt(opt.SGD(0.1)), {"other": other}
    losses = []
    for step, (x, y) in enumerate(dist_models.batches(12)):
        count = rows[dist.rank()] if step > 5 else 4
        x, y = tensor.from_numpy(x[:count]), tensor.from_numpy(y[:count])
        if step == 0:
            model.compile([x], is_train=True, use_graph=True)
        try:
            losses.append(model(x, y).item())
        except dist.DistError as error:
            return losses, str(error)
    return losses, replays(model)


def trained(n, other=None, rows=(4, 4, 4), ignores=False):
    return dist.spawn(_train, n, (other, rows, ignores), timeout=TIMEOUT)


def test_a_rank_with_another_step_is_named_with_its_operation():
    relu, tanh = (f"a recorded step whose operation 2 is {name} (" for name in ("relu", "tanh"))
    (none, first), (_, second), (_, third) = trained(3, other=1)
    assert none == []
    assert f"rank 1 came with {tanh}" in first and f"this one with {relu}" in first
    assert f"rank 0 came with {relu}" in second and f"this one with {tanh}" in second
    assert f"rank 0 failed: it came with {relu}" in third and f"rank 1 with {tanh}" in third
    assert "test_dist_steps.py:" in first


@pytest.mark.parametrize("given", [{"rows": (4, 3)}, {"other": 1, "ignores": True}])
def test_ranks_may_have_other_batches_or_agree_to_differ(given):
    for losses, runs in trained(2, **given):
        assert len(losses) == 12
        assert runs > 2


# ---- exchanges in flight -------------------------------------------------------------------------


class Two(Module):
    """A step that begins two exchanges of the same tensor, and waits for the second alone."""

    def __init__(self, drops):
        self.drops = drops

    def forward(self, x):
        first = dist.all_reduce(x * 2.0, async_op=True)
        if self.drops:
            first = None
        second = dist.all_reduce(x * 3.0, async_op=True)
        total = second.wait()
        return total if first is None else total + first.wait()


def _two(drops):
    model, found = Two(drops), []
    model.compile([vector(0, 0)], is_train=False, use_graph=True)
    model.eval()
    for step in range(6):
        found.append(model(vector(step, dist.rank())).to_numpy().tolist())
    return found, replays(model, "forward")


@pytest.mark.parametrize(("drops", "factor"), [(True, 3), (False, 5)])
def test_what_is_not_waited_for_is_nobody_elses(drops, factor):
    for found, runs in dist.spawn(_two, 2, (drops,), timeout=TIMEOUT):
        assert found == [[2 * factor * step, factor] for step in range(6)]
        assert runs >= 3


def _dropped():
    """Exchanges of one tensor: the first is never waited for."""
    t = vector(1 + dist.rank())
    dist.all_reduce(t, async_op=True)
    other = vector(10 + dist.rank())
    return dist.all_reduce(other).item(), dist.all_reduce(t).item()


def test_what_is_dropped_does_not_come_back():
    assert dist.spawn(_dropped, 2, timeout=TIMEOUT) == [(21, 3)] * 2


class Half(Module):
    """A step that only begins, or only ends, an exchange."""

    def __init__(self, work=None):
        self.works = [work]

    def forward(self, x):
        if self.works[0] is not None:
            return x + self.works[0].wait()
        self.works = [dist.all_reduce(x * 1.0, async_op=True)]
        return x * 2.0


def _half(ends):
    t = vector(dist.rank())
    model = Half(dist.all_reduce(t, async_op=True) if ends else None)
    with pytest.raises(ValueError, match="only the start or the end is in a recorded step"):
        model.compile([vector(0)], is_train=False, use_graph=True)
        model.eval()
        model(vector(1))
        model.works[0].wait()
    # What was refused in the step can still be waited for outside of it.
    if ends:
        assert model.works[0].wait().item() == 1.0
    dist.barrier()
    return True


@pytest.mark.parametrize("ends", [False, True])
def test_an_exchange_is_in_a_step_as_a_whole(ends):
    assert dist.spawn(_half, 2, (ends,), timeout=TIMEOUT) == [True, True]


def _refused_at_first():
    work = dist.all_reduce(vector(dist.rank()), async_op=True)
    with (
        pytest.raises(ValueError, match="only the start or the end"),
        device.get_default_device().record(),
    ):
        work.wait()
    found = work.wait().item()
    with pytest.raises(dist.DistError, match="this all_reduce was waited for before"):
        work.wait()
    return found


def test_what_could_not_be_waited_for_still_can():
    assert dist.spawn(_refused_at_first, 2, timeout=TIMEOUT) == [1, 1]


class Reducing(Module):
    def __init__(self):
        self.dense = layer.Linear(2)

    def forward(self, x):
        return dist.all_reduce(self.dense(x))


def _profile():
    device.get_default_device().set_seed(1)
    x, model = tensor.ones((3, 4)), Reducing()
    model.compile([x], is_train=False, use_graph=True)
    model.eval()
    before = [model(x).to_numpy() for _ in range(4)][-1]
    if dist.rank() == 0:
        measured = model.graphs[0].profile(3)
        assert all(one.seconds == 0 for one in measured if "exchange" in one.name)
        assert sum(one.seconds for one in measured) > 0
    return np.array_equal(model(x).to_numpy(), before)


def test_one_rank_can_profile_a_step_alone():
    assert dist.spawn(_profile, 2, timeout=TIMEOUT) == [True, True]


# ---- exchanges in place, and the tape ------------------------------------------------------------


class Averaging(Module):
    """A step that averages its loss in place, before or after the update, or something else."""

    def __init__(self, what):
        self.dense, self.what = layer.Linear(3), what

    def forward(self, x):
        return self.dense(x)

    def train_one_batch(self, x):
        h = self.forward(x)
        if self.what == "middle":
            dist.broadcast(h)
        loss = autograd.reduce_mean(h * h)
        if self.what == "before":
            with autograd.no_grad():
                dist.all_reduce(loss, "mean")
        elif self.what == "differentiable":
            loss = dist.functional.all_reduce(loss)
        self.optimizer(loss)
        if self.what == "after":
            dist.all_reduce(loss, "mean")
        elif self.what == "copy":
            return dist.all_reduce(loss.clone() * 1.0, "mean")
        return loss


def _averaged(what, graph):
    """The error, or whether the parameters change and the losses of 6 steps."""
    dist.set_seed(0)
    x, model = tensor.ones((2, 4)) * float(1 + dist.rank()), Averaging(what)
    model.optimizer = opt.DistOpt(opt.SGD(0.01))
    model.compile([x], is_train=True, use_graph=graph)
    before = model.dense.W.to_numpy()
    try:
        losses = [model(x).item() for _ in range(6)]
    except GraphError as error:
        return str(error)
    return losses, not np.array_equal(before, model.dense.W.to_numpy())


def _averaged_all(what):
    return [_averaged(what, graph) for graph in (False, True)]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    ("what", "want"),
    [
        ("middle", "broadcast: got a tensor of shape (2, 3) that backward has yet to go through"),
        ("before", "want dist.functional.all_reduce(x), which is differentiable, or t.detach()"),
    ],
)
def test_an_exchange_in_place_does_not_cut_a_gradient_off(what, want, ranks):
    for found in dist.spawn(_averaged_all, ranks, (what,), timeout=TIMEOUT):
        assert all(want in error for error in found), found


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("what", ["after", "copy", "differentiable"])
def test_what_backward_has_been_through_is_exchanged_in_place(what, ranks):
    found = dist.spawn(_averaged_all, ranks, (what,), timeout=TIMEOUT)
    assert all(eager == graph == found[0][0] and eager[1] for eager, graph in found)
