"""Connectionist temporal classification against the sum over all alignments, one by one."""

import itertools
import math

import numpy as np
import pytest
from recorded import replays
from singa_rs import ShapeError, autograd, layer, module, opt, tensor
from singa_rs.tensor import from_numpy

RNG = np.random.default_rng(3)
T, C = 5, 3
TARGETS = np.array([[1, 2], [2, 2], [1, 0], [0, 0], [1, 1]])
STEPS, COUNTS = np.array([5, 4, 3, 2, 2]), np.array([2, 2, 1, 0, 2])
N = len(TARGETS)


def collapsed(path, blank):
    """Runs become one, blanks are left out."""
    return [c for c, _ in itertools.groupby(path) if c != blank]


def losses(x, blank=0):
    logs = x - np.log(np.exp(x).sum(2, keepdims=True))
    made = []
    for n in range(N):
        want, total = list(TARGETS[n, : COUNTS[n]]), 0.0
        for path in itertools.product(range(C), repeat=int(STEPS[n])):
            if collapsed(path, blank) == want:
                total += math.exp(sum(logs[t, n, c] for t, c in enumerate(path)))
        made.append(-math.log(total) if total else math.inf)
    return np.array(made)


def ours(x, reduction="none", zero=False, **options):
    logs = autograd.log_softmax(x, 2)
    given = (TARGETS, STEPS, COUNTS)
    return autograd.ctc_loss(logs, *given, reduction=reduction, zero_infinity=zero, **options)


def logits(dtype="float64"):
    return from_numpy(RNG.normal(size=(T, N, C)), dtype=dtype)


@pytest.fixture(autouse=True)
def training():
    autograd.training = True
    yield
    autograd.training = False


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_all_alignments(dtype):
    x = logits(dtype)
    want = losses(x.as_type("float64").to_numpy())
    assert math.isinf(want[4])  # two equal labels need a blank between them
    tolerance = {"float64": 1e-12, "float32": 1e-5, "float16": 3e-3, "bfloat16": 3e-2}[dtype]
    near = {"rtol": tolerance, "atol": tolerance}
    y = ours(x)
    assert y.dtype == x.dtype
    np.testing.assert_allclose(y.as_type("float64").to_numpy(), want, **near)
    kept = np.where(np.isinf(want), 0, want)
    np.testing.assert_allclose(
        ours(x, "sum", True).as_type("float64").tolist(), [kept.sum()], **near
    )
    mean = (kept / np.maximum(COUNTS, 1)).mean()
    np.testing.assert_allclose(ours(x, "mean", True).as_type("float64").tolist(), [mean], **near)
    assert math.isinf(ours(x, "sum").item())


def test_another_blank():
    x = logits()
    turned = from_numpy(x.to_numpy()[:, :, [1, 2, 0]].copy(), dtype="float64")
    moved = np.where(TARGETS > 0, TARGETS - 1, 2)
    logs = autograd.log_softmax(turned, 2)
    got = autograd.ctc_loss(logs, moved, STEPS, COUNTS, blank=2, reduction="none")
    np.testing.assert_allclose(got.tolist(), losses(x.to_numpy()), rtol=1e-12)


def test_gradients():
    x = logits()
    x.stores_grad = True
    found = autograd.gradients(ours(x, "sum", True))[x].to_numpy()
    assert not found[:, 4].any() and np.isfinite(found).all()
    assert not found[3:, 2].any()  # after the end of an input
    values, step = x.to_numpy(), 1e-6
    for place in [tuple(RNG.integers(0, n) for n in (T, 4, C)) for _ in range(20)]:
        sides = []
        for sign in (step, -step):
            moved = values.copy()
            moved[place] += sign
            sides.append(losses(moved)[:4].sum())
        slope = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(found[place], slope, rtol=1e-6, atol=1e-8)


def test_impossible_classes_and_long_inputs():
    values = np.full((400, 1, 2), -np.inf)
    values[:, :, 0] = 0
    values[200, 0] = [-np.inf, 0]
    logs = from_numpy(values, dtype="float32")
    logs.stores_grad = True
    loss = autograd.ctc_loss(logs, [[1]], [400], [1])
    assert loss.tolist() == [0]
    assert np.isfinite(autograd.gradients(loss)[logs].to_numpy()).all()
    assert math.isinf(autograd.ctc_loss(logs, [[1]], [100], [1]).item())


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.x, self.optimizer = logits("float32"), opt.SGD(0.5)
        self.loss = layer.CTCLoss(reduction="sum", zero_infinity=True)
        self.x.stores_grad = True

    def forward(self, labels, steps, counts):
        return self.loss(autograd.log_softmax(self.x, 2), labels, steps, counts)

    def train_one_batch(self, labels, steps, counts):
        loss = self.forward(labels, steps, counts)
        self.optimizer(loss)
        return loss


def test_replay_has_the_bits_of_eager_execution():
    nets, runs = [Net(), Net()], []
    nets[1].x.copy_from(nets[0].x)
    given = [from_numpy(a) for a in (TARGETS, STEPS, COUNTS)]
    less = [given[0], from_numpy(np.maximum(STEPS - 1, 0)), from_numpy(np.minimum(COUNTS, 1))]
    for net, use_graph in zip(nets, (True, False), strict=True):
        net.compile(given, use_graph=use_graph)
        runs.append([net.train_one_batch(*args).item() for args in (given, given, given, less)])
        runs[-1].append(net.x.to_numpy().tobytes())
    assert runs[0] == runs[1] and replays(nets[0])
    assert runs[0][2] < runs[0][1] < runs[0][0]


