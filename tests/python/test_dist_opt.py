"""Training by several processes against training by one."""

import subprocess
import sys

import dist_models
import dist_programs as programs
import numpy as np
import pytest
from singa_rs import autograd, dist, layer, opt, tensor
from singa_rs.dist import group, measured
from singa_rs.dist.meeting import NcclIdHolder
from singa_rs.module import Module
from singa_rs.opt.distributed.warm_up import density

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0
#: Gradients of the small models in several buckets.
SMALL = 60


def train(n, model="MLP", graph=True, **given):
    """Losses of all processes, and the parameters of each."""
    found = dist.spawn(_train, n, (model, graph, given), timeout=TIMEOUT)
    for losses, _, runs in found:
        np.testing.assert_array_equal(losses, found[0][0])
        assert runs > dist_models.STEPS // 2 or not graph
    return found[0][0], [params for _, params, _ in found]


def _train(model, graph, given):
    return dist_models.train(model, graph, **given)


def alone(model="MLP", **given):
    losses, params, _ = dist_models.train(model, False, **given)
    return losses, params


def assert_equal(ranks):
    """All ranks have the same parameters, to the bit."""
    for params in ranks[1:]:
        for name, value in params.items():
            np.testing.assert_array_equal(value, ranks[0][name])


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("model", ["MLP", "CNN"])
def test_losses_are_those_of_one_process(model, n):
    want, params = alone(model)
    eager, _ = train(n, model, graph=False)
    losses, ranks = train(n, model)
    np.testing.assert_allclose(losses, want, rtol=1e-5)
    np.testing.assert_array_equal(losses, eager)
    assert_equal(ranks)
    for name, value in ranks[0].items():
        np.testing.assert_allclose(value, params[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "given",
    [
        {"train": "threshold", "threshold": SMALL},
        {"train": "threshold", "threshold": 1},
        {"name": "Adam"},
        {"options": {"clip_norm": 0.5}},
        {"options": {"clip_value": 0.01}},
        {"shard": True},
        {"shard": 2, "name": "Adam", "train": "threshold", "threshold": SMALL},
        {"shard": 1, "model": "CNN", "name": "Adam", "options": {"clip_norm": 0.5}},
    ],
    ids=str,
)
def test_options_agree_with_one_process(given):
    want, _ = alone(**given)
    losses, ranks = train(2, **given)
    np.testing.assert_allclose(losses, want, rtol=1e-5)
    assert_equal(ranks)


def _bucketed(size, given):
    group.current().bucket = size
    losses, params, _ = dist_models.train("MLP", True, **given)
    return losses, params


@pytest.mark.parametrize(
    "given",
    [
        {"name": "Adam"},
        {"train": "half"},
        {"options": {"clip_norm": 0.1}},
        {"shard": 2, "options": {"clip_norm": 0.1}},
        {"train": "sparse", "spars": 0.1, "topK": True},
    ],
    ids=str,
)
def test_bits_do_not_depend_on_what_was_measured(given):
    found = [dist.spawn(_bucketed, 2, (size, given), timeout=TIMEOUT)[0] for size in (1, 100)]
    (losses, params), (others, wanted) = found
    np.testing.assert_array_equal(losses, others)
    assert_equal([params, wanted])


def test_buckets_are_as_large_as_latency_asks():
    assert measured.chosen(0, 1e-9) == measured.LEAST
    assert measured.chosen(1e-3, 1e-9) == measured.MOST
    assert measured.chosen(1e-4, 1e-9) == 2**19
    assert measured.chosen(1e-4, 0) == measured.MOST
    assert dist.bucket_size() == measured.DEFAULT
    first, second = dist.spawn(dist.bucket_size, 2, timeout=TIMEOUT)
    assert first == second and measured.LEAST <= first <= measured.MOST


def test_accumulated_gradients_agree_with_one_process():
    want, _ = alone(accumulate=True)
    found = dist.spawn(_train, 2, ("MLP", False, {"accumulate": True}), timeout=TIMEOUT)
    np.testing.assert_allclose(found[0][0], want, rtol=1e-5)
    assert_equal([params for _, params, _ in found])


@pytest.mark.parametrize(
    ("compress", "given"),
    [
        ("bfloat16", {"train": "half", "wire": "bfloat16"}),
        ("sparse", {"train": "sparse"}),
        ("low_rank", {"train": "low_rank"}),
    ],
)
def test_a_call_exchanges_what_compress_says(compress, given):
    want, params = train(2, **given)
    losses, others = train(2, compress=compress)
    np.testing.assert_array_equal(losses, want)
    assert_equal([params[0], others[0]])


@pytest.mark.parametrize("wire", ["float16", "bfloat16"])
def test_half(wire):
    want, _ = alone()
    losses, ranks = train(2, train="half", wire=wire, threshold=SMALL)
    np.testing.assert_allclose(losses, want, rtol=1e-2 if wire == "float16" else 5e-2)
    assert not np.array_equal(losses, want)
    assert_equal(ranks)


def test_half_clips_what_each_rank_gives():
    given = {"train": "half", "clipping": True, "clip_Value": 0.001}
    losses, ranks = train(2, **given)
    unclipped, _ = train(2, train="half")
    assert losses[-1] > unclipped[-1]
    assert_equal(ranks)


class Mean(Module):
    """A net whose gradients are four times the rank's input, in all elements."""

    def __init__(self, clipping):
        self.dense, self.clipping = layer.Linear(2, bias=False), clipping

    def forward(self, x):
        return self.dense(x)

    def train_one_batch(self, x):
        loss = autograd.mean(self.forward(x)).reshape((1,))
        self.optimizer.backward_and_update_half(loss, clipping=self.clipping)
        return loss


def _overflown(clipping, graph, ranks):
    """Whether a step is taken, and the factor after it; gradients of some ranks overflow."""
    value = 8.0 if dist.rank() in ranks else 2.0**-10
    x = tensor.from_numpy(np.full((4, 3), value, np.float32))
    dist.set_seed(0)
    net = Mean(clipping)
    net.optimizer = opt.DistOpt(opt.SGD(0.1))
    net.compile([x], amp="float16", use_graph=graph)
    net.loss_scale.factor.set_value(2.0**16)
    before = net.dense.W.to_numpy().copy()
    net(x)
    return not np.array_equal(net.dense.W.to_numpy(), before), net.loss_scale.factor.item()


@pytest.mark.parametrize(("clipping", "graph"), [(False, False), (True, False), (True, True)])
def test_clipping_hides_no_overflow(clipping, graph):
    """That of one rank is one of all."""
    for ranks, want in (([0, 1], (False, 2.0**15)), ([1], (False, 2.0**15)), ([], (True, 2.0**16))):
        found = dist.spawn(_overflown, 2, (clipping, graph, ranks), timeout=TIMEOUT)
        assert found == [want, want]


@pytest.mark.parametrize(
    "given",
    [
        {"spars": 0.1, "topK": True},
        {"spars": 0.02, "topK": False},
        {"spars": 0.1, "topK": True, "threshold": SMALL},
    ],
    ids=str,
)
def test_sparse_learns_as_dense_does(given):
    want, _ = alone(name="Adam")
    losses, ranks = train(2, train="sparse", name="Adam", **given)
    assert np.mean(losses[-10:]) < 1.5 * np.mean(want[-10:])
    assert_equal(ranks)


def test_sparse_of_all_elements_is_dense():
    want, _ = train(2)
    losses, _ = train(2, train="sparse", spars=1.0, topK=True)
    np.testing.assert_allclose(losses, want, rtol=1e-5)
    losses, _ = train(2, train="sparse", spars=0.0, corr=False)
    np.testing.assert_array_equal(losses, want)


def test_momentum_is_corrected():
    """With everything chosen, there is no momentum from step to step: it is masked."""
    plain, _ = train(2, options={"momentum": 0})
    losses, _ = train(
        2, train="sparse", spars=1.0, topK=True, momentum=0.9, options={"momentum": 0}
    )
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    given = {"train": "sparse", "spars": 0.1, "topK": True, "options": {"momentum": 0}}
    without, _ = train(2, **given)
    corrected, _ = train(2, momentum=0.9, **given)
    assert np.mean(corrected[-10:]) < np.mean(without[-10:])


def test_partial_updates_average_parameters_in_turn():
    losses, ranks = train(2, graph=False, train="partial", threshold=SMALL)
    recorded, others = train(2, train="partial", threshold=SMALL)
    np.testing.assert_array_equal(recorded, losses)
    for params, same in zip(ranks, others, strict=True):
        assert_equal([params, same])
    assert losses[-10:].mean() < losses[:10].mean()
    same = [np.array_equal(value, ranks[1][name]) for name, value in ranks[0].items()]
    assert not all(same)
    _, (first, second) = train(2, graph=False, train="partial", threshold=10**6)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])


