# ruff: noqa
"""Lines with a mistake each, which type checkers refuse: those that end in `# wrong`, no others."""

from __future__ import annotations

import numpy as np
import singa_rs
from singa_rs import autograd, data, device, layer, linalg, metric, module, opt, tensor
from singa_rs.tensor import Tensor


class Net(module.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = layer.Conv2d(4, 3)
        self.fc = layer.Linear(10)
        self.optimizer = opt.SGD(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.conv(x))

    def train_one_batch(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        out = self(x)
        return out, y


net = Net()
array = np.zeros((2, 3), np.float32)
t = tensor.from_numpy(array)
optimizer = opt.SGD(0.1)

net.no_such  # wrong
net.conv.no_such  # wrong
net.fc.weights  # wrong
layer.Linear(3).no_such_method()  # wrong
t.no_such  # wrong
t.backwards()  # wrong
autograd.no_such(t)  # wrong
autograd.relus  # wrong
tensor.zeroes((2,))  # wrong
layer.Lineer(3)  # wrong
opt.Adamm()  # wrong
singa_rs.no_such  # wrong
device.get_gpu()  # wrong
linalg.eig(t)  # wrong
metric.F1()  # wrong
data.Loader  # wrong
optimizer.no_such  # wrong
device.get_default_device().record().no_such  # wrong
opt.DistOpt(optimizer).no_such  # wrong
net.graphs[0].no_such  # wrong
from singa_rs.layer import Conv4d  # wrong
from singa_rs.module import Modul  # wrong

net("image")  # wrong
net(t, t, t)  # wrong
net.fc([array])  # wrong
net.fc(array, array)  # wrong
net.fc(t, t)  # wrong
net.conv()  # wrong
layer.Linear()  # wrong
layer.Linear("ten")  # wrong
layer.Linear(3, 4, 5, 6)  # wrong
layer.Linear(3, out=4)  # wrong
layer.Linear(3, bias_init=1)  # wrong
layer.Conv2d(4)  # wrong
layer.Conv2d(3, 4, 3, 1, 0, 1)  # wrong
layer.Conv2d(4, 3, strides=2)  # wrong
layer.Conv2d(4, 3, activation=3)  # wrong
layer.LSTM(3)  # wrong
layer.ModuleList([3])  # wrong
layer.BatchNorm2d(4, 0.1, 1e-5)  # wrong
layer.Dropout("half")  # wrong
opt.SGD(learning_rate=0.1)  # wrong
opt.Adam("fast")  # wrong
autograd.relu()  # wrong
autograd.relu([array])  # wrong
tensor.axpy(1.0, t, array)  # wrong
tensor.sum(t, 0, array)  # wrong
tensor.to_numpy(array)  # wrong
autograd.backward(array)  # wrong
autograd.softmax_cross_entropy(t)  # wrong
autograd.cat(t, "rows")  # wrong
tensor.zeros("shape")  # wrong
net.compile()  # wrong
layer.MaxPool2d("two")  # wrong
t.reshape(extents=(3, 2))  # wrong
layer.AvgPool1d(kernel_size=None)  # wrong
layer.Embedding(5, 2, initializer=3)  # wrong
net.to_device(0)  # wrong
net.train("yes")  # wrong
net.fc.W = 3  # wrong
number: int = net(t)  # wrong
both: Tensor = net(t, t)  # wrong
name: str = layer.RNN(3, 4)(tensor.zeros((5, 2, 3)))[1]  # wrong
step: float = layer.GRU(3, 4)(t)  # wrong
text: str = t.sum()  # wrong
