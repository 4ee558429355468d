"""Models whose parameters are divided among the ranks that train them, and what becomes of them."""

import numpy as np
from recorded import replays
from singa_rs import autograd, device, dist, layer, opt, tensor
from singa_rs.module import Module

CPU = device.get_default_device()
#: Rows of all ranks in a batch, and the steps of a test.
BATCH, STEPS = 8, 24


class Trained(Module):
    """A model that is trained by cross-entropy."""

    threshold = None

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer.backward_and_update(loss, self.threshold)
        return loss


class MLP(Trained):
    def __init__(self):
        super().__init__()
        widths = (13, 16, 7, 3)
        self.layers = layer.ModuleList(layer.Linear(width) for width in widths)

    def forward(self, x):
        for one in self.layers[:-1]:
            x = autograd.relu(one(x))
        return self.layers[-1](x)


class CNN(Trained):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = layer.Conv2d(5, 3, padding=1), layer.BatchNorm2d()
        self.again, self.head = layer.Conv2d(3, 3), layer.Linear(3)

    def forward(self, x):
        y = autograd.relu(self.norm(self.conv(x.reshape((x.shape[0], 1, 4, 4)))))
        return self.head(autograd.relu(self.again(y)).reshape((x.shape[0], -1)))


class GPT(Trained):
    """Points in 16 dimensions as sequences of 16 symbols."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = layer.Embedding(11, 12), layer.Linear(3)
        make = layer.TransformerEncoderLayer
        self.blocks = layer.ModuleList(make(12, 2, 20, 0.0, norm_first=True) for _ in range(2))
        self.norm = layer.LayerNorm(12)

    def forward(self, x):
        y = self.embed(autograd.cast(autograd.clip(x, -4, 4) + 5, tensor.int32))
        for block in self.blocks:
            y = block(y, is_causal=True)
        return self.head(autograd.reduce_mean(self.norm(y), 1, False))


class LSTM(Trained):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = layer.LSTM(4, 9), layer.Linear(3)

    def forward(self, x):
        steps = x.reshape((x.shape[0], 4, 4)).transpose((1, 0, 2))
        return self.head(self.lstm(steps)[0][-1])


class Tied(Trained):
    """The first layer's weights are the last one's, turned; another layer is used twice."""

    def __init__(self):
        super().__init__()
        self.first, self.twice = layer.Linear(10), layer.Linear(10)
        self.head = layer.Linear(3)

    def forward(self, x):
        y = autograd.tanh(self.first(x))
        y = autograd.tanh(self.twice(autograd.tanh(self.twice(y))))
        y = autograd.tanh(autograd.matmul(y, self.first.W.transpose()))
        return self.head(y)


class Deep(Trained):
    """Layers of some width, the parameters of which are most of the memory."""

    def __init__(self, width=192, count=8):
        super().__init__()
        self.layers = layer.ModuleList(layer.Linear(width) for _ in range(count))
        self.head = layer.Linear(3)

    def forward(self, x):
        for one in self.layers:
            x = autograd.tanh(one(x))
        return self.head(x)


MODELS = {one.__name__: one for one in (MLP, CNN, GPT, LSTM, Tied, Deep)}


def batches(steps=STEPS):
    """Batches of points in three classes; this rank's rows."""
    draw, rank, size = np.random.default_rng(3), dist.rank(), dist.size()
    centres, own = (
        draw.normal(size=(3, 16)),
        slice(rank * BATCH // size, (rank + 1) * BATCH // size),
    )
    for _ in range(steps):
        y = draw.integers(0, 3, BATCH)
        x = centres[y] + 1.5 * draw.normal(size=(BATCH, 16))
        yield (
            tensor.from_numpy(x[own].astype(np.float32)),
            tensor.from_numpy(y[own].astype(np.int32)),
        )


def optimizer(name, **options):
    """An optimizer; all use moments."""
    given = {"SGD": {"lr": 0.05, "momentum": 0.9}, "Adam": {"lr": 0.01}}[name]
    return getattr(opt, name)(**{**given, **options})


def made(kind, shard, name="Adam", threshold=60, graph=True, amp=None, **options):
    """A model that was compiled, with the batches of `batches`."""
    CPU.set_seed(1)
    model = MODELS[kind]()
    model.threshold = threshold
    model.optimizer = opt.DistOpt(optimizer(name, **options), shard=shard)
    x, _ = next(batches(1))
    model.compile([x], is_train=True, use_graph=graph, amp=amp)
    return model


def mean(loss):
    """That over all ranks, as a number."""
    return dist.all_reduce(autograd.cast(loss.clone().detach(), tensor.float32), "mean").item()


def train(kind, shard, graph=True, steps=STEPS, **given):
    """The losses of all ranks together, the parameters, and how many steps were replayed."""
    model = made(kind, shard, graph=graph, **given)
    losses = [mean(model(x, y)) for x, y in batches(steps)]
    return np.array(losses), values(model), replays(model) if graph else 0


def values(model):
    """Parameters and states."""
    return {name: one.to_numpy() for name, one in model.get_states().items()}


def divided(model):
    """The names of the parameters that are divided."""
    return [name for name, one in model.get_params().items() if one._divided is not None]
