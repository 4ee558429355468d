"""Functions other than views return memory of their own, even where nothing had to be repeated,
padded, moved or converted."""

import numpy as np
import pytest
from recorded import pair, replays, same
from singa_rs import autograd, module, opt, tensor
from singa_rs.tensor import from_numpy

XN = np.arange(16.0).reshape(1, 4, 2, 2)
CALLS = {
    "tile": lambda x: autograd.tile(x, 1),
    "tile, all axes": lambda x: autograd.tile(x, (1, 1, 1, 1)),
    "tile, no axes": lambda x: autograd.tile(x, ()),
    "tile, more axes": lambda x: autograd.tile(x, (1, 1, 1, 1, 1)),
    "tile, an axis of one": lambda x: autograd.tile(x, (3, 1, 1, 1)),
    "tile, a new axis": lambda x: autograd.tile(x, (3, 1, 1, 1, 1)),
    "repeat": lambda x: tensor.repeat(x, 1, 1),
    "repeat, an axis of one": lambda x: tensor.repeat(x, 3, 0),
    "repeat, flat": lambda x: tensor.repeat(x, 1),
    "upsample": lambda x: autograd.upsample(x, "nearest", [1, 1, 1, 1]),
    "upsample, an axis of one": lambda x: autograd.upsample(x, "nearest", [2, 1, 1, 1]),
    "pad, edge": lambda x: autograd.pad(x, "edge", [0] * 8),
    "pad, reflect": lambda x: autograd.pad(x, "reflect", [0] * 8),
    "pad, constant": lambda x: autograd.pad(x, "constant", [0] * 8),
    "depth_to_space": lambda x: autograd.depth_to_space(x, 1),
    "depth_to_space, CRD": lambda x: autograd.depth_to_space(x, 1, "CRD"),
    "space_to_depth": lambda x: autograd.space_to_depth(x, 1),
    "space_to_depth of one": lambda x: autograd.space_to_depth(x[:, :, :1, :1], 1),
    "depth_to_space of one": lambda x: autograd.depth_to_space(x[:, :, :1, :1], 2),
    "interpolate": lambda x: autograd.interpolate(x, 2, mode="linear"),
    "interpolate, nearest": lambda x: autograd.interpolate(x, scale=1.0),
    "adaptive_avg_pool": lambda x: autograd.adaptive_avg_pool(x, (4, 2, 2)),
    "adaptive_max_pool": lambda x: autograd.adaptive_max_pool(x, (None, 2, 2)),
    "channel_shuffle": lambda x: autograd.channel_shuffle(x, 1),
    "channel_shuffle, all": lambda x: autograd.channel_shuffle(x, 4),
    "logcumsumexp of one": lambda x: autograd.logcumsumexp(x, 0),
    "roll, no axes": lambda x: autograd.roll(x, (), ()),
    "as_type": lambda x: x.as_type("float64"),
    "astype": lambda x: x.astype(tensor.float64),
    "raw AsType": lambda x: x.data.AsType(tensor.float64),
    "+x": lambda x: +x,
    "clone": lambda x: x.clone(),
}
each_call = pytest.mark.parametrize("name", CALLS)


def leaf(array):
    made = from_numpy(np.array(array), dtype="float64")
    made.stores_grad = True
    return made


@each_call
@pytest.mark.parametrize("training", [False, True])
def test_writes_reach_nothing_else(name, training):
    """No write to the result reaches the input or another element of the result, nor vice versa."""
    autograd.training = training
    x = from_numpy(XN, dtype="float64")
    y = CALLS[name](x)
    assert not y.shares_block(x) and (0 not in y.strides or y.numel < 2)
    want = y.to_numpy()
    y[(0,) * y.rank] = want[(0,) * want.ndim] = -9
    np.testing.assert_array_equal(y.to_numpy(), want)
    np.testing.assert_array_equal(x.to_numpy(), XN)
    x += 1.0
    np.testing.assert_array_equal(y.to_numpy(), want)


@each_call
def test_writes_into_the_result_of_a_recorded_tensor(name):
    if "raw" in name:
        pytest.skip("raw tensors are not recorded")
    autograd.training = True
    a, b = leaf(XN), leaf(2.0)
    y = a * 1.0
    v = CALLS[name](y)
    v += b
    found = autograd.gradients((y * y).sum() + (v * 0.5).sum())
    weight = v.numel * 0.5
    np.testing.assert_array_equal(found[b].to_numpy(), weight)
    np.testing.assert_array_equal((found[a].to_numpy() - 2 * XN).sum(), weight)


@pytest.mark.parametrize("dtype", ["float16", "int32", "bool", "float32"])
def test_conversions_to_the_same_dtype_copy(dtype):
    x = from_numpy(np.array([1, 0, 1]), dtype=dtype)
    for y in (x.as_type(dtype), x.astype(dtype), +x):
        assert y is not x and not y.shares_block(x) and y.dtype == x.dtype
        assert y.tolist() == x.tolist()


def test_converting_in_place_to_the_same_dtype_keeps_the_memory():
    x = from_numpy(XN, dtype="float64")
    view = x[0]
    x.to_type("float64")
    x += 1.0
    np.testing.assert_array_equal(view.to_numpy(), XN[0] + 1)


def test_norms_do_not_write():
    x = from_numpy(-XN, dtype="float64")
    assert x.l1() == XN.mean()
    np.testing.assert_array_equal(x.to_numpy(), -XN)


class Repeating(module.Module):
    """Writes to the results of functions that have nothing to repeat, pad or convert."""

    def __init__(self, name):
        super().__init__()
        self.name = name
        self.w = from_numpy(np.linspace(-1, 1, 24).reshape(6, 4), dtype="float64")
        self.w.stores_grad = True
        self.optimizer = opt.SGD(0.01)

    def forward(self, x):
        h = x.as_type("float64") @ self.w
        y = CALLS[self.name](h.reshape((1, 4, 2, 2)))
        y *= 2.0
        return h, y

    def train_one_batch(self, x, y):
        h, out = self.forward(x)
        self.optimizer((out * 0.5).sum() + (h * h).sum())
        return h, out


@pytest.mark.parametrize("name", ["tile", "pad, edge", "space_to_depth", "as_type", "+x"])
def test_recorded_steps_write_as_eager_ones_do(name):
    recorded, eager = pair(Repeating, name)
    y = from_numpy(np.zeros(4, np.int32))
    for k in range(6):
        x = from_numpy(np.arange(24, dtype=np.float32).reshape(4, 6) / 8 - k)
        same(recorded(x, y), eager(x, y))
        same(recorded.w, eager.w)
    assert replays(recorded) >= 3
