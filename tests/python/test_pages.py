"""The tutorial and the guides run as they are written, block after block; the page of limits quotes
what the package says."""

import random
import re
import subprocess
import sys
import warnings

import numpy as np
import pages
import pytest
from singa_rs import Step, autograd, device, dist, layer, module, opt, sonnx, tensor
from singa_rs.dist import group
from singa_rs.dist.place import place_of
from singa_rs.tensor import Tensor, as_tensor

GUIDES = ["tutorial", "custom-operations", "debugging-memory", "deployment", "mixed-precision"]


@pytest.mark.parametrize("name", GUIDES)
def test_a_page_runs(name, tmp_path):
    if name == "tutorial":
        pytest.importorskip("sklearn")
    program = tmp_path / f"{name}.py"
    program.write_text(pages.program(f"{name}.md"))
    command = [sys.executable, "-W", "error", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


# ---- checkpoints ---------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(s, x):
    """PyTorch's equations of torch.nn.LSTM."""
    h = c = np.zeros(len(s["l.weight_hh_l0"]) // 4, np.float32)
    for row in x:
        given = s["l.weight_ih_l0"] @ row + s["l.bias_ih_l0"]
        i, f, g, o = np.split(given + s["l.weight_hh_l0"] @ h + s["l.bias_hh_l0"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        yield h


def gru(s, x):
    """PyTorch's equations of torch.nn.GRU."""
    h = np.zeros(len(s["g.weight_hh_l0"]) // 3, np.float32)
    for row in x:
        r, z, n = np.split(s["g.weight_ih_l0"] @ row + s["g.bias_ih_l0"], 3)
        of = np.split(s["g.weight_hh_l0"] @ h + s["g.bias_hh_l0"], 3)
        z = sigmoid(z + of[1])
        h = (1 - z) * np.tanh(n + sigmoid(r + of[0]) * of[2]) + z * h
        yield h


def attention(s, x):
    """PyTorch's equations of torch.nn.MultiheadAttention with one head."""
    q, k, v = np.split(x @ s["a.in_proj_weight"].T + s["a.in_proj_bias"], 3, axis=1)
    shares = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    y = shares / shares.sum(1, keepdims=True) @ v
    return y @ s["a.out_proj.weight"].T + s["a.out_proj.bias"]


class Read(module.Module):
    def __init__(self):
        super().__init__()
        self.l, self.g = layer.LSTM(3, 4, batch_first=True), layer.GRU(4, 5, batch_first=True)
        self.a, self.f = layer.MultiHeadAttention(5, 1), layer.Linear(2)

    def forward(self, x):
        x = self.g(self.l(x)[0])[0]
        return self.f(self.a(x, x, x))


SHAPES = {
    "l.weight_ih_l0": (16, 3), "l.weight_hh_l0": (16, 4), "l.bias_ih_l0": 16, "l.bias_hh_l0": 16,
    "g.weight_ih_l0": (15, 4), "g.weight_hh_l0": (15, 5), "g.bias_ih_l0": 15, "g.bias_hh_l0": 15,
    "a.in_proj_weight": (15, 5), "a.in_proj_bias": 15,
    "a.out_proj.weight": (5, 5), "a.out_proj.bias": 5, "f.weight": (2, 5), "f.bias": 2,
}  # fmt: skip


def test_states_of_pytorch_become_those_of_recurrent_layers_and_attention():
    space = {}
    (block,) = [one for one in pages.blocks("checkpoints.md") if "GATES" in one]
    exec(block, space)
    rng = np.random.default_rng(0)
    s = {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    x, net = rng.normal(size=(6, 3)).astype(np.float32), Read()
    net.compile([x[None]], is_train=False)
    assert space["from_pytorch"](s).keys() == net.get_states().keys()
    net.set_states(space["from_pytorch"](dict(sorted(s.items()))))
    want = attention(s, np.stack([*gru(s, lstm(s, x))])) @ s["f.weight"].T + s["f.bias"]
    np.testing.assert_allclose(net.eval()(x[None]).numpy()[0], want, 1e-4, 1e-5)


# ---- limits --------------------------------------------------------------------------------------

LIMITS = (pages.DOCS / "limits.md").read_text()
X, Y = np.ones((4, 3), np.float32), np.zeros(4, np.int32)


class Net(module.Module):
    def __init__(self, step=None, **options):
        super().__init__()
        self.dense, self.sgd, self.step = layer.Linear(2), opt.SGD(0.1), step
        self.compile([tensor.Placeholder((4, 3))], **options)

    def forward(self, x):
        return self.dense(x)

    def train_one_batch(self, x, y):
        if self.step is not None:
            return self.step(self, x, y)
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.sgd(loss)
        return loss


class Twice(autograd.Operator):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        return dy * 2


class Sinh(autograd.Operator):
    host = True

    def infer(self, x):
        return x

    def forward(self, x):
        return np.sinh(x)


@pytest.fixture
def x():
    autograd.training = True
    yield Tensor(data=[[[1.0, 2.0]]], stores_grad=True)
    autograd.training = False


def again(y, x):
    slope = autograd.gradients(y.sum(), xs=[x], create_graph=True)[0]
    return autograd.gradients((slope * slope).sum(), xs=[x])


def replayed(x):
    net = Net(lambda net, x, y: net.forward(x))
    results = [net(X, Y) for _ in range(3)]
    autograd.training = True
    return autograd.gradients(results[-1].sum())


def twice(x):
    loss = (x * x).sum()
    return [list(autograd.backward(loss)) for _ in range(2)]


def changed(x):
    y = x * 1.0
    loss = (y * y).sum()
    y += 1
    return autograd.gradients(loss)


def outside(x):
    autograd.training = False
    return list(autograd.backward(Tensor((2,)).sum()))


def pickled(x):
    with open("net.pt", "wb") as file:
        file.write(b"\x80\x04.")
    Net().load_states("net.pt")


def smaller(x):
    Net().save_step("step.srs", X, Y)
    Step.load("step.srs").run(X[:2], Y[:2])


def hosted(net, x, y):
    return Sinh()(net.forward(x))[0]


def unsteady(x):
    net = Net(lambda net, x, y: (net.forward(x) * random.random()).sum())
    return [net(X, Y) for _ in range(6)]


LOG = []


def counting(net, x, y):
    LOG.append(1)
    return net.forward(x).sum()


def counted(x):
    net = Net(counting)
    return [net(X, Y) for _ in range(6)]


def elsewhere(x):
    given = {"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    return place_of(given)


def left(x):
    dist.shutdown()
    group._state.has_left = True
    try:
        dist.init()
    finally:
        group._state.has_left = False


#: What is refused, by a part of what is said then.
REFUSED = {
    "create_cuda_gpu_on": lambda x: device.create_cuda_gpu(),
    "several machines": elsewhere,
    "left the others by shutdown": left,
    'amp="float16" and check_finite': lambda x: Net(
        lambda net, x, y: net.forward(x), amp="float16", check_finite=True
    ),
    "add: got dtype int16": lambda x: as_tensor([1], dtype="int16") + as_tensor([1], dtype="int16"),
    "complex128": lambda x: tensor.from_numpy(np.array([1j])),
    "axpy": lambda x: tensor.axpy(2.0, x, np.zeros(2)),
    "float16 cannot hold": lambda x: x.as_type("float16").masked_fill(x > 0, 1e9),
    "int32 cannot hold": lambda x: tensor.from_numpy(np.array([1 << 40])),
    "svd: got": lambda x: autograd.svd(Tensor((2, 2), dtype="float16")),
    "a loss of dtype": lambda x: autograd.backward(as_tensor([1, 2]).sum()),
    "item: ": lambda x: Net(lambda net, x, y: x * net.forward(x).sum().item())(X, Y),
    "masked_select: ": lambda x: Net(lambda net, x, y: x.masked_select(x > 0))(X, Y),
    "runs eagerly from now on": unsteady,
    "replays do not set": counted,
    "ran as a graph": replayed,
    "memory_budget=0.5": lambda x: Net(memory_budget=0.5, check_finite=True),
    "already passed through": twice,
    "changed in place": changed,
    "rnn_grad": lambda x: again(layer.RNN(2, 2)(x)[0], x),
    "does not know": lambda x: again(Twice()(x * x)[0], x),
    "training is False": outside,
    "MaxPool2d: got shape": lambda x: layer.MaxPool2d(2)(Tensor((3, 4, 4))),
    "one of its taps": lambda x: layer.MaxPool2d(
        (1, 2), (2, 3), (0, 1), dilation=(2, 3), ceil_mode=True
    )(Tensor((1, 1, 2, 1))),
    "PairwiseDistance: p": lambda x: layer.PairwiseDistance(0.5),
    "exchanges them in PyTorch": lambda x: Tensor((2, 3)).transpose(0, 1),
    "median: got shape": lambda x: Tensor((0, 2)).median(0),
    "mse_loss: got": lambda x: layer.MSELoss()(Tensor((3, 1)), Tensor((3,))),
    "norm: got ord 0.5": lambda x: x.norm(0.5, 0),
    "distinct axes": lambda x: Tensor(()).flip(0),
    "is a pickle": pickled,
    "save: state.f": lambda x: Net().save("net", state={"f": outside}),
    "erfinv": lambda x: sonnx.model_proto(autograd.erfinv, [Tensor((2,))]),
    "opset 22": lambda x: sonnx.model_proto(autograd.rms_norm, [Tensor((2, 3))], opset=22),
    "inv: got a singular": lambda x: autograd.gradients((x * x.reshape((2, 1)))[0].det()),
    "Step.run": smaller,
    "Sinh runs": lambda x: Net(hosted).save_step("step.srs", X, Y),
}
#: Exceptions and what they say, of which dots stand for parts that differ.
QUOTED = re.findall(r"\| (\w+(?:Error|Warning)): `([^`]+)`", LIMITS)


@pytest.mark.parametrize(("kind", "text"), QUOTED, ids=[text[:40] for _, text in QUOTED])
def test_a_limit_says_what_is_quoted(kind, text, x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (refused,) = [call for part, call in REFUSED.items() if part in text]
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:  # noqa: B017 - see below
        warnings.simplefilter("error", RuntimeWarning)
        refused(x)
    assert type(caught.value).__name__ == kind
    assert all(part in str(caught.value) for part in text.split("..."))


def test_each_refusal_is_quoted():
    assert len(QUOTED) == len(REFUSED)