def test_targets_one_after_another_replay():
    """Their lengths are data, which the recording does not read."""
    nets, runs = [Net(), Net()], []
    nets[1].x.copy_from(nets[0].x)
    others = FOLLOWING[::-1].copy(), STEPS, COUNTS[::-1].copy()
    given, other = ([from_numpy(a) for a in one] for one in ((FOLLOWING, STEPS, COUNTS), others))
    for net, use_graph in zip(nets, (True, False), strict=True):
        net.compile(given, use_graph=use_graph)
        runs.append([net.train_one_batch(*args).item() for args in (given, given, given, other)])
    assert runs[0] == runs[1] and replays(nets[0])


FOLLOWING = np.concatenate([row[:n] for row, n in zip(TARGETS, COUNTS, strict=True)])


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_targets_one_after_another(reduction):
    x = logits()
    x.stores_grad = True
    logs, named = autograd.log_softmax(x, 2), {"reduction": reduction, "zero_infinity": True}
    made = autograd.ctc_loss(logs, FOLLOWING, STEPS, COUNTS, **named)
    want = ours(x, reduction, True)
    np.testing.assert_array_equal(made.to_numpy(), want.to_numpy())
    slopes = [autograd.gradients(one.sum(), [x])[0].to_numpy() for one in (made, want)]
    np.testing.assert_array_equal(*slopes)


def test_targets_longer_than_the_time():
    labels, counts = np.array([1, 2, 1, 2, 1, 2, 1, 2, 1]), np.array([8, 1, 0, 0, 0])
    logs = autograd.log_softmax(logits(), 2)
    for given in (labels, np.zeros((N, 9), int) + labels):
        made = autograd.ctc_loss(logs, given, STEPS, counts, reduction="none").tolist()
        assert math.isinf(made[0]) and np.isfinite(made[1:]).all()
    none = np.zeros(N, int)
    made, want = (
        autograd.ctc_loss(logs, given, STEPS, none) for given in (labels[:0], TARGETS[:, :0])
    )
    assert made.tolist() == want.tolist()


@pytest.mark.parametrize("n", range(N))
def test_one_sequence(n):
    x = logits()
    one, want = x[:, n], ours(x)[n]
    for targets in (TARGETS[n], TARGETS[n : n + 1]):
        for shape in ((), (1,)):
            lengths = [lengths[n].reshape(shape) for lengths in (STEPS, COUNTS)]
            logs = autograd.log_softmax(one, 1)
            made = autograd.ctc_loss(logs, targets, *lengths, reduction="none")
            assert made.shape == ()
            np.testing.assert_allclose(made.item(), want.item(), rtol=1e-12)
            assert layer.CTCLoss(reduction="sum")(logs, targets, *lengths).shape == (1,)


BAD = [
    (ShapeError, r"want \(T, N, C\)", lambda x: autograd.ctc_loss(x[0], TARGETS, STEPS, COUNTS)),
    (ShapeError, r"\(T, C\)", lambda x: autograd.ctc_loss(x[0, 0], TARGETS, STEPS, COUNTS)),
    (ValueError, "range", lambda x: autograd.ctc_loss(x, TARGETS[0], STEPS, COUNTS)),
    (ValueError, "range", lambda x: autograd.ctc_loss(x, FOLLOWING, STEPS, COUNTS[::-1] * 0)),
    (ValueError, "range", lambda x: autograd.ctc_loss(x, FOLLOWING, STEPS, COUNTS * 0 + 1)),
    (ShapeError, r"\(M,\)", lambda x: autograd.ctc_loss(x, FOLLOWING, STEPS, COUNTS[:2])),
    (ShapeError, r"\(N, S\)", lambda x: autograd.ctc_loss(x, TARGETS, STEPS[:2], COUNTS)),
    (ValueError, "range", lambda x: autograd.ctc_loss(x, TARGETS + 2, STEPS, COUNTS)),
    (ValueError, "range", lambda x: autograd.ctc_loss(x, TARGETS, STEPS + 1, COUNTS)),
    (ValueError, "range", lambda x: autograd.ctc_loss(x, TARGETS, STEPS, COUNTS - 1)),
    (ValueError, "blank", lambda x: autograd.ctc_loss(x, TARGETS, STEPS, COUNTS, 3)),
    (ValueError, "reduction", lambda x: autograd.ctc_loss(x, TARGETS, STEPS, COUNTS, 0, "all")),
    (TypeError, "zero_inf", lambda x: autograd.ctc_loss(x, TARGETS, STEPS, COUNTS, 0, "sum", 2)),
]


@pytest.mark.parametrize(("error", "says", "call"), BAD)
def test_refused(error, says, call):
    with pytest.raises(error, match=says):
        call(logits())


def test_no_sequences():
    x, none = tensor.zeros((4, 0, 3)), np.zeros(0, np.int32)
    labels = np.zeros((0, 2), np.int32)
    assert autograd.ctc_loss(x, labels, none, none, reduction="sum").tolist() == [0]
    assert math.isnan(autograd.ctc_loss(x, labels, none, none).item())