def test_parts_of_steps():
    found = dist.spawn(programs.singa, 2, timeout=TIMEOUT)
    own = [[programs.values(np.float32, (6,), rank)] for rank in range(2)]
    total = own[0][0] + own[1][0]
    sent = [np.where(np.abs(x) < 8, 0, x) for (x,) in own]
    for (x, y, z, u, v, rest, param), (mine,), given in zip(found, own, sent, strict=True):
        for made in (x, z, u):
            np.testing.assert_array_equal(made, total)
        np.testing.assert_allclose(y, total, rtol=2e-2, atol=0.05)
        np.testing.assert_array_equal(v, sent[0] + sent[1])
        np.testing.assert_array_equal(rest, mine - given)
        np.testing.assert_allclose(param, 1 - 0.5 * total / 2, rtol=1e-6)


#: As SINGA's programs: the processes are forked, and meet by a token.
PROGRAM = """
import multiprocessing
from singa_rs.compat.singa import opt, singa_wrap as singa, tensor

def run(token, rank, size, answers):
    distopt = opt.DistOpt(opt.SGD(0.1), nccl_id=token, local_rank=rank, world_size=size)
    reducer = tensor.ones((1,))
    distopt.all_reduce(reducer.data)
    distopt.wait()
    answers.put((distopt.global_rank, reducer.to_numpy().tolist()))

if __name__ == "__main__":
    assert singa.USE_DIST
    context = multiprocessing.get_context("fork")
    token, answers = singa.NcclIdHolder(), context.SimpleQueue()
    ranks = [context.Process(target=run, args=(token, i, 3, answers)) for i in range(3)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert not any(rank.exitcode for rank in ranks)
    print(sorted(answers.get() for _ in ranks))
"""


