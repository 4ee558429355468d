"""Updates that are divided among processes: what becomes of them, and what is refused."""

import dist_models
import dist_programs as programs
import numpy as np
import pytest
from singa_rs import _core, autograd, device, dist, layer, opt, tensor
from singa_rs.module import Module
from singa_rs.opt.distributed.layout import Layout

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0


def test_a_layout_has_each_element_in_one_share():
    shapes = [(3, 2), (), (0, 4), (7,)]
    parts = [np.arange(np.prod(shape, dtype=int)).reshape(shape) for shape in shapes]
    for ranks in (1, 2, 3, 5, 20):
        layout, found = Layout(shapes, ranks), [[] for _ in shapes]
        for rank in range(ranks):
            pieces = list(layout.pieces(rank))
            assert [piece.index for piece in pieces] == [0, 1, 2, 3]
            for piece in pieces:
                assert piece.at + piece.count <= layout.share
                found[piece.index] += range(piece.start, piece.start + piece.count)
        assert found == [part.reshape(-1).tolist() for part in parts]


def test_what_shares_cannot_be_updated_by():
    for inner in (opt.LAMB(), opt.Muon()):
        with pytest.raises(ValueError, match="with shard=1, whose updates need whole gradients"):
            opt.DistOpt(inner, shard=True)(None)
    one = opt.DistOpt(opt.SGD(), shard=2)
    for call in (
        one.backward_and_update_half,
        one.backward_and_partial_update,
        one.backward_and_sparse_update,
        one.backward_and_low_rank_update,
    ):
        with pytest.raises(ValueError, match=f"{call.__name__}: got shard=2, want backward_and_up"):
            call(None)


def test_wrong_stages():
    for shard, error, text in (
        (4, ValueError, "got shard=4, want 0, 1, 2 or 3"),
        (-1, ValueError, "got shard=-1, want 0, 1, 2 or 3"),
        ("1", TypeError, "DistOpt: shard"),
    ):
        with pytest.raises(error, match=text):
            opt.DistOpt(opt.SGD(), shard=shard)
    assert opt.DistOpt(opt.SGD(), shard=True).shard == 1


# ---- memory --------------------------------------------------------------------------------------


