"""Training that goes on from a checkpoint in another number of processes."""

import dist_models
import numpy as np
import pytest
from singa_rs import autograd, device, dist, opt, tensor
from singa_rs.data import DataLoader

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0
BATCH, STEPS = 24, 50
#: The inner optimizer, its options, what DistOpt is given, and whether gradients add up.
CASES = {
    "SGD": ("SGD", {}, {}, False),
    "Adam": ("Adam", {}, {}, False),
    "SGD, moments divided": ("SGD", {}, {"shard": 1}, False),
    "Adam, moments divided": ("Adam", {"clip_norm": 0.5}, {"shard": 1}, False),
    "SGD, gradients divided": ("SGD", {"clip_norm": 0.5}, {"shard": 2}, True),
    "Adam, gradients divided": ("Adam", {}, {"shard": 2}, True),
    "SGD, parameters divided": ("SGD", {"clip_norm": 0.5}, {"shard": 3}, True),
    "Adam, parameters divided": ("Adam", {}, {"shard": 3}, False),
}
POINTS = tuple(np.concatenate(column) for column in zip(*dist_models.batches(20), strict=True))


def made(case, graph, n):
    """A model with its optimizer, and a loader of this rank's rows."""
    name, options, given, _ = CASES[case]
    device.get_default_device().set_seed(1)
    model = dist_models.MLP()
    model.optimizer = opt.DistOpt(dist_models.optimizer(name, **options), **given)
    ranks = (dist.rank(), n)
    loader = DataLoader(POINTS, BATCH // n, shuffle=True, seed=7, drop_last=True, ranks=ranks)
    model.compile([tensor.from_numpy(POINTS[0][: BATCH // n])], is_train=True, use_graph=graph)
    return model, loader


def step(model, x, y, accumulates):
    """The loss of a batch of one update."""
    if not accumulates:
        return model(x, y)
    half = x.shape[0] // 2
    with autograd._training_scope(True):
        first = autograd.softmax_cross_entropy(model.forward(x[:half]), y[:half])
        model.optimizer.accumulate(first / 2)
        second = autograd.softmax_cross_entropy(model.forward(x[half:]), y[half:])
        model.optimizer(second / 2)
    return (first + second) / 2


def run(case, steps, load=None, save=None):
    """The losses of all ranks' rows, in so many steps, which may begin and end with a file."""
    model, loader = made(case, not CASES[case][3], dist.size())
    state = {"sgd": model.optimizer, "rows": loader}
    if load is not None:
        model.load(load, state=state)
    losses, batches = [], iter(loader)
    for _ in range(steps):
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        loss = step(model, *batch, CASES[case][3])
        losses.append(dist.all_reduce(loss.clone().detach(), "mean").item())
    if save is not None:
        model.save(save, state, writes=dist.rank() == 0)
        dist.barrier()
    return losses


def run_all(steps, load=None, save=None):
    """`run` of all cases."""
    return {
        case: run(case, steps, load and f"{load}-{case}", save and f"{save}-{case}")
        for case in CASES
    }


def on_ranks(n, *args):
    if n == 1:
        return run_all(*args)
    first, *others = dist.spawn(run_all, n, args, timeout=TIMEOUT)
    assert all(one == first for one in others)
    return first


@pytest.fixture(scope="module")
def alone():
    return run_all(STEPS)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 3), (2, 4)])
def test_losses_go_on_as_in_one_process(before, after, alone, tmp_path):
    path, half = str(tmp_path / "net"), STEPS // 2
    first = on_ranks(before, half, None, path)
    second = on_ranks(after, STEPS - half, path)
    for case, want in alone.items():
        np.testing.assert_allclose(first[case] + second[case], want, rtol=1e-5, err_msg=case)


def drawn(before=None, after=None):
    """What a step draws after a checkpoint was written, or read."""
    dist.set_seed(3)
    model = dist_models.MLP()
    model.compile([tensor.from_numpy(POINTS[0][:2])], is_train=True, use_graph=False)
    if after is None:
        model.load(before, state={})
    else:
        model.save(after, writes=dist.rank() == 0)
    with autograd._training_scope(True):
        found = autograd.dropout(tensor.ones((60,)), 0.5).to_numpy()
    dist.barrier()
    return found


def test_random_numbers_go_on_apart(tmp_path):
    path = str(tmp_path / "net")
    first, second = dist.spawn(drawn, 2, (None, path), timeout=TIMEOUT)
    assert not np.array_equal(first, second)
    again = dist.spawn(drawn, 2, (path,), timeout=TIMEOUT)
    np.testing.assert_array_equal(again, [first, second])
    np.testing.assert_array_equal(drawn(path), first)


def test_only_one_process_writes(tmp_path):
    model, _ = made("SGD", False, 1)
    model.save(tmp_path / "net", writes=False)
    assert not list(tmp_path.iterdir())
    model.save(tmp_path / "net")
    assert len(list(tmp_path.iterdir())) == 2


# ---- in the midst of accumulation ----------------------------------------------------------------


def sums(shard, path, saves):
    """The parameters after an update whose gradients add up before and after a checkpoint."""
    device.get_default_device().set_seed(1)
    model = dist_models.MLP()
    model.optimizer = opt.DistOpt(opt.Adam(0.01), shard=shard)
    rank, size = dist.rank(), dist.size()
    share = [part[rank * 24 // size : (rank + 1) * 24 // size] for part in POINTS]
    x, y = (tensor.from_numpy(part) for part in share)
    model.compile([x], is_train=True, use_graph=False)
    with autograd._training_scope(True):
        for _ in range(3 if saves else 1):
            model.optimizer(autograd.softmax_cross_entropy(model.forward(x), y))
        if saves:
            model.optimizer.accumulate(autograd.softmax_cross_entropy(model.forward(x), y))
            model.save(path, {"adam": model.optimizer}, writes=rank == 0)
            dist.barrier()
        else:
            model.load(path, state={"adam": model.optimizer})
        model.optimizer(autograd.softmax_cross_entropy(model.forward(x), y))
    return {name: one.to_numpy() for name, one in model.get_params().items()}


@pytest.mark.parametrize("shard", [1, 2])
def test_sums_of_gradients_go_on(shard, tmp_path):
    """Also where states are read over those of steps before."""
    path = str(tmp_path / "net")
    (want, _) = dist.spawn(sums, 2, (shard, path, True), timeout=TIMEOUT)
    found = [sums(shard, path, False), *dist.spawn(sums, 3, (shard, path, False), timeout=TIMEOUT)]
    for params in found:
        for name, value in params.items():
            np.testing.assert_allclose(value, want[name], rtol=1e-4, atol=1e-6)