def test_forked_processes_meet_by_a_token():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "[(0, [3.0]), (1, [3.0]), (2, [3.0])]", done.stderr


def test_density():
    assert [density(stage, 0.001) for stage in range(3)] == [0.25, 0.0625, 0.015625]
    assert density(9, 0.001) == 0.001


def test_wrong_arguments():
    with pytest.raises(TypeError, match="DistOpt: got int for opt, want an Optimizer"):
        opt.DistOpt(3)
    with pytest.raises(TypeError, match="local_rank or world_size without nccl_id"):
        opt.DistOpt(opt.SGD(), world_size=2)
    with pytest.raises(TypeError, match="got nccl_id str, want a NcclIdHolder"):
        opt.DistOpt(opt.SGD(), "id", 0, 1)
    with pytest.raises(ValueError, match="DistOpt: buffSize: got 0, want at least 1"):
        opt.DistOpt(opt.SGD(), buffSize=0)
    one = opt.DistOpt(opt.SGD(0.1))
    for given in ({"spars": -1}, {"spars": 0, "topK": True}, {"momentum": 1}):
        with pytest.raises(ValueError, match="backward_and_sparse_update: got"):
            one.backward_and_sparse_update(None, **given)
    with pytest.raises(ValueError, match="momentum 0.5 with corr=False"):
        one.backward_and_sparse_update(None, momentum=0.5, corr=False)
    for form, shard, text in (("zip", 0, "compress='zip'"), ("sparse", 1, "with shard=1")):
        with pytest.raises(ValueError, match=f"DistOpt: got .*{text}"):
            opt.DistOpt(opt.SGD(), compress=form, shard=shard)
    with pytest.raises(TypeError, match="DistOpt: got compress=1, want a str or None"):
        opt.DistOpt(opt.SGD(), compress=1)
    with pytest.raises(TypeError, match="got int for communicator, want a Communicator"):
        opt.DistOpt(opt.SGD(), communicator=1)
    assert opt.DistOpt(opt.SGD(), communicator=one.communicator).communicator is one.communicator
    with pytest.raises(TypeError, match="fusedSynch: got int, want tensors"):
        one.fused_all_reduce(3)
    with pytest.raises(TypeError, match="sparsification: accumulation: got int, want a Tensor"):
        one.sparsification(tensor.ones((3,)), 3, 0.5, True)
    assert one.fused_sparsification([], None, 0.5, True) is None
    with pytest.raises(ValueError, match="Communicator: buffSize: got -5, want at least 1"):
        type(one.communicator)(-5)
    with pytest.raises(TypeError, match="Communicator: buffSize: got 'a', want an int"):
        type(one.communicator)("a")
    with pytest.raises(ValueError, match="got world_size 257, want at most 256"):
        opt.DistOpt(opt.SGD(0.1), NcclIdHolder(), 0, 257)
    with pytest.raises(ValueError, match="backward_and_update: threshold: got 0"):
        one.backward_and_update(None, 0)