def test_shares_are_a_part_of_the_moments():
    found = dist.spawn(programs.moments, 2, (1,), timeout=TIMEOUT)
    (alone,) = programs.moments(0)[:1]
    assert all(moments <= alone // 2 + 8 for moments, _ in found)


def test_sums_are_divided_in_stage_2_alone():
    for stage, share in ((1, 1), (2, 2)):
        for _, sums in dist.spawn(programs.moments, 2, (stage,), timeout=TIMEOUT):
            assert sums <= 200 // share + 8


# ---- states --------------------------------------------------------------------------------------


def _compiled(shard):
    """A model whose optimizer is divided, and a batch."""
    device.get_default_device().set_seed(1)
    model = dist_models.MLP()
    model.optimizer = opt.DistOpt(opt.Adam(0.01), shard=shard)
    (x, y), *_ = dist_models.batches(1)
    x, y = tensor.from_numpy(x), tensor.from_numpy(y)
    model.compile([x], is_train=True, use_graph=True)
    return model, x, y


def _states(shard):
    """States after steps, of which some gradients have added up, and what refuses them."""
    model, x, y = _compiled(shard)
    for _ in range(4):
        model(x, y)
    states = model.optimizer.get_states()
    wrong = {**states, "m": {**states["m"], "first.W": np.zeros((2, 2), np.float32)}}
    with pytest.raises(ValueError, match=r"got shape \(2, 2\) for 'first.W', want \(16, 16\)"):
        model.optimizer.set_states(wrong)
    again = model.optimizer.get_named_states("adam")
    model.optimizer.set_named_states(again, "adam")
    arrays = {name: one.to_numpy() for name, one in again.items()}
    last = model(x, y).item()
    model.optimizer.set_named_states(arrays, "adam")
    return arrays, last, int(model.optimizer.get_states()["step_counter"])


def test_states_are_those_of_one_process():
    (want, last, count), one = _states(0), dist.spawn(_states, 2, (1,), timeout=TIMEOUT)
    for found, other, steps in one:
        assert found.keys() == want.keys() and (steps, count) == (4, 4)
        for name, value in found.items():
            np.testing.assert_allclose(value, want[name], rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(other, last, rtol=1e-5)


def _begun_again(shard):
    """Losses of some steps, and of the same ones after the first states were loaded."""
    model, x, y = _compiled(shard)
    params = {name: one.to_numpy() for name, one in model.get_params().items()}
    states, runs = model.optimizer.get_states(), []
    for _ in range(2):
        runs.append([model(x, y).item() for _ in range(4)])
        model.set_params(params)
        model.optimizer.set_states(states)
    return runs


def test_moments_of_shares_start_afresh():
    for shard in (1, 2):
        for first, second in dist.spawn(_begun_again, 2, (shard,), timeout=TIMEOUT):
            assert first == second


def _saved_step(path):
    """Rank 0 alone saves a step, which waits for nobody."""
    model = dist_models.MLP()
    model.optimizer = opt.DistOpt(opt.SGD(0.1), shard=1)
    assert model.optimizer.gathers_states
    (x, y), *_ = dist_models.batches(1)
    x, y = tensor.from_numpy(x), tensor.from_numpy(y)
    model.compile([x], is_train=True, use_graph=True)
    model(x, y)
    if dist.rank() == 0:
        with pytest.raises(_core.GraphError, match="exchanges with other processes"):
            model.save_step(path, x, y)
    dist.barrier()
    return model(x, y).item()


def test_steps_that_exchange_are_not_saved(tmp_path):
    first, second = dist.spawn(_saved_step, 2, (str(tmp_path / "step"),), timeout=TIMEOUT)
    assert first == second
    assert not opt.DistOpt(opt.SGD(), shard=1).gathers_states


def _other_gradients():
    """Messages of steps that have other gradients than those before."""
    device.get_default_device().set_seed(1)
    one = opt.DistOpt(opt.SGD(0.1), shard=1)
    a, b = (tensor.Tensor(data=np.ones(3, np.float32), requires_grad=True, stores_grad=True)
            for _ in range(2))  # fmt: skip
    a.name, b.name = "a", "b"
    with autograd._training_scope(True):
        one(autograd.reduce_sum(a * a))
        with pytest.raises(ValueError, match="got b in bucket 0, want a as in earlier steps"):
            one(autograd.reduce_sum(b * b))
    return a.to_numpy()


def test_steps_with_other_gradients_are_refused():
    first, second = dist.spawn(_other_gradients, 2, timeout=TIMEOUT)
    np.testing.assert_allclose(first, np.full(3, 0.8), rtol=1e-6)
    np.testing.assert_array_equal(first, second)


# ---- groups, and the loss scale ------------------------------------------------------------------


def _trained(shard, kind):
    """Losses and parameters with groups, or some parameters."""
    device.get_default_device().set_seed(1)
    model = dist_models.MLP()
    chosen = {"params": "first"} if kind == "params" else {}
    inner = opt.Adam(0.01, **chosen)
    if kind == "groups":
        inner.group("*.b", lr=0.1)
        inner.group("second", lr=0.001, weight_decay=0.1)
    model.optimizer = opt.DistOpt(inner, shard=shard)
    losses, rank, size = [], dist.rank(), dist.size()
    for number, (x, y) in enumerate(dist_models.batches(8)):
        x, y = (
            tensor.from_numpy(part[rank * 8 // size : (rank + 1) * 8 // size]) for part in (x, y)
        )
        if number == 0:
            model.compile([x], is_train=True, use_graph=True)
        losses.append(dist.all_reduce(model(x, y).clone().detach(), "mean").item())
    params = {name: one.to_numpy() for name, one in model.get_params().items()}
    return losses, params, int(inner.step_counter.item())


@pytest.mark.parametrize("kind", ["groups", "params"])
def test_divided_updates_are_whole_ones(kind):
    want = dist.spawn(_trained, 2, (0, kind), timeout=TIMEOUT)
    found = dist.spawn(_trained, 2, (1, kind), timeout=TIMEOUT)
    assert [steps for *_, steps in found] == [steps for *_, steps in want]
    for (losses, params, _), (others, wanted, _) in zip(found, want, strict=True):
        np.testing.assert_array_equal(losses, others)
        for name, value in params.items():
            np.testing.assert_array_equal(value, wanted[name])


class Halves(Module):
    """Two layers that know nothing of each other: each is one rank's share of the parameters."""

    def __init__(self):
        self.one, self.other = (layer.Linear(8, bias=False) for _ in range(2))

    def forward(self, x):
        return autograd.reduce_mean(self.one(x[:, :8]) ** 2.0 + self.other(x[:, 8:]) ** 2.0)

    def train_one_batch(self, x):
        loss = self.forward(x)
        self.optimizer(loss)
        return loss


def _scaled(shard):
    """Parameters after steps of which one has gradients that are finite in one layer alone."""
    device.get_default_device().set_seed(1)
    model, draw = Halves(), np.random.default_rng(dist.rank())
    model.optimizer = opt.DistOpt(opt.Adam(0.01), shard=shard)
    for number in range(6):
        x = draw.normal(size=(4, 16)).astype(np.float32)
        x[0, 8] = np.inf if number == 3 else 1
        x = tensor.from_numpy(x)
        if number == 0:
            model.compile([x], is_train=True, use_graph=True, amp="float16")
        model(x)
    params = [one.to_numpy() for one in model.get_params().values()]
    return params, model.optimizer.get_states()["step_counter"]


def test_all_ranks_skip_what_is_not_finite_on_one():
    want, found = (dist.spawn(_scaled, 2, (shard,), timeout=TIMEOUT) for shard in (0, 1))
    for (params, steps), (others, _) in zip(found, want, strict=True):
        assert steps == 5
        np.testing.assert_array_equal(params, others)
        assert np.isfinite(params).all()


class _Failing(opt.SGD):
    """Raises once, in the update of the second bucket or in `step`."""

    left, fails_late = 99, False

    def apply(self, name, param, grad):
        self.left -= 1
        if self.left == 0:
            raise KeyError("apply")
        super().apply(name, param, grad)

    def step(self):
        if self.fails_late:
            raise KeyError("step")
        super().step()


def _failed(shard, is_late):
    """Parameters and sums before and after an update that raises."""
    params = [tensor.Tensor(data=np.ones(4, np.float32), requires_grad=True) for _ in "ab"]
    for param, name in zip(params, "ab", strict=True):
        param.stores_grad, param.name = True, name
    optimizer = opt.DistOpt(_Failing(0.5), shard=shard)

    def called(method):
        with autograd._training_scope(True):
            method(sum((one * one).sum() for one in params), threshold=3)

    def shown():
        sums = optimizer.get_states()["accumulated"]
        return [(one.to_numpy()[0], sums[one.name].to_numpy()[0]) for one in params]

    called(optimizer.accumulate)
    found = [shown()]
    optimizer.opt.left, optimizer.opt.fails_late = 99 if is_late else 2, is_late
    with pytest.raises(KeyError, match="step" if is_late else "apply"):
        called(optimizer.backward_and_update)
    return [*found, shown()]


@pytest.mark.parametrize("shard", [0, 1, 2, 3])
@pytest.mark.parametrize("is_late", [False, True])
def test_sums_are_kept_until_their_update_has_taken_place(shard, is_late):
    for before, after in dist.spawn(_failed, 2, (shard, is_late), timeout=60.0):
        assert before == [(1.0, 2.0), (1.0, 2.0)]
        updated = [one == (-1.0, 0.0) for one in after]
        assert sorted(updated) == ([True, True] if is_late else [False, shard == 0])
        assert all(one in ((-1.0, 0.0), (1.0, 2.0)) for one in after)


def _tasks(shard):
    """A head after each step: of a loss that adds up its gradient, in every other one, and of one
    that does not reach it, by which all are updated."""
    body, head, other = (tensor.Tensor(data=np.ones(3), requires_grad=True) for _ in "abc")
    for one, name in zip((body, head, other), "abc", strict=True):
        one.stores_grad, one.name = True, name
    optimizer, found = opt.DistOpt(opt.AdamW(0.1, weight_decay=0.1), shard=shard), []
    for number in range(6):
        with autograd._training_scope(True):
            factor = number + 1.0 + dist.rank()
            optimizer.accumulate((body * head).sum() * (0 if number % 2 else factor))
            optimizer((body * other).sum() * factor)
        found.append([one.to_numpy().tolist() for one in (body, head, other)])
    return found


def test_shares_of_what_has_no_gradient_are_updated_by_what_was_added_alone():
    want, found = (dist.spawn(_tasks, 2, (shard,), timeout=TIMEOUT)[0] for shard in (0, 1))
    np.testing.assert_allclose(found, want, rtol=1e-6)
    for before, after in zip(want[::2], want[1::2], strict=True):
        assert before[1] == after[1] and before[0] != after[0]


class _Frozen(dist_models.MLP):
    """Adds up, or updates by, the loss of a batch."""

    def train_one_batch(self, x, y, is_part):
        loss = autograd.mse_loss(self.forward(x), y)
        (self.optimizer.accumulate if is_part else self.optimizer)(loss)
        return loss


def _with_sums_waiting(shard, use_graph, names):
    """Parameters after updates by sums of parameters that have been frozen meanwhile."""
    device.get_default_device().set_seed(1)
    model = _Frozen()
    model.optimizer = opt.DistOpt(opt.Adam(0.01), shard=shard)
    x = tensor.from_numpy(np.random.default_rng(dist.rank()).normal(size=(4, 3)).astype("f"))
    model.compile([x], is_train=True, use_graph=use_graph)
    y = tensor.zeros(model.forward(x).shape)
    for is_part in (True, False, True, False, True):
        model(x, y, is_part)
    for name in names:
        model.get_params()[name].requires_grad = False
    for is_part in (False, False, True, False):
        model(x, y, is_part)
    return [one.to_numpy() for one in model.get_params().values()]


@pytest.mark.parametrize("names", [["first.b"], ["first.W", "first.b"], ["second.W", "second.b"]])
def test_sums_of_what_has_been_frozen_keep_their_place_in_shares(names):
    runs = [(0, False), (1, False), (1, True)]
    want, eager, graph = (
        dist.spawn(_with_sums_waiting, 2, (*run, names), timeout=TIMEOUT) for run in runs
    )
    for whole, first, second, other in zip(want[0], *eager, graph[0], strict=True):
        np.testing.assert_allclose(first, whole, rtol=1e-6, atol=1e-7)
        assert first.tobytes() == second.tobytes() == other.tobytes()
