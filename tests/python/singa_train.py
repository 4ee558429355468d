"""Distributed training as SINGA's example programs have it, run by `singa_rs.compat.singa`.

    singa_train.py fork|spawn|forkserver option size    # processes that share a token
    mpiexec -n size ... singa_train.py mpi option       # processes that the launcher has started

Rank 0 prints the losses of all ranks together, and how far their parameters are apart.
"""

import multiprocessing
import sys

import numpy as np
from singa import device, layer, model, opt, singa_wrap, tensor

BATCH, BATCHES, EPOCHS, CLASSES = 4, 8, 4, 3
#: Of the partial option, so that its parts are several; the largest parameter has 96 elements.
PART = 100


class CNN(model.Model):
    def __init__(self):
        super().__init__()
        self.conv = layer.Conv2d(1, 4, 3, padding=1, activation="RELU")
        self.pooling = layer.MaxPool2d(2, 2)
        self.flatten = layer.Flatten()
        self.linear = layer.Linear(CLASSES)
        self.softmax_cross_entropy = layer.SoftMaxCrossEntropy()

    def forward(self, x):
        return self.linear(self.flatten(self.pooling(self.conv(x))))

    def train_one_batch(self, x, y, dist_option, spars):
        out = self.forward(x)
        loss = self.softmax_cross_entropy(out, y)
        if dist_option == "plain":
            self.optimizer(loss)
        elif dist_option == "half":
            self.optimizer.backward_and_update_half(loss)
        elif dist_option == "partialUpdate":
            self.optimizer.backward_and_partial_update(loss, threshold=PART)
        elif dist_option == "sparseTopK":
            self.optimizer.backward_and_sparse_update(loss, topK=True, spars=spars)
        elif dist_option == "sparseThreshold":
            self.optimizer.backward_and_sparse_update(loss, topK=False, spars=spars)
        return out, loss

    def set_optimizer(self, optimizer):
        self.optimizer = optimizer


def load():
    """Pictures of three classes with noise upon them."""
    draws = np.random.RandomState(0)
    y = np.arange(2 * BATCH * BATCHES, dtype=np.int32) % CLASSES
    patterns = draws.normal(size=(CLASSES, 1, 8, 8))
    return (patterns[y] + draws.normal(size=(len(y), 1, 8, 8))).astype(np.float32), y


def partition(rank, world_size, *arrays):
    """The rank's share of each array: every world_size-th row."""
    return [one[rank::world_size] for one in arrays]


def reduce_variable(variable, dist_opt, reducer):
    reducer.copy_from_numpy(variable)
    dist_opt.all_reduce(reducer.data)
    dist_opt.wait()
    return tensor.to_numpy(reducer)


def distance(net, sgd, dev):
    """How far this rank's parameters are from the average over all, at most."""
    found = []
    for one in net.get_params().values():
        mean = tensor.Tensor(one.shape, dev)
        mean.copy_from_numpy(tensor.to_numpy(one))
        sgd.all_reduce(mean.data)
        sgd.wait()
        mean /= sgd.world_size
        found.append(abs(tensor.to_numpy(mean) - tensor.to_numpy(one)).max())
    return max(found)


def train(sgd, dist_option, spars=0.05):
    dev = device.create_cuda_gpu_on(sgd.local_rank)
    dev.SetRandSeed(0)
    assert hasattr(sgd, "communicator")
    train_x, train_y = partition(sgd.global_rank, sgd.world_size, *load())
    rows = 2 * BATCH // sgd.world_size
    tx = tensor.Tensor((rows, 1, 8, 8), dev, tensor.float32)
    ty = tensor.Tensor((rows,), dev, tensor.int32)
    net = CNN()
    net.set_optimizer(sgd)
    net.compile([tx], is_train=True, use_graph=dist_option != "partialUpdate", sequential=True)
    reducer = tensor.Tensor((1,), dev, tensor.float32)
    for _ in range(EPOCHS):
        net.train()
        train_loss = np.zeros(shape=[1], dtype=np.float32)
        for b in range(BATCHES):
            tx.copy_from_numpy(train_x[b * rows : (b + 1) * rows])
            ty.copy_from_numpy(train_y[b * rows : (b + 1) * rows])
            out, loss = net(tx, ty, dist_option, spars)
            train_loss += tensor.to_numpy(loss).reshape(1)
        train_loss = reduce_variable(train_loss, sgd, reducer) / sgd.world_size
        if sgd.global_rank == 0:
            print(f"Training loss = {train_loss.item():f}", flush=True)
    apart = distance(net, sgd, dev)
    if sgd.global_rank == 0:
        print(f"Distance = {apart:f}", flush=True)


def run(dist_option, local_rank, world_size, nccl_id):
    sgd = opt.SGD(lr=0.05, momentum=0.9, weight_decay=1e-5, dtype=tensor.float32)
    sgd = opt.DistOpt(sgd, nccl_id=nccl_id, local_rank=local_rank, world_size=world_size)
    train(sgd, dist_option)


if __name__ == "__main__":
    way, option = sys.argv[1:3]
    if way == "mpi":
        train(opt.DistOpt(opt.SGD(lr=0.05, momentum=0.9, weight_decay=1e-5)), option)
    else:
        multiprocessing.set_start_method(way)
        token, size = singa_wrap.NcclIdHolder(), int(sys.argv[3])
        process = []
        for rank in range(size):
            process.append(multiprocessing.Process(target=run, args=(option, rank, size, token)))
        for p in process:
            p.start()