@pytest.mark.parametrize("name", ["fusedSynch", "fusedSynchHalf"])
def test_a_refused_exchange_keeps_what_was_collected(name):
    exchange = getattr(opt.DistOpt(opt.SGD(0.1)).communicator, name)
    exchange([tensor.ones((2,))], False)
    with pytest.raises(ValueError, match=rf"{name}: got tensors of shapes \[\(3,\)\], want those"):
        exchange([tensor.ones((3,))])
    exchange([to := tensor.zeros((2,))])
    assert to.to_numpy().tolist() == [1, 1]
    exchange([other := tensor.zeros((3,))])
    assert other.to_numpy().tolist() == [0, 0, 0]


def test_hyperparameters_and_states_are_those_of_the_optimizer():
    inner = opt.SGD(0.1)
    one = opt.DistOpt(inner)
    one.lr = 0.25
    assert float(inner.lr) == float(one.lr) == 0.25
    one.step()
    assert one.get_states()["step_counter"] == inner.get_states()["step_counter"] == 1
    one.set_states({"step_counter": 7})
    assert inner.get_states()["step_counter"] == 7
    with pytest.raises(AttributeError, match="'DistOpt' object has no attribute 'nothing'"):
        _ = one.nothing


class Overflowing(Module):
    """A net whose gradients on the way are infinite sooner than those of its parameters."""

    def __init__(self):
        self.first, self.second = layer.Linear(4), layer.Linear(4)

    def forward(self, x):
        return self.second(self.first(x))

    def train_one_batch(self, x):
        out = self.forward(x)
        loss = autograd.reduce_mean(out * out)
        self.optimizer(loss)
        return loss


def _overflows(shard):
    """The factor of the loss after 12 steps, and how many of them were updates."""
    dist.set_seed(1)
    rank, size = dist.rank(), dist.size()
    rows = np.random.default_rng(0).normal(size=(12, 8)).astype(np.float32) * 0.05
    x = tensor.from_numpy(rows[rank * 12 // size : (rank + 1) * 12 // size])
    model = Overflowing()
    model.optimizer = opt.DistOpt(opt.SGD(1e-3), shard=shard)
    model.compile([x], is_train=True, use_graph=True, amp="float16")
    model(x)
    model.loss_scale.factor.copy_from(np.array([2.0**24], np.float32))
    for _ in range(11):
        model(x)
    return model.loss_scale.factor.item(), model.optimizer.opt.step_counter.item()


@pytest.mark.parametrize("shard", [0, 2])
def test_ranks_skip_the_steps_that_one_process_skips(shard):
    want = dist.spawn(_overflows, 1, (shard,), timeout=TIMEOUT)
    assert want[0][1] < 12
    for ranks in (2, 3):
        assert dist.spawn(_overflows, ranks, (shard,), timeout=TIMEOUT) == want * ranks
