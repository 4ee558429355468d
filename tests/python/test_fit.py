"""`Module.fit`: what it accepts, what it returns, what it shows and refuses."""

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import foreign
import numpy as np
import pytest
import singa_rs
from fit_nets import HELD, Net, Scripted, X, Y, loader, made, states
from singa_rs import autograd, layer, metric, module, opt
from singa_rs.module import callbacks
from singa_rs.tensor import from_numpy


def by_hand(net, epochs, batches):
    rows = []
    for _ in range(epochs):
        total = count = 0
        for x, y in batches:
            _, loss = net(x, y)
            total, count = total + loss.item() * len(x), count + len(x)
        rows.append(total / count)
    return rows


# ---- what it does --------------------------------------------------------------------------------


@pytest.mark.parametrize("compiles", [True, False])
def test_has_the_bits_of_a_loop_by_hand(compiles):
    batches = [(X[i : i + 8], Y[i : i + 8]) for i in range(0, 52, 8)]  # the last one is smaller
    ours, theirs = made(compiles), None
    history = ours.fit(batches, 3, progress=False)
    got = states(ours)
    theirs = made(compiles)
    assert history["loss"] == by_hand(theirs, 3, batches) and got == states(theirs)
    assert len(history) == 3 and history.stopped is None and history[-1] == history.rows[2]


def test_replays_as_a_loop_by_hand_does():
    net = made()
    net.fit(loader(), 3, validation=HELD, progress=False)
    assert len(net.graphs) == 2  # training; validation, whose 12 rows are one batch
    assert all(graph.runs > 0 for graph in net.graphs)


class Frozen(Net):
    """A part of it stays in evaluation; `seen` has the modes of steps."""

    def __init__(self):
        super().__init__()
        self.part, self.seen = module.Module(), []

    def train(self, mode=True):
        super().train(mode)
        self.part.training = False

    def train_one_batch(self, x, y):
        self.seen.append((self.training, self.part.training))
        return super().train_one_batch(x, y)


def test_asks_the_models_own_train():
    net = Frozen()
    net.eval()
    net.fit((X, Y), 1, HELD, progress=False)
    assert set(net.seen) == {(True, False)} and not net.training


def test_learns_from_arrays_and_measures():
    net = made()
    metrics = [metric.Accuracy(), metric.F1Score("macro")]
    history = net.fit((X, Y), 30, HELD, metrics=metrics, batch_size=16, progress=False)
    assert set(history[0]) == {
        "loss", "accuracy", "f1_score", "val_loss", "val_accuracy", "val_f1_score"
    }  # fmt: skip
    assert history["loss"][-1] < history["loss"][0] and history["val_accuracy"][-1] > 0.7
    net.eval()
    out = net(HELD[0]).to_numpy()
    assert history["val_accuracy"][-1] == metric.accuracy(out, HELD[1])
    want = net.loss(from_numpy(out), from_numpy(HELD[1])).item()
    assert history["val_loss"][-1] == pytest.approx(want, rel=1e-6)


def test_validation_is_in_evaluation_and_restores_each_mode():
    class Whole(Net):
        def __init__(self):
            super().__init__()
            self.frozen = module.Module()
            self.seen = []

        def validate_one_batch(self, x, y):
            self.seen.append((self.training, self.frozen.training, autograd.training))
            return {"loss": self.loss(self.forward(x), y), "rows": float(len(x))}

    net = Whole()
    net.train()
    net.frozen.eval()
    autograd.training = True
    history = net.fit((X, Y), 2, [HELD, HELD], batch_size=26, progress=False)
    assert net.seen == [(False, False, False)] * 4
    assert (net.training, net.frozen.training, autograd.training) == (True, False, True)
    assert history["val_rows"] == [12, 12]
    net.eval()
    net.fit((X, Y), batch_size=26, progress=False)
    assert (net.training, net.frozen.training, autograd.training) == (False, False, False)


def test_threads_validate_apart():
    """Two validations overlap, and neither ends in the other's mode."""
    is_in, may_end = [threading.Event() for _ in "ab"], [threading.Event() for _ in "ab"]

    class Waits(Net):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def validate_one_batch(self, x, y):
            is_in[self.number].set()
            assert may_end[self.number].wait(60)
            return {"training": float(self.training or autograd.training), "rows": 12.0}

    nets = [Waits(number).train() for number in range(2)]
    with ThreadPoolExecutor() as pool:
        runs = []
        for number, net in enumerate(nets):
            runs.append(pool.submit(net.fit, (X, Y), validation=[HELD], progress=False))
            assert is_in[number].wait(60)
        assert autograd.training  # of this thread
        for end, run in zip(may_end, runs, strict=True):
            end.set()
            assert run.result(60)["val_training"] == [0]
    assert autograd.training and all(net.training for net in nets)


