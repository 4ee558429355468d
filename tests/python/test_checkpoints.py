"""The checkpoints of a run: the last ones and the best stay, and the newest whole one is found."""

import os

import numpy as np
import pytest
from checkpoint_nets import ROWS, Net, Run, interrupted_save, same, values
from singa_rs import CheckpointError, opt
from singa_rs.module import Checkpoints
from singa_rs.tensor import Tensor


@pytest.fixture
def net():
    made = Net()
    made(ROWS[:8], np.arange(8, dtype=np.int32) % 3)
    return made


def names(*steps):
    ends = ("onnx", "state.safetensors")
    return sorted(f"step-{step:08d}.{end}" for step in steps for end in ends)


def test_the_last_ones_and_the_best_stay(tmp_path, net):
    kept = Checkpoints(tmp_path / "runs" / "a", every=2, keep=2, best=("loss", "min"))
    (tmp_path / "runs" / "a" / "notes.txt").write_text("mine")
    losses = {2: 3.0, 4: 1.0, 6: 2.0, 8: np.nan, 10: 1.5}
    staying = {2: (2,), 4: (2, 4), 6: (4, 6), 8: (4, 6, 8), 10: (4, 8, 10)}
    for step in range(1, 11):
        is_saved = kept.after(step, net, {"epoch": step}, {"loss": losses.get(step, 0), "other": 1})
        assert is_saved == (step % 2 == 0)
        if is_saved:
            assert sorted(os.listdir(kept.folder)) == sorted([*names(*staying[step]), "notes.txt"])
    assert kept.steps() == [4, 8, 10] and kept.best_step() == 4
    odd = Checkpoints(tmp_path / "odd", keep=1, best=("$loss", "max"))
    for step, loss in enumerate((1, 3, 2)):
        odd.save(step, net, None, {"$loss": loss})
    assert odd.steps() == [1, 2] and odd.best_step() == 1
    again = Checkpoints(kept.folder, keep=1, best=("loss", "max"))
    assert again.best_step() == 10 and Checkpoints(kept.folder).best_step() is None
    again.save(11, net, None, {"loss": Tensor(data=[1.5])})
    assert again.steps() == [11] and again.best_step() == 11


def test_the_newest_whole_one_is_found(tmp_path, net):
    kept = Checkpoints(tmp_path, keep=3)
    assert kept.resume(net) is None
    for step in (1, 2, 3):
        net.head.b.set_value(step)
        kept.save(step, net, {"epoch": step, "sgd": net.optimizer}, {"loss": step / 2})
    held = {"sgd": net.optimizer}
    found = kept.resume(net, held)
    assert (found.step, found.metrics, found.state["epoch"]) == (3, {"loss": 1.5}, 3)
    path = tmp_path / "step-00000003.state.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="passed over: load: .*step-00000003") as caught:
        assert kept.resume(net, held).step == 2
    assert len(caught) == 1 and caught[0].filename == __file__
    assert net.head.b.tolist() == [2, 2, 2]
    os.unlink(tmp_path / "step-00000002.onnx")
    with pytest.warns(UserWarning, match="step-0000000[23]"):
        assert kept.resume(net, held).step == 1
    assert kept.resume(net, held, step=1).state["epoch"] == 1
    with pytest.warns(UserWarning), pytest.raises(CheckpointError, match="step-00000003"):
        kept.resume(Net(), {"sgd": opt.SGD(0.1)})
    kept.save(4, net)
    assert kept.steps() == [2, 3, 4]
    for step in (5, 6, 7):
        kept.save(step, net)
    assert sorted(os.listdir(tmp_path)) == names(5, 6, 7)


def test_a_run_goes_on_to_the_bit(tmp_path):
    whole, kept = Run(3), Checkpoints(tmp_path, every=4)
    for step in range(9):
        whole.steps(1)
        if kept.after(step + 1, whole.net, whole.state):
            kept.resume(whole.net, whole.state)  # which interrupts the epoch, as resuming does
    resumed = Run(4)
    done = kept.resume(resumed.net, resumed.state)
    resumed.losses = done.state["losses"]
    for _ in range(done.step, 9):
        resumed.steps(1)
    assert done.step == 8 and resumed.losses == whole.losses
    same(values(resumed.net), values(whole.net))


def test_an_interrupted_save_is_resumed(tmp_path, net, monkeypatch):
    kept = Checkpoints(tmp_path)
    with interrupted_save(monkeypatch):
        kept.save(1, net, {"epoch": 1})
    assert kept.resume(net).state == {"epoch": 1}
    for step in (2, 3, 4):
        kept.save(step, net)
    assert sorted(os.listdir(tmp_path)) == names(2, 3, 4)


@pytest.mark.parametrize(
    "options, error",
    [
        ({"every": 0}, "every: got 0"), ({"keep": 0}, "keep: got 0"), ({"keep": 1.5}, "keep: got"),
        ({"best": "loss"}, "best"), ({"best": ("loss", "least")}, "best: got 'least'"),
        ({"best": (1, "min")}, "best"), ({"folder": None}, "got NoneType, want a path"),
    ],
)  # fmt: skip
def test_wrong_options(tmp_path, options, error):
    with pytest.raises((TypeError, ValueError), match=f"Checkpoints.*{error}"):
        Checkpoints(**{"folder": tmp_path, **options})


def test_wrong_saves(tmp_path, net):
    kept = Checkpoints(tmp_path, best=("loss", "min"))
    for step in (-1, 1.5, None, True):
        for call in (kept.save, kept.after):
            with pytest.raises((TypeError, ValueError), match="step: got"):
                call(step, net, None, {"loss": 1})
    for metrics in (None, {}, {"los": 1}):
        with pytest.raises(ValueError, match="want 'loss' among them"):
            kept.save(1, net, None, metrics)
    for wrong in ("x", None, [1], np.zeros(2), Tensor((2,))):
        with pytest.raises(TypeError, match="save: loss: got .*want a number"):
            kept.save(1, net, None, {"loss": wrong})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("wrong", [opt.SGD(0.1), {}, "net", None])
def test_what_is_no_model(tmp_path, wrong):
    kept = Checkpoints(tmp_path)
    for call in (lambda: kept.save(1, wrong), lambda: kept.after(1, wrong)):
        with pytest.raises(TypeError, match="Checkpoints.(save|after): model: got .*, want a"):
            call()
    with pytest.raises(TypeError, match="Checkpoints.resume: model: got .*, want a Module"):
        kept.resume(wrong)
