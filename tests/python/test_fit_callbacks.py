"""Callbacks of `Module.fit`, and runs that go on to the bit."""

import builtins
import sys

import numpy as np
import pytest
from fit_nets import CPU, HELD, Scripted, loader, made, states
from singa_rs import autograd, layer, metric, module, opt
from singa_rs.errors import CheckpointError
from singa_rs.module import callbacks

# ---- callbacks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "values", "epochs"),
    [
        ({"monitor": "a_loss", "patience": 2}, [3, 2, 2, 2.5, 1], 4),
        ({"monitor": "a_loss", "patience": 3, "min_delta": 0.5}, [3, 2.8, 2.4, 2.3, 2.2], 5),
        ({"monitor": "acc", "mode": "max", "patience": 1}, [1, 2, 3, 2, 9], 4),
        ({"monitor": "a_loss", "patience": 2}, [1, np.nan, np.nan, 0, 0], 3),
        ({"monitor": "a_loss", "patience": 2}, [np.nan, np.nan, 0, 0, 0], 2),
        ({"monitor": "a_loss", "patience": 3}, [1, 1, 1, 0, 0], 5),
    ],
)
def test_early_stopping(options, values, epochs):
    stopping = callbacks.EarlyStopping(**options)
    net = made()
    for _ in range(2):  # a second run begins anew
        given = [Scripted(options["monitor"], values), stopping]
        history = net.fit(loader(), 5, callbacks=given, progress=False)
        assert len(history) == epochs
        assert (history.stopped is not None) == (epochs < 5)
    if history.stopped and stopping.best is not None:
        assert f"without improvement over {options['monitor']}" in history.stopped


def test_early_stopping_restores_the_best_epoch():
    seen = []

    class Copies(callbacks.Callback):
        def on_epoch_end(self, run):
            seen.append(states(run.model))

    net = made()
    stopping = callbacks.EarlyStopping("a_loss", 2, restore_best=True)
    given = [Copies(), Scripted("a_loss", [3, 1, 2, 2, 2]), stopping]
    net.fit(loader(), 5, callbacks=given, progress=False)
    assert (stopping.best, stopping.best_epoch, len(seen)) == (1, 2, 4)
    now = {name: one for name, one in states(net).items() if name[0] == "/"}
    assert now.items() <= seen[1].items() and not now.items() <= seen[3].items()


def test_a_plateau_lowers_the_learning_rate_without_a_new_recording():
    net = made(optimizer=opt.SGD(opt.OnPlateau(0.1, factor=0.5, patience=0)))
    given = [Scripted("val_loss", [3, 3, 2, 2]), callbacks.ObservePlateau()]
    net.fit(loader(), 4, callbacks=given, progress=False)
    assert net.optimizer.lr_value.item() == pytest.approx(0.025)
    assert len(net.graphs) == 1
    with pytest.raises(ValueError, match="no optimizer in the attributes of the model has"):
        made().fit(loader(), callbacks=callbacks.ObservePlateau("loss"), progress=False)
    with pytest.raises(ValueError, match="got figures loss, want 'val_loss' among them"):
        net.fit(loader(), callbacks=callbacks.ObservePlateau(), progress=False)


def test_a_plateau_that_several_have_sees_each_figure_once():
    seen = []

    class Told(opt.SGD):
        def observe(self, metric):
            seen.append(metric)
            super().observe(metric)

    plateau = opt.OnPlateau(0.1, factor=0.5, patience=1)
    net = made(optimizer=opt.SGD(opt.Warmup(1, plateau)))
    net.optimizer.group("none of these", lr=plateau)
    net.other, net.whole = opt.Adam(plateau), opt.DistOpt(net.optimizer)
    net.told = Told(opt.OnPlateau(0.1, factor=0.5, patience=1))
    given = [Scripted("val_loss", [3, 3, 3]), callbacks.ObservePlateau()]
    for epochs, rate in [(2, 0.1), (3, 0.05)]:
        net.fit(loader(), epochs, callbacks=given, progress=False)
        plateau.state.copy_from(np.array([0.1, np.nan, 0, 0])) if epochs == 2 else None
        held = (net.optimizer, net.optimizer._groups[0], net.other)
        assert [one.lr_value.item() for one in held] == pytest.approx([rate] * 3)
    assert seen == [3] * 5 and net.told.lr_value.item() < 0.1


def test_the_order_of_calls():
    told = []

    class Tells(callbacks.Callback):
        def __init__(self, name, is_last=False):
            self.name, self.is_last = name, is_last

        def on_begin(self, run):
            told.append(f"{self.name} begin")

        def on_epoch_begin(self, run):
            told.append(f"{self.name} epoch {run.epoch}")

        def on_batch_end(self, run):
            assert float(run.figures["loss"].item()) > 0

        def on_epoch_end(self, run):
            told.append(f"{self.name} end {run.epoch} {len(run.history)}")

        def on_end(self, run):
            told.append(f"{self.name} over")

    made().fit(loader(), callbacks=[Tells("save", True), Tells("look")], progress=False)
    assert told == [
        "save begin", "look begin", "look epoch 1", "save epoch 1", "look end 1 1", "save end 1 1",
        "look over", "save over",
    ]  # fmt: skip