def test_other_models_keep_their_mode_within_fit():
    class Noting(Net):
        def forward(self, x):
            self.seen = autograd.training
            return super().forward(x)

    class Asks(callbacks.Callback):
        def on_epoch_end(self, run):
            other.forward(from_numpy(X))
            assert autograd.training and other.seen is False

    other = Noting().eval()
    made().eval().fit((X, Y), batch_size=26, callbacks=Asks(), progress=False)
    assert not autograd.training


def test_means_are_over_rows():
    class Fake(module.Module):
        def train_one_batch(self, x, y):
            return float(y[0])

    batches = [(X[:6], [1.0]), (X[:2], [5.0])]
    assert Fake().fit(batches, progress=False)["loss"] == [2.0]


def test_takes_dictionaries_and_single_arrays():
    class Coder(module.Module):
        def __init__(self):
            super().__init__()
            self.body, self.sgd = layer.Linear(6), opt.SGD(0.1)

        def train_one_batch(self, x, weight=1.0):
            error = ((self.body(x) - x) ** 2).mean() * weight
            self.sgd(error)
            return {"error": error, "outputs": x}

    for given in ({"x": X}, [X[:20], X[20:]], ({"x": X, "weight": 2.0} for _ in range(1))):
        history = Coder().fit(given, progress=False)
        assert list(history[0]) == ["error"] and history["error"][0] > 0


def test_takes_arrays_of_other_libraries():
    x, y, held = foreign.Tensor(X[:40]), foreign.Tensor(Y[:40]), [foreign.Tensor(z) for z in HELD]
    batches = [(X[i : i + 8], Y[i : i + 8]) for i in range(0, 40, 8)]
    measured = {"metrics": [metric.Accuracy()], "progress": False}
    want = made().fit(batches, 2, [HELD], **measured).rows
    others = [tuple(map(foreign.Tensor, one)) for one in batches]
    assert made().fit(others, 2, [held], **measured).rows == want
    found = made().fit((x, y), 2, tuple(held), batch_size=8, shuffle=False, **measured)
    np.testing.assert_allclose(found["loss"], [row["loss"] for row in want], 1e-6)


def test_arrays_are_shuffled_as_set_seed_says():
    class Order(module.Module):
        def train_one_batch(self, x, y):
            return float(y.to_numpy()[0])

    rows = np.arange(64)

    def firsts(seed, **options):
        singa_rs.set_seed(seed)
        return Order().fit((rows, rows), 3, batch_size=64, progress=False, **options)["loss"]

    try:
        assert firsts(1) == firsts(1) != firsts(2) and len(set(firsts(1))) > 1
        assert firsts(1, shuffle=False) == [0, 0, 0]
    finally:
        singa_rs.set_seed(0)


# ---- how it ends ---------------------------------------------------------------------------------


def test_ctrl_c_ends_with_the_history():
    class Pressed(callbacks.Callback):
        ended = 0

        def on_batch_end(self, run):
            if (run.epoch, run.batch) == (3, 2):
                os.kill(os.getpid(), signal.SIGINT)

        def on_end(self, run):
            self.ended += 1

    net, pressed = made(), Pressed()
    history = net.fit(loader(num_workers=1), 10, HELD, pressed, progress=False)
    assert len(history) == 2 and pressed.ended == 1
    assert history.stopped == "interrupted in epoch 3, after batch 2"
    assert "stopped: interrupted" in repr(history) and net.training
    assert len(net.fit(loader(), 1, progress=False)) == 1


@pytest.mark.parametrize("batch", [3, 150])  # figures are read 64 batches at a time
def test_nan_is_named(batch):
    x = [(X[:4], Y[:4])] * 200
    x[batch - 1] = (X[:4] * np.nan, Y[:4])
    with pytest.raises(FloatingPointError) as caught:
        made().fit(x, 2, progress=False)
    assert str(caught.value).startswith(f"fit: epoch 1, batch {batch}: loss is nan; compile(check")
    assert len(caught.value.history) == 0


def test_a_step_that_float16_skips_is_left_out():
    class Wide(module.Module):
        def __init__(self):
            super().__init__()
            self.body, self.sgd = layer.Linear(1), opt.SGD(1e-4)

        def forward(self, x):
            return self.body(x)

        def train_one_batch(self, x):
            loss = (self.forward(x) ** 2).mean()
            self.sgd(loss)
            return loss

    net = Wide()
    net.compile([from_numpy(X[:4])], amp="float16")
    history = net.fit([X[:4], X[:4] * np.float32(1e30), X[:4]], progress=False)
    assert 0 < history["loss"][0] < 100


# ---- what is shown -------------------------------------------------------------------------------


