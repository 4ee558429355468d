"""`Module.fit` by several processes: figures, and what callbacks do by them, are those of all."""

import numpy as np
import pytest
from singa_rs import autograd, dist, layer, metric, module, opt, tensor
from singa_rs.data import DataLoader
from singa_rs.module import callbacks

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 4)).astype(np.float32)
Y = (X[:, :1] * 2 + RNG.normal(size=(24, 1))).astype(np.float32)


class Net(module.Module):
    def __init__(self, optimizer):
        super().__init__()
        self.a, self.norm, self.b = layer.Linear(5), layer.BatchNorm1d(), layer.Linear(1)
        self.optimizer, self.loss = optimizer, layer.MSELoss()

    def forward(self, x):
        return self.b(autograd.tanh(self.norm(self.a(x))))

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


def rows(first, last, size):
    ranks = (dist.rank(), dist.size())
    return DataLoader((X[first:last], Y[first:last]), size, seed=1, ranks=ranks)


def made(optimizer):
    dist.set_seed(0)
    net = Net(optimizer)
    net.compile([tensor.Placeholder((4, 4))])
    return net


def fitted(epochs, given, optimizer=None, net=None, validation=None):
    """A network and its history."""
    net = net or made(optimizer or opt.DistOpt(opt.SGD(0.1)))
    return net, net.fit(rows(0, 16, 4), epochs, validation, given, progress=False)


def on_ranks(n, function, *args):
    return dist.spawn(function, n, args, timeout=TIMEOUT)


def _figures():
    net = made(opt.DistOpt(opt.SGD(0.0)))
    net.norm = layer.Linear(5)  # the figures of rows do not depend on their batch
    metrics = [metric.MeanSquaredError(), metric.MeanAbsoluteError()]
    size = 6 // dist.size()
    found = net.fit(rows(0, 7, size), 1, rows(7, 9, size), metrics=metrics, progress=False)
    return found[0]


def test_figures_are_means_over_the_rows_of_all_ranks():
    """Of 7 rows the last batch gives one to a single rank; of 2 one rank has none at all."""
    found, alone = on_ranks(3, _figures), _figures()
    assert found[1] == found[2] == found[0] and len(alone) == 6
    assert found[0] == pytest.approx(alone, rel=1e-5)


def _steered(monitor):
    steps = opt.SGD(opt.OnPlateau(0.1, factor=0.5, patience=0))
    given = [callbacks.ObservePlateau(monitor), callbacks.EarlyStopping(monitor, patience=2)]
    # The validation is whole on each rank, whose running averages differ.
    net, found = fitted(40, given, opt.DistOpt(steps), validation=(X[16:], Y[16:]))
    params = {name: one.to_numpy().tobytes() for name, one in net.get_params().items()}
    return found.rows, found.stopped, steps.lr_value.item(), params


@pytest.mark.parametrize("monitor", ["loss", "val_loss"])
def test_callbacks_decide_alike_on_all_ranks(monitor):
    first, *others = on_ranks(2, _steered, monitor)
    assert first[1] is not None and first[2] < 0.1
    assert all(one == first for one in others)


def _local():
    steps = opt.SGD(opt.OnPlateau(0.1, factor=0.5, patience=0))
    given = [callbacks.ObservePlateau("loss"), callbacks.EarlyStopping("loss", patience=1)]
    _, found = fitted(40, given, opt.LocalSGD(steps, 3))
    return found.rows, found.stopped, steps.lr_value.item()


def test_callbacks_decide_alike_with_local_steps():
    first, second = on_ranks(2, _local)
    assert first == second and first[1] is not None


class Stops(callbacks.Callback):
    """Has rank 1 stop at some point of the third epoch."""

    def __init__(self, point):
        setattr(self, point, self.stop)

    def stop(self, run):
        if run.epoch == 3 and dist.rank() == 1:
            run.stop("its own")

    def watches_batches(self):
        return True


def _stopped(point):
    _, found = fitted(9, Stops(point))
    return len(found), found.stopped


@pytest.mark.parametrize("point", ["on_epoch_begin", "on_batch_end", "on_epoch_end"])
def test_all_ranks_stop_where_one_does(point):
    assert on_ranks(2, _stopped, point) == [(3, "rank 1 has stopped"), (3, "its own")]


def _alone():
    net, found = fitted(2 + dist.rank(), [], opt.SGD(0.1))
    return found["loss"][0], len(found)


def test_ranks_that_train_models_of_their_own_have_their_own_figures():
    first, second = on_ranks(2, _alone)
    assert first[0] != second[0] and (first[1], second[1]) == (2, 3)


# ---- what is written -----------------------------------------------------------------------------


def _saved(folder, epochs, is_own=False, given=None):
    """Which epochs are there right after a run, its losses, and how often this rank has written."""
    count, save = [], module.Checkpoints.save

    def counted(*args, writes=True, **options):
        count.append(writes)
        save(*args, writes=writes, **options)

    module.Checkpoints.save = counted
    place = f"{folder}/{dist.rank() if is_own else ''}"
    steps = opt.DistOpt(opt.Adam(0.02), **(given or {}))
    _, found = fitted(epochs, callbacks.Checkpoint(place, keep=2, best=("loss", "min")), steps)
    return module.Checkpoints(place).steps(), found["loss"], sum(count)


@pytest.mark.parametrize("given", [{}, {"shard": 1}, {"compress": "sparse"}])
def test_one_rank_writes_checkpoints_for_all(given, tmp_path):
    first = on_ranks(2, _saved, tmp_path / "a", 4, False, given)
    assert [one[2] for one in first] == [4, 0]
    assert all(one[:2] == first[0][:2] and len(one[0]) >= 2 for one in first)
    later = on_ranks(2, _saved, tmp_path / "a", 6, False, given)
    whole = on_ranks(2, _saved, tmp_path / "b", 6, False, given)
    assert [one[1] for one in later] == [one[1] for one in whole]
    assert [one[2] for one in later] == [2, 0]


def test_ranks_with_folders_of_their_own_all_write(tmp_path):
    first, second = on_ranks(2, _saved, tmp_path, 3, True)
    assert first == second and first[2] == 3
    assert [one[2] for one in on_ranks(2, _saved, tmp_path, 5, True)] == [2, 2]


def _apart(folder):
    _saved(folder, 3, True)
    place = folder / str(dist.rank() * 7)  # rank 1 has an empty one
    with pytest.raises(dist.DistError, match=r"fit: got epochs \[3, 0\] from the ranks"):
        fitted(5, callbacks.Checkpoint(place))


def test_ranks_that_load_different_epochs_are_told(tmp_path):
    on_ranks(2, _apart, tmp_path)


def _board(folder):
    fitted(2, callbacks.TensorBoard(folder))


def test_one_rank_writes_for_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    on_ranks(2, _board, tmp_path)
    assert len([*tmp_path.iterdir()]) == 1
