"""Methods that write into the tensor's own memory: the values and gradients of those without `_`,
of parameters, results, views, and in recordings."""

import operator

import numpy as np
import pytest
from harness import DEVICE, weighted
from recorded import replays, same
from singa_rs import DTypeError, ShapeError, autograd, module, opt
from singa_rs.autograd import assigning
from singa_rs.record.tracing import trace
from singa_rs.tensor import Tensor, from_numpy

S = (3, 4)
MASK = np.arange(12).reshape(S) % 3 == 0


def held(array, dtype=None):
    made = Tensor(data=np.asarray(array), dtype=dtype or "float64")
    made.requires_grad = False
    return made


#: The arguments of methods that need some.
ARGS = {
    **dict.fromkeys(
        "add sub mul div remainder fmod hypot copysign heaviside xlogy multiply subtract divide "
        "atan2 xlog1py".split(),
        (0.7,),
    ),
    "floor_divide": (0.3,),
    "pow": (2,),
    "polygamma": (2,),
    "cumsum": (0,),
    "cumprod": (1,),
    "lerp": (2.0, 0.3),
    **dict.fromkeys(("addcmul", "addcdiv"), (0.5, 2.0, 3.0)),
    "clip": (0.4, 0.8),
    "leakyrelu": (0.1,),
    "masked_fill": (MASK, 0.5),
    **dict.fromkeys(("index_add", "index_copy"), (0, [2, 0], np.full((2, 4), 0.25))),
    "index_fill": (1, [3, 0], 0.5),
    "scatter_add": (0, np.array([[2, 0, 1, 1]]), np.full((1, 4), 0.5)),
    "clamp": (0.4, 0.8),
    "ldexp": (1,),
    "scatter": (0, np.array([[2, 0, 1, 1]]), np.full((1, 4), 0.5)),
    "scatter_reduce": (0, np.array([[2, 0, 1, 1]]), np.full((1, 4), 0.5), "prod", False),
    "index_put": (([2, 0],), 0.5),
    "masked_scatter": (MASK, np.arange(4.0)),
    "addr": (np.linspace(0, 1, 3), np.linspace(0, 1, 4)),
    "addbmm": (np.ones((2, 3, 2)), np.full((2, 2, 4), 0.1)),
    "addmm": (np.ones((3, 2)), np.full((2, 4), 0.1)),
}
#: Methods of other numbers of dimensions.
OF_OTHER_RANKS = ("baddbmm", "addmv")
NAMES = list(assigning._UNARY)
NAMES += [name for name in assigning._OTHERS if name not in OF_OTHER_RANKS]
each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def training():
    with autograd._training_scope(True):
        yield


def sample(name):
    """Numbers for which every function is defined."""
    low, high = (1.1, 3.0) if name == "acosh" else (0.1, 0.9)
    return np.random.default_rng(1).permutation(np.linspace(low, high, 12)).reshape(S)


def parameter(name):
    made = Tensor(data=sample(name), dtype="float64")
    made.stores_grad = True
    return made


@each
def test_of_a_parameter(name):
    x, args = parameter(name), ARGS.get(name, ())
    want = getattr(x.detach(), name)(*args).to_numpy()
    block, version = x.block_id, x.version
    assert getattr(x, f"{name}_")(*args) is x
    np.testing.assert_array_equal(x.to_numpy(), want)
    assert x.block_id == block and x.version > version


@each
@pytest.mark.parametrize("part", ["whole", "rows", "columns"])
def test_of_a_result_and_of_views(name, part):
    """Gradients flow through the new value, also where it was written through a view."""
    args, key = ARGS.get(name, ()), {"rows": slice(0, 3), "columns": (slice(None), slice(0, 4))}
    outcomes = []
    for in_place in (True, False):
        x = parameter(name)
        y = x * 1.0
        z = y * 3  # made of the old value, and not saving it
        if in_place:
            target = y if part == "whole" else y[key[part]]
            getattr(target, f"{name}_")(*args)
        else:
            y = getattr(y, name)(*args)
        loss = weighted(y) + weighted(z)
        found = autograd.gradients(loss)[x].to_numpy()
        outcomes.append((y.to_numpy(), found))
    for got, want in zip(*outcomes, strict=True):
        np.testing.assert_allclose(got, want, 1e-14, 1e-14)


@each
def test_recorded(name):
    x, args = from_numpy(sample(name).astype(np.float32)), ARGS.get(name, ())
    x.stores_grad = True

    def step():
        y = x * 1.0
        getattr(y, f"{name}_")(*args)
        return y, autograd.gradients(weighted(y) + weighted(x))[x]

    want = [t.to_numpy().tobytes() for t in step()]
    recording = trace(DEVICE, [], step).recording
    for options in ({"rewrite": False}, {}):
        graph = recording.graph(**options)
        for _ in range(2):
            assert [t.to_numpy().tobytes() for t in graph.run([])] == want, options


