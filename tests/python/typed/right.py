# ruff: noqa: B018
"""Lines as users write them: type checkers accept each, and the program runs."""

from __future__ import annotations

import numpy as np
from singa_rs import (
    ShapeError,
    autograd,
    data,
    device,
    initializer,
    layer,
    linalg,
    loss,
    metric,
    module,
    opt,
    tensor,
)
from singa_rs.errors import CheckpointError
from singa_rs.tensor import Tensor


class Block(layer.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = layer.LayerNorm(width)
        self.attend = layer.MultiHeadAttention(width, num_heads=2)
        self.widen, self.narrow = layer.Linear(2 * width, activation="GELU"), layer.Linear(width)

    def forward(self, x: Tensor, is_causal: bool = False) -> Tensor:
        x = x + self.attend(self.norm(x), is_causal=is_causal)
        return x + self.narrow(self.widen(x))


class Net(module.Module):
    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.conv = layer.Conv2d(1, 4, 3, padding=1, activation=autograd.relu)
        self.pool = layer.MaxPool2d(2, 2)
        self.rest = layer.Sequential(layer.BatchNorm2d(4), layer.ReLU(), layer.Flatten())
        self.fc = layer.Linear(classes, kernel_init="he_uniform", bias_init=initializer.zeros)
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = opt.Adam(opt.CosineDecay(0.01, 100), clip_norm=1.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.rest(self.pool(self.conv(x))))

    def train_one_batch(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        out = self(x)
        found = self.loss(out, y)
        self.optimizer(found)
        return out, found


dev = device.get_default_device()
dev.set_seed(0)
rng = np.random.default_rng(0)
images = rng.normal(size=(8, 1, 8, 8)).astype(np.float32)
labels = np.arange(8, dtype=np.int32) % 3
x, y = tensor.from_numpy(images), tensor.from_numpy(labels)
t: Tensor = Tensor((2, 3), dev, tensor.float32)
t.gaussian(0.0, 1.0)
net = Net().train()
net.compile([x], is_train=True, use_graph=True)
out, found = net(x, y)
number: float = found.item()
out, found = net(images, labels)  # arrays stand for tensors
arrays: list[Tensor] = [autograd.relu(images), autograd.softmax(images, axis=-1)]
arrays += [tensor.exp(images), tensor.sum(np.float32(3)), autograd.matmul(images, x)]
arrays += [autograd.conv2d(autograd.ConvHandle(3), images, net.conv.W), t.dot(np.ones((3, 2)))]
arrays += [
    net.pool(images),
    layer.Add()(images, images),
    loss.SquaredError().forward(True, images, x),
]
arrays += [Block(4)(images[:, 0, :, :4], is_causal=True), layer.MSELoss()(images, images)]
arrays += [layer.MultiHeadAttention(8, 2)(images[:, 0], mask=np.ones((8, 8), bool))]
parameters: dict[str, Tensor] = net.get_params()
of_rest: dict[str, Tensor] = net.get_params("rest") | net.get_states(prefix="rest")
weight: Tensor = net.conv.W
shape: tuple[int, ...] = net.fc.b.shape
predicted: np.ndarray = net.eval()(x).to_numpy()
hits: float = metric.Accuracy().evaluate(predicted, labels)
text: str = net.summary()
sizes: tuple[int, ...] = net.conv.kernel_size
autograd.training = True
for parameter, gradient in autograd.backward((t * 2).sum()):
    parameter.copy_from(gradient)
autograd.training = False
with autograd.no_grad():
    z = autograd.softmax(t @ t.T(), axis=-1)
z += 1
z[0] = 0.0
z = z[:, 1] if z.ndim == 2 else z.reshape((-1,))
lowest, where = t.min(dim=1)
values = t.sort(dim=-1).values
made: list[Tensor] = [t + 1, 2 - t, t / 2, t**2, -t, t > 0, t.exp(), tensor.exp(t), t[0, 1:]]
both = autograd.cat([t, t], 0), autograd.stack([t, t]), autograd.where(t > 0, t, 0.0)
u, s, vt = linalg.svd(t)
same: bool = t.dtype == tensor.float32
whole = tensor.zeros((2,), dtype=tensor.int32).astype("int64")
steps, hidden = layer.RNN(3, 4)(tensor.random((5, 2, 3)))
steps, (hidden, cell) = layer.LSTM(3, 4, 2, bidirectional=True)(tensor.random((5, 2, 3)))
listed, last, cells = layer.LSTM(3, 4)([t, t])
steps, hidden = layer.GRU(3, 4)(tensor.random((5, 2, 3)))
blocks = layer.ModuleList(Block(4) for _ in range(2))
deep: Tensor = blocks[0](tensor.random((2, 3, 4)), is_causal=True)
heads: int = blocks[1].attend.num_heads
blocks.append(Block(4))
named = layer.ModuleDict({"a": layer.Linear(2), "b": layer.Linear(3)})
wide: Tensor = named["a"](t)
convolved = layer.Conv2d(4, (3, 3), stride=2)(x), layer.ConvTranspose2d(1, 2, 2, 2)(x)
separable: Tensor = layer.SeparableConv2d(2, 3)(x)
by_name: Tensor = layer.Conv2d(1, 8, kernel_size=3, stride=2)(x)
bare = layer.BatchNorm2d(momentum=None, affine=False, track_running_stats=False)(x)
rows = layer.Embedding(5, 2)(tensor.from_numpy(labels))
pooled, indices = layer.MaxPool2d(2, return_indices=True)(x)
padded: Tensor = layer.Conv2d(3, 3, padding=None, pad_mode="SAME_UPPER")(x).reshape(shape=(3, -1))
pooled = layer.MaxUnpool2d(2)(pooled, indices)
judged: Tensor = loss.SoftmaxCrossEntropy().forward(True, predicted_t := tensor.random((8, 3)), y)
sgd = opt.SGD(lr=0.1, momentum=0.9, weight_decay=1e-4)
sgd.apply("weight", weight, weight * 0.1)
loader = data.DataLoader(list(zip(images, labels, strict=True)), batch_size=4, shuffle=True)
for few, truth in data.batches(images, labels, size=4):
    few.shape, truth.shape
try:
    autograd.matmul(t, t)
except (ShapeError, CheckpointError) as error:
    message: str = str(error)
with dev.record() as graph:
    doubled = t * 2
graph.run(2)
nodes: int = graph.nodes
rate: Tensor = sgd.lr_value
plan = net.train().plan(x, y)
peak: int = plan.peak_bytes
by_layer: str = plan.summary(by="layer")
moved: list[int] = [row.bytes for row in plan.layers(depth=1)]
times: list[float | None] = [row.seconds for row in net.graphs[0].profile(2).layers()]
states: dict[str, Tensor] = net.get_states()
net.set_states(states)
net.to_device(dev)