@pytest.mark.parametrize("point", ["on_begin", "on_batch_end", "on_end"])
def test_callbacks_are_closed_after_errors(point):
    told = []

    class Fails(callbacks.Callback):
        def on_close(self, run):
            told.append("fails")
            raise KeyError("closing")

    class Closes(callbacks.Callback):
        def on_close(self, run):
            told.append("closes")

    def fail(self, run):
        raise ValueError("its own")

    setattr(Fails, point, fail)
    with pytest.raises(KeyError, match="closing") as caught:
        made().fit(loader(), callbacks=[Closes(), Fails(), Closes()], progress=False)
    assert str(caught.value.__context__) == "its own"
    assert told == ["closes", "fails", "closes"]


# ---- going on ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiles", [True, False])
def test_a_run_goes_on_to_the_bit(tmp_path, compiles):
    def run(epochs, folder):
        net = made(compiles, optimizer=opt.Adam(opt.OnPlateau(0.02, 0.5, 0)))
        stopping = callbacks.EarlyStopping(patience=50, restore_best=True)
        given = [callbacks.Checkpoint(folder), stopping, callbacks.ObservePlateau("loss")]
        history = net.fit(loader(), epochs, HELD, given, progress=False)
        return net, stopping, history

    whole, alone, history = run(6, tmp_path / "whole")
    run(2, tmp_path / "parts")
    run(3, tmp_path / "parts")
    CPU.set_seed(99)
    net, stopping, again = run(6, tmp_path / "parts")
    assert again.rows == history.rows and len(history) == 6
    assert states(net) == states(whole)
    assert (stopping.best, stopping.best_epoch) == (alone.best, alone.best_epoch)
    kept = module.Checkpoints(tmp_path / "parts")
    assert kept.steps() == [4, 5, 6]
    if compiles or stopping.best_epoch == 6:
        assert run(6, tmp_path / "parts")[2].rows == history.rows  # nothing is left to do
    else:
        with pytest.raises(ValueError, match="cannot restore epoch .: Net has no parameters"):
            run(6, tmp_path / "parts")
    with pytest.raises(ValueError, match="got 5 epochs, but .*parts is of epoch 6"):
        run(5, tmp_path / "parts")


class Lower(callbacks.Callback):
    """Lowers the learning rate once."""

    def on_epoch_end(self, run):
        if run.epoch == 1:
            run.model.optimizer.lr, run.model.average.decay = 0.001, 0.5


def test_a_run_goes_on_with_the_rate_that_a_callback_assigned(tmp_path):
    def run(epochs, folder):
        net = made(optimizer=opt.SGD(0.2, momentum=0.5))
        given = [Lower(), callbacks.Checkpoint(folder)]
        rows = net.fit(loader(), epochs, callbacks=given, progress=False).rows
        return rows, float(net.optimizer.lr), states(net)

    run(3, tmp_path / "parts")
    again = run(5, tmp_path / "parts")
    assert again == run(5, tmp_path / "whole") and again[1] == 0.001


def test_a_run_that_was_stopped_stays_stopped(tmp_path):
    def run(values):
        net = made()
        stopping = callbacks.EarlyStopping("a_loss", 2)
        given = [Scripted("a_loss", values), stopping, callbacks.Checkpoint(tmp_path, every=9)]
        return net.fit(loader(), 9, callbacks=given, progress=False)

    assert len(run([1, 2, 3])) == 3  # and is saved, though 3 is no multiple of 9
    again = run([])
    assert len(again) == 3 and again.stopped.startswith("2 epochs without improvement")


def test_the_best_epoch_stays(tmp_path):
    best = callbacks.Checkpoint(tmp_path, keep=1, best=("a_loss", "min"))
    given = [Scripted("a_loss", [3, 1, 2, 2, 2]), best]
    made().fit(loader(), 5, callbacks=given, progress=False)
    assert best.checkpoints.steps() == [2, 5] and best.checkpoints.best_step() == 2


def test_what_is_outside_of_the_model_is_saved_if_named(tmp_path):
    class Bare(module.Module):
        def __init__(self, update):
            super().__init__()
            self.body, self.update = layer.Linear(3), [update.backward_and_update]

        def forward(self, x):
            return self.body(x)

        def train_one_batch(self, x, y):
            loss = autograd.softmax_cross_entropy(self.forward(x), y)
            self.update[0](loss)
            return loss

    def run(epochs, folder, **options):
        CPU.set_seed(1)
        sgd = opt.SGD(0.1, momentum=0.9)
        net = Bare(sgd)
        keeps = callbacks.Checkpoint(folder, **({"state": {"sgd": sgd}} if not options else {}))
        return net.fit(loader(), epochs, callbacks=keeps, progress=False).rows

    with pytest.raises(ValueError, match="found no optimizer in the attributes of Bare"):
        run(1, tmp_path / "none", state=None)
    run(2, tmp_path / "parts")
    assert run(4, tmp_path / "parts") == run(4, tmp_path / "whole")


