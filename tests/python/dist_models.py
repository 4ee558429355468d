"""Models that several processes train, and the losses of one."""

import numpy as np
from recorded import replays
from singa_rs import autograd, device, dist, layer, opt, tensor
from singa_rs.module import Module

BATCH, STEPS = 8, 50


class MLP(Module):
    def __init__(self, train="plain", **given):
        self.first, self.relu, self.second = layer.Linear(16), layer.ReLU(), layer.Linear(3)
        self.train_by, self.given = train, given

    def forward(self, x):
        return self.second(self.relu(self.first(x)))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        TRAIN[self.train_by](self, loss)
        return loss


class CNN(MLP):
    def __init__(self, train="plain", **given):
        super().__init__(train, **given)
        self.conv, self.flat = layer.Conv2d(4, 3, padding=1), layer.Flatten()

    def forward(self, x):
        made = self.conv(x.reshape((x.shape[0], 1, 4, 4)))
        return super().forward(self.flat(self.relu(made)))


TRAIN = {
    "plain": lambda m, loss: m.optimizer(loss),
    "half": lambda m, loss: m.optimizer.backward_and_update_half(loss, **m.given),
    "partial": lambda m, loss: m.optimizer.backward_and_partial_update(loss, **m.given),
    "sparse": lambda m, loss: m.optimizer.backward_and_sparse_update(loss, **m.given),
    "low_rank": lambda m, loss: m.optimizer.backward_and_low_rank_update(loss, **m.given),
    "threshold": lambda m, loss: m.optimizer.backward_and_update(loss, **m.given),
}
MODELS = {"MLP": MLP, "CNN": CNN}


def batches(steps=STEPS):
    """Batches of points in three classes, each around a centre of its own."""
    draw = np.random.default_rng(3)
    centres = draw.normal(size=(3, 16))
    for _ in range(steps):
        y = draw.integers(0, 3, BATCH)
        x = centres[y] + 1.5 * draw.normal(size=(BATCH, 16))
        yield x.astype(np.float32), y.astype(np.int32)


def optimizer(name="SGD", **options):
    given = {"SGD": {"lr": 0.05, "momentum": 0.9}, "Adam": {"lr": 0.01}}[name]
    return getattr(opt, name)(**{**given, **options})


def train(
    model, graph, name="SGD", options=None, accumulate=False, shard=0, compress=None, **given
):
    """Trains on this rank's share of each batch; the losses of all of it, and the parameters."""
    device.get_default_device().set_seed(1)
    model = MODELS[model](**given)
    model.optimizer = opt.DistOpt(
        optimizer(name, **(options or {})), shard=shard, compress=compress
    )
    rank, size = dist.rank(), dist.size()
    losses = []
    for step, (x, y) in enumerate(batches()):
        share = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        x, y = tensor.from_numpy(x[share]), tensor.from_numpy(y[share])
        if step == 0:
            model.compile([x], is_train=True, use_graph=graph)
        if accumulate:
            half = x.shape[0] // 2
            first = autograd.softmax_cross_entropy(model.forward(x[:half]), y[:half])
            model.optimizer.accumulate(first / 2)
            loss = autograd.softmax_cross_entropy(model.forward(x[half:]), y[half:])
            model.optimizer(loss / 2)
            loss = (first + loss) / 2
        else:
            loss = model(x, y)
        losses.append(dist.all_reduce(loss.clone(), "mean").item())
    params = {name: one.to_numpy() for name, one in model.get_params().items()}
    return np.array(losses), params, replays(model) if graph else 0
