"""What ranks run in the tests."""

import os
import signal
import time

import numpy as np
from singa_rs import autograd, dist, opt, tensor
from singa_rs.compat import singa_wrap
from singa_rs.data import DataLoader


def values(dtype, shape, rank=None):
    """A rank's own values, which any other rank can tell."""
    seed = dist.rank() if rank is None else rank
    made = np.random.default_rng(seed).normal(size=shape) * 8
    return made.astype(dtype)


def of(array):
    """A tensor with an array's values, in its dtype."""
    return tensor.Tensor(data=array, dtype=array.dtype.name, requires_grad=False)


def reduced(op, dtype, shape):
    """Of tensors without gaps and with some."""
    t = of(values(dtype, shape))
    across = of(values(dtype, shape).T.copy()).transpose()
    assert dist.all_reduce(t, op) is t
    assert not across.is_contiguous()
    dist.all_reduce(across, op)
    assert np.array_equal(across.to_numpy(), t.to_numpy())
    return t.to_numpy()


def each(function, calls):
    """What a function returns for several calls, one after the other."""
    return [function(*args) for args in calls]


def over(wire, shape, share):
    """A sum of tensors of which a share is not zero."""
    x = values(np.float32, shape)
    x[np.random.default_rng(9 + dist.rank()).random(shape) >= share] = 0
    t = of(x)
    return x, dist.all_reduce(t, wire=wire).to_numpy()


def sent(wire, share):
    """How many bytes this rank sends for a sum of elements of which a share is not zero."""
    x = np.ones(400_000, np.float32)
    x[np.random.default_rng(dist.rank()).random(x.shape) >= share] = 0
    before = dist.bytes_sent()
    dist.all_reduce(of(x), wire=wire)
    return dist.bytes_sent() - before


def moved(dtype):
    """The results of what moves tensors."""
    n, r = dist.size(), dist.rank()
    x, parts = values(dtype, (3, 2)), values(dtype, (n, 4))
    gathered = dist.all_gather(of(x)).to_numpy()
    turned = dist.all_to_all(of(parts)).to_numpy()
    scattered = dist.reduce_scatter(of(parts)).to_numpy()
    sent = dist.broadcast(of(x), n - 1).to_numpy()
    dist.barrier()
    t, got = of(x), of(np.zeros_like(x))
    outgoing = dist.send(t, (r + 1) % n, async_op=True)
    dist.recv(got, (r - 1) % n)
    outgoing.wait()
    return gathered, turned, scattered, sent, got.to_numpy()


def overlapped():
    """Several exchanges at once, waited for in the order in which they began."""
    ts = [of(values(np.float32, (100 + k,))) for k in range(5)]
    works = [dist.all_reduce(t, async_op=True) for t in ts]
    return [work.wait().to_numpy() for work in works]


def place():
    return dist.rank(), dist.size(), dist.local_rank(), dist.is_initialized()


def wrong():
    """The messages of calls that are refused."""
    found, t = [], of(np.ones((3, 2), np.int32))
    work = dist.all_reduce(t.clone(), async_op=True)
    work.wait()
    for call in (
        lambda: dist.all_reduce(np.ones(2)),
        lambda: dist.all_reduce(t, "product"),
        lambda: dist.all_reduce(t, "mean"),
        lambda: dist.all_reduce(t, wire="zip"),
        lambda: dist.all_reduce(t, wire="float16"),
        lambda: dist.broadcast(t, 2),
        lambda: dist.send(t, dist.rank()),
        lambda: dist.recv(t, "1"),
        lambda: dist.reduce_scatter(t),
        lambda: dist.all_to_all(t),
        lambda: dist.set_timeout(0),
        work.wait,
    ):
        try:
            call()
        except (TypeError, ValueError, dist.DistError) as error:
            found.append(str(error))
    dist.barrier()
    return found


class _Silent(Exception):
    """Cannot tell its text."""

    def __str__(self):
        raise ValueError


class _Unreadable(Exception):
    """Pickle copies it by its one argument, of which it wants two."""

    def __init__(self, one, other):
        super().__init__(one + other)


def unreadable():
    return _Unreadable("a", "b") if dist.rank() == 1 else None


def fail(how):
    """Rank 1 fails while the others wait for it."""
    dist.barrier()
    if dist.rank() == 1:
        if how == "raise":
            raise ValueError("boom")
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit":
            os._exit(3)
        if how == "leave":
            raise SystemExit(4)
        if how == "surrogate":
            raise ValueError("caf\udce9")
        if how == "silent":
            raise _Silent
        if how == "late":
            time.sleep(60)
        dist.all_reduce(of(np.ones(4, np.float32)))
    dist.all_reduce(of(np.ones(3, np.float32)))


def same_seed():
    """Initial values, and what steps draw."""
    dist.set_seed(4)
    first = tensor.Tensor((5,)).gaussian(0, 1).to_numpy()
    with autograd._training_scope(True):
        return first, autograd.dropout(tensor.ones((50,)), 0.5).to_numpy()


def singa():
    """SINGA's parts of steps."""
    rank, size = dist.rank(), dist.size()
    distopt = opt.DistOpt(opt.SGD(0.5))
    assert (distopt.global_rank, distopt.world_size) == (rank, size)
    assert isinstance(distopt.communicator, singa_wrap.Communicator)
    x, y, z, u, v = (of(values(np.float32, (6,))) for _ in range(5))
    distopt.all_reduce(x)
    distopt.all_reduce_half(y)
    distopt.wait()
    distopt.fused_all_reduce([z], send=False)
    distopt.fused_all_reduce([u], send=False)
    distopt.fused_all_reduce([z, u])
    rest = tensor.zeros((6,))
    distopt.sparsification(v, rest, 8.0, False)
    distopt.wait()
    param = tensor.Tensor(data=np.ones(6, np.float32), requires_grad=True)
    distopt.update(param, x)
    return [t.to_numpy() for t in (x, y, z, u, v, rest, param)]


def rows(count):
    """The rows that this rank gets, with weights."""
    loader = DataLoader(np.arange(count), 3, ranks=(dist.rank(), dist.size()), as_numpy=True)
    return [(batch.tolist(), loader.weight) for batch in loader]


def moments(shard):
    """How many elements the moments of an optimizer, and its sums, have on this rank."""
    param = tensor.Tensor(data=np.ones((40, 5), np.float32), requires_grad=True, stores_grad=True)
    one = opt.DistOpt(opt.Adam(0.1), shard=shard)
    with autograd._training_scope(True):
        one(autograd.reduce_sum(param * param))
        one.accumulate(autograd.reduce_sum(param * param))
    own = one.opt.get_states()
    return [sum(t.numel for t in own[kind].values()) for kind in ("m", "accumulated")]