def test_values_that_are_written():
    x = parameter("")
    assert x.fill_(2).tolist() == [[2.0] * 4] * 3 and x.zero_().tolist() == [[0.0] * 4] * 3
    assert x.copy_([1.0, 2.0, 3.0, 4.0]).tolist() == [[1.0, 2.0, 3.0, 4.0]] * 3
    assert x.fill_(held(5.0)) is x and x.tolist() == [[5.0] * 4] * 3
    assert (
        held(np.zeros((2, 2, 2))).baddbmm_(np.ones((2, 2, 1)), np.ones((2, 1, 2))).tolist()
        == [[[1.0, 1.0]] * 2] * 2
    )
    drawn = held(np.zeros(20_000))
    for made, mean, spread in (
        (drawn.normal_(1, 2).to_numpy(), 1, 2),
        (drawn.uniform_(-1, 1).to_numpy(), 0, 1 / np.sqrt(3)),
        (drawn.bernoulli_(0.25).to_numpy(), 0.25, np.sqrt(3) / 4),
    ):
        assert abs(made.mean() - mean) < 0.05 and abs(made.std() - spread) < 0.05


def test_gradients_of_what_is_copied():
    x, source = parameter(""), parameter("")
    y = x * 2
    y[1].copy_(source[0])
    y[2].fill_(source[2, 1])
    found = autograd.gradients(y.sum())
    assert found[x].tolist() == [[2.0] * 4, [0.0] * 4, [0.0] * 4]
    assert found[source].tolist() == [[1.0] * 4, [0.0] * 4, [0.0, 4.0, 0.0, 0.0]]


class Decay(module.Module):
    """A step that changes a state and a parameter by hand."""

    def __init__(self):
        super().__init__()
        self.w = from_numpy(np.linspace(-1, 1, 4, dtype=np.float32))
        self.w.stores_grad = True
        self.mean = held(np.zeros(4), "float32")
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        return (x * self.w).relu_()

    def train_one_batch(self, x):
        y = self.forward(x)
        self.optimizer((y * y).sum())
        with autograd.no_grad():
            self.mean.lerp_(y.detach()[0], 0.1)
            self.w.mul_(0.9).clip_(-0.8, 0.8)
        return y


def test_a_step_that_writes_by_hand():
    models = [Decay() for _ in range(2)]
    x = from_numpy(np.ones((2, 4), np.float32))
    for model, use_graph in zip(models, (True, False), strict=True):
        model.compile([x], use_graph=use_graph)
    for i in range(5):
        x = from_numpy(np.full((2, 4), 1.0 + i, np.float32))
        same(*(model.train_one_batch(x) for model in models))
        same(models[0].w, models[1].w)
        same(models[0].mean, models[1].mean)
    assert replays(models[0]) > 0


def test_refused():
    x = from_numpy(np.ones((2, 3), np.int32))
    for error, text, call in (
        (DTypeError, "sqrt_: got a result of dtype float32", lambda: x.sqrt_()),
        (ShapeError, "add_: got a result of shape", lambda: x.add_(np.ones((4, 2, 3), np.int32))),
        (ShapeError, "fill_: got a value", lambda: x.fill_(Tensor((2,)))),
        (TypeError, "fill_: got str", lambda: x.fill_("x")),
        (
            ShapeError,
            r"copy_: got shape \(3, 2\) for a part of \(2, 3\)",
            lambda: x.copy_(np.ones((3, 2), np.int32)),
        ),
        (DTypeError, "fill: got dtype int32", lambda: x.fill_(0.5)),
    ):
        with pytest.raises(error, match=text):
            call()
        assert x.tolist() == [[1, 1, 1]] * 2


@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize("op", ["iadd", "isub", "imul", "itruediv", "ipow", "imod"])
def test_operators_in_place_have_the_gradients_of_others(op, number):
    """Also where these need the value that was there before."""
    grads = []
    for in_place in (False, True):
        w, h = (from_numpy(np.float32(one)) for one in ([1, 2, 3], [2, 1, 0.5]))
        for one in (w, h):
            one.requires_grad = one.stores_grad = True
        autograd.training = True
        y, other = w * 2, 1.5 if number else h
        name = op if in_place else op[1:]
        y = getattr(operator, name)(y, other)
        autograd.reduce_sum(y * y).backward()
        grads.append((w.grad.tolist(), None if number else h.grad.tolist()))
    assert grads[0] == grads[1]


@pytest.mark.parametrize(
    ("sign", "value"),
    [(operator.iand, 6), (operator.ior, 9), (operator.ixor, 5), (operator.ilshift, 2),
     (operator.irshift, 1)],
)  # fmt: skip
def test_operators_of_bits_write_in_place(sign, value):
    want, t = np.arange(6, dtype="int32").reshape(2, 3), from_numpy(np.arange(6).reshape(2, 3))
    alias, row = t, t[1]
    assert sign(row, value) is row and sign(t, np.full(3, value)) is t
    sign(want[1], value)
    assert alias.numpy().tolist() == sign(want, value).tolist()


def test_masks_are_narrowed_in_place():
    mask = from_numpy(np.array([True, True, False]))
    alias = mask
    mask &= np.array([True, False, False])
    mask &= True
    assert alias.numpy().tolist() == [True, False, False] and alias.dtype.name == "bool"
    with pytest.raises(DTypeError, match="result of dtype int32 for a tensor of bool"):
        mask &= from_numpy(np.arange(3))


def test_integers_of_other_sizes_are_added_in_place():
    t = from_numpy(np.array([1, 2, 250]), dtype="uint8")
    t += from_numpy(np.array([1, 2, 6]), dtype="int64")
    assert t.numpy().tolist() == [2, 4, 0] and t.dtype.name == "uint8"
    with pytest.raises(DTypeError, match="result of dtype float32"):
        t += from_numpy(np.ones(3, np.float32))