def test_a_checkpoint_of_other_callbacks_is_refused(tmp_path):
    def run(*more):
        given = [callbacks.Checkpoint(tmp_path), *more]
        made().fit(loader(), 1, callbacks=given, progress=False)

    run()
    with pytest.raises(CheckpointError), pytest.warns(UserWarning, match="passed over"):
        run(callbacks.EarlyStopping("loss"))


# ---- figures that are no numbers -----------------------------------------------------------------

MATRIX = {"validation": HELD, "metrics": [metric.ConfusionMatrix(3)], "progress": False}


def test_a_run_goes_on_whose_metric_is_a_matrix(tmp_path):
    def run(epochs, folder):
        kept = callbacks.Checkpoint(folder, best=("val_loss", "min"))
        return made().fit(loader(), epochs, callbacks=kept, **MATRIX)

    whole = run(3, tmp_path / "whole")
    run(2, tmp_path / "parts")
    again = run(3, tmp_path / "parts")
    for name in ("confusion_matrix", "val_confusion_matrix"):
        np.testing.assert_array_equal(again[name], whole[name])
    assert again["loss"] == whole["loss"] and np.sum(again[-1]["val_confusion_matrix"]) == 12


@pytest.mark.parametrize(
    ("make", "who"),
    [
        (lambda folder, name: callbacks.EarlyStopping(name, mode="min"), "EarlyStopping"),
        (lambda folder, name: callbacks.ObservePlateau(name), "ObservePlateau"),
        (lambda folder, name: callbacks.Checkpoint(folder, best=(name, "min")), "Checkpoint: best"),
    ],
)
def test_callbacks_want_figures_that_are_numbers(tmp_path, make, who):
    given = make(tmp_path, "val_confusion_matrix")
    message = rf"{who}: val_confusion_matrix is no number, got ndarray of shape \(3, 3\)"
    with pytest.raises(TypeError, match=message):
        made().fit(loader(), callbacks=given, **MATRIX)


# ---- TensorBoard ---------------------------------------------------------------------------------


def test_tensorboard_says_how_to_install_it(monkeypatch, tmp_path):
    found = builtins.__import__

    def without(name, *more):
        if name.partition(".")[0] == "tensorboard":
            raise ModuleNotFoundError("No module named 'tensorboard'")
        return found(name, *more)

    monkeypatch.delitem(sys.modules, "singa_rs.module.events", raising=False)
    monkeypatch.delattr(module, "events", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match="TensorBoard: .*: pip install tensorboard"):
        callbacks.TensorBoard(tmp_path)


def test_tensorboard_reads_the_figures(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    board = callbacks.TensorBoard(tmp_path / "run")
    history = made().fit(loader(), 3, callbacks=board, **MATRIX)
    (path,) = (tmp_path / "run").iterdir()
    events = [one for one in EventFileLoader(str(path)).Load() if one.step]
    assert [one.step for one in events] == [1, 2, 3]
    for event, row in zip(events, history, strict=True):
        read = {one.tag: one.tensor.float_val[0] for one in event.summary.value}
        assert read == pytest.approx({name: row[name] for name in ("loss", "val_loss")})


def test_tensorboard_is_closed_after_an_error(tmp_path):
    pytest.importorskip("tensorboard")
    board, net = callbacks.TensorBoard(tmp_path / "run"), made()

    class Fails(callbacks.Callback):
        def on_epoch_end(self, run):
            assert board._writer is not None
            raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        net.fit(loader(), callbacks=[board, Fails()], progress=False)
    assert board._writer is None


def test_callbacks_check_their_arguments(tmp_path):
    for wrong, message in (
        (lambda: callbacks.EarlyStopping("val_accuracy"), "got no mode for 'val_accuracy'"),
        (lambda: callbacks.EarlyStopping(patience=0), "EarlyStopping: patience"),
        (lambda: callbacks.EarlyStopping(mode="most"), "EarlyStopping: mode: got 'most'"),
        (lambda: callbacks.Checkpoint(tmp_path, every=0), "Checkpoint: every: got 0"),
        (lambda: callbacks.Checkpoint(tmp_path, best=("loss", "low")), "best: got 'low'"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(ValueError, match="got figures loss, want 'val_loss' among them"):
        made().fit(loader(), callbacks=callbacks.EarlyStopping(), progress=False)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: callbacks.EarlyStopping(5), "EarlyStopping: monitor: got 5, want the name"),
        (lambda: callbacks.EarlyStopping(None), "EarlyStopping: monitor: got None"),
        (lambda: callbacks.ObservePlateau(3), "ObservePlateau: monitor: got 3"),
        (
            lambda: callbacks.ObservePlateau("loss", "sgd"),
            "ObservePlateau: optimizer: got 'sgd', want an optimizer or None",
        ),
    ],
)
def test_arguments_of_other_types(make, message):
    with pytest.raises(TypeError, match=message):
        make()