def test_a_line_for_each_epoch(capsys):
    made().fit(loader(), 2, HELD)
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert len(lines) == 2 and not shown.out
    assert lines[1].startswith("epoch 2/2  loss ") and "  val_loss " in lines[1]
    made().fit(loader(), 2, progress=False)
    assert capsys.readouterr().err == ""
    given = [Scripted("a_loss", [1, 2]), callbacks.EarlyStopping("a_loss", 1)]
    made().fit(loader(), 3, callbacks=given)
    assert "fit: 1 epochs without improvement over a_loss 1 of epoch 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.5), "0.5"),
        (np.array(2), "2"),
        (from_numpy(np.ones((1, 1), np.float32)), "1"),
        (np.zeros((3, 3)), "ndarray of shape (3, 3)"),
        (from_numpy(np.zeros((2,), np.float32)), "Tensor of shape (2,)"),
        (None, "None"),
    ],
)
def test_figures_that_are_no_numbers_are_described(capsys, value, text):
    class Odd(metric.Metric):
        def update(self, outputs, targets):
            pass

        def reset(self):
            pass

        def compute(self):
            return value

    history = made().fit(loader(), 1, metrics=[Odd()])
    assert f"  odd {text}  " in capsys.readouterr().err
    assert repr(history).endswith(f"  odd {text}")


@pytest.mark.parametrize("has_tqdm", [True, False])
def test_a_bar_on_a_terminal(capsys, monkeypatch, has_tqdm):
    if has_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    made().fit(loader(), 2)
    shown = capsys.readouterr().err
    assert ("5/5" in shown) == has_tqdm and "epoch 2/2" in shown and "loss" in shown


def test_a_history_is_a_table():
    history = made().fit(loader(), 2, progress=False)
    assert repr(history).splitlines()[1].startswith("epoch 2: loss ")
    assert [row["loss"] for row in history] == history["loss"]
    with pytest.raises(KeyError, match="got 'val_loss', want one of loss"):
        history["val_loss"]


# ---- what is refused -----------------------------------------------------------------------------

REFUSED = [
    (dict(loader=X), TypeError, r"got ndarray of shape .*, want a tuple of arrays, such as \(x, y"),
    (dict(loader=from_numpy(X)), TypeError, "got Tensor of shape .*, want a tuple of arrays"),
    (
        dict(loader=[X, Y]),
        TypeError,
        "list of 2 arrays, want a tuple .*one_batch takes x, y",
    ),
    (dict(loader=[[X], [Y]]), TypeError, "missing"),
    (dict(loader=3), TypeError, "fit: got int, want a DataLoader"),
    (dict(loader=[]), ValueError, "fit: epoch 1: got no batches"),
    (dict(loader=iter([HELD]), epochs=2), ValueError, "got an iterator, list_iterator, for 2"),
    (dict(loader=[HELD], batch_size=3), ValueError, "batch_size=3 for list"),
    (dict(loader=(X, Y[:3])), ValueError, "want one length"),
    (dict(loader=(X, Y), epochs=0), ValueError, "fit: epochs: got 0"),
    (dict(loader=X, epochs=Y), TypeError, "fit: epochs: got"),
    (dict(loader=(X, Y), validation=[]), ValueError, "validation of epoch 1: got no batches"),
    (dict(loader=(X, Y), validation=[X]), TypeError, "want inputs and targets"),
    (dict(loader=(X, Y), callbacks=[print]), TypeError, "got callback .*print"),
    (dict(loader=(X, Y), metrics=metric.Accuracy()), TypeError, "want them in a list"),
    (dict(loader=(X, Y), metrics=["accuracy"]), TypeError, r"'accuracy', want .*Accuracy\(\)"),
    (dict(loader=(X, Y), metrics=[metric.Accuracy(), metric.Accuracy(2)]), ValueError, "other"),
    (dict(loader=(X, Y), metrics={"loss": metric.Accuracy()}), ValueError, "other names"),
    (dict(loader=(X, Y), loss=print), ValueError, "got loss, which is for validation"),
    (dict(loader=(X, Y), validation=HELD, loss=3), TypeError, "got loss 3"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_wrong_arguments(number):
    arguments, kind, message = REFUSED[number]
    with pytest.raises(kind, match=message):
        made().fit(**arguments, progress=False)


def test_wrong_models():
    class Still(module.Module):
        def forward(self, x):
            return x

    class Odd(module.Module):
        result = None

        def train_one_batch(self, x, y):
            return self.result

        def forward(self, x):
            return x

    with pytest.raises(TypeError, match="fit: Still has no train_one_batch"):
        Still().fit((X, Y))
    for result in (None, from_numpy(X), (1.0, "no"), {}, {"loss": from_numpy(X)}):
        odd = Odd()
        odd.result = result
        with pytest.raises(TypeError, match="fit: train_one_batch: got .*, want a loss of one"):
            odd.fit((X, Y), progress=False)
    odd.result = 1.0
    with pytest.raises(ValueError, match="nothing to compute of it: give loss= or metrics="):
        odd.fit((X, Y), validation=HELD, progress=False)
    with pytest.raises(TypeError, match="returns no outputs"):
        odd.fit((X, Y), metrics=[metric.Accuracy()], progress=False)
