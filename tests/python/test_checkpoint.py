"""Checkpoints: what goes in comes out, and a run goes on from one to the bit."""

import itertools
import os
import random
import stat
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from checkpoint_nets import ROWS, Net, Run, same, values
from safetensors import safe_open
from singa_rs import CheckpointError, GraphError, device, layer, module, opt, tensor
from singa_rs.module.checkpoint import onnx_writing
from singa_rs.tensor import Placeholder, Tensor, from_numpy

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64",
    "uint32", "uint16", "uint8", "bool",
]  # fmt: skip


@pytest.fixture
def net():
    made = Net()
    made(ROWS[:8], np.arange(8, dtype=np.int32) % 3)
    return made


# ---- a run goes on -------------------------------------------------------------------------------


@pytest.mark.parametrize("use_graph", [True, False])
@pytest.mark.parametrize("done", [0, 1, 3, 7, 10])
def test_a_run_goes_on_to_the_bit(tmp_path, done, use_graph):
    whole = Run(1, use_graph)
    whole.steps(done, tmp_path / "at")
    # The iteration that the checkpoint interrupts is gone on with, as the resumed one does.
    whole.resume(tmp_path / "at")
    expected = whole.steps(12)
    resumed = Run(99, use_graph).resume(tmp_path / "at")
    assert resumed.steps(12) == expected and resumed.losses == whole.losses
    same(values(resumed.net), values(whole.net))
    state = device.get_default_device().get_rng_state()
    Run(99, use_graph).resume(tmp_path / "at").steps(12)
    np.testing.assert_array_equal(state, device.get_default_device().get_rng_state())


def test_saving_disturbs_nothing(tmp_path):
    quiet, noisy = Run(3), Run(3)
    device.get_default_device().set_seed(3)
    expected = quiet.steps(6)
    device.get_default_device().set_seed(3)
    seen = list(itertools.chain.from_iterable(noisy.steps(1) for _ in range(1)))
    noisy.net.save(tmp_path / "a", noisy.state)
    noisy.net.save(tmp_path / "b")
    assert seen == expected[:1]
    noisy.loader.load_state_dict(noisy.loader.state_dict())
    assert seen + noisy.steps(5) == expected


def test_a_run_goes_on_in_another_process(tmp_path):
    whole = Run(5)
    whole.steps(4, tmp_path / "at")
    expected = whole.resume(tmp_path / "at").steps(5)
    code = f"from checkpoint_nets import *; print(Run(8).resume({str(tmp_path / 'at')!r}).steps(5))"
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=here
    )
    assert done.stdout.strip() == str(expected)


# ---- random numbers ------------------------------------------------------------------------------


def test_the_state_of_random_numbers():
    dev = device.get_default_device()
    dev.set_seed(4)
    before = dev.get_rng_state()
    assert before.dtype == np.uint64 and before.shape == (2, 2)

    def draw():
        dropped = tensor.ones((64,)) * 1
        from singa_rs import autograd

        with autograd._training_scope(True):
            masks = autograd.dropout(dropped, 0.5).tolist()
        return masks, Tensor((5,)).gaussian(0, 1).tolist(), Tensor((5,)).uniform(0, 1).tolist()

    first, second = draw(), draw()
    assert first != second
    after = dev.get_rng_state()
    dev.set_rng_state(before)
    assert [draw(), draw()] == [first, second]
    np.testing.assert_array_equal(dev.get_rng_state(), after)
    dev.set_seed(2**63 - 1)
    kept = dev.get_rng_state()
    made = draw()
    dev.set_rng_state(kept)
    assert draw() == made


def test_replayed_steps_advance_the_state():
    dev, states = device.get_default_device(), []
    for use_graph in (True, False):
        run = Run(6, use_graph)
        states.append([(run.steps(1), dev.get_rng_state().tolist())[1] for _ in range(6)])
    assert states[0] == states[1] and len(set(map(str, states[0]))) == 6


@pytest.mark.parametrize(
    "wrong, error",
    [
        (None, TypeError), ([[0, 0], [1, 0]], TypeError), (np.zeros((2, 2)), TypeError),
        (np.zeros((2, 2), np.int64), TypeError), (np.zeros(4, np.uint64), ValueError),
        (np.zeros((2, 2), np.uint64), ValueError), (np.array([[1, 0], [2, 0]], "u8"), ValueError),
        (np.array([[2, 0], [5, 0]], "u8"), ValueError),
    ],
)  # fmt: skip
def test_states_that_are_none(wrong, error):
    dev = device.get_default_device()
    before = dev.get_rng_state()
    with pytest.raises(error, match="set_rng_state: got"):
        dev.set_rng_state(wrong)
    np.testing.assert_array_equal(dev.get_rng_state(), before)


def test_states_within_a_recording_are_refused():
    dev = device.get_default_device()
    state = dev.get_rng_state()
    with dev.record():
        with pytest.raises(GraphError, match="get_rng_state: a step is being recorded"):
            dev.get_rng_state()
        with pytest.raises(GraphError, match="set_rng_state: a step is being recorded"):
            dev.set_rng_state(state)
    np.testing.assert_array_equal(dev.get_rng_state(), state)


# ---- what is saved -------------------------------------------------------------------------------


def test_both_files_are_valid(tmp_path, net):
    net.save(tmp_path / "net", {"epoch": 3, "sgd": net.optimizer})
    assert sorted(os.listdir(tmp_path)) == ["net.onnx", "net.state.safetensors"]
    model = onnx.load(tmp_path / "net.onnx")
    onnx.checker.check_model(model)
    found = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    same(found, values(net))
    with safe_open(tmp_path / "net.state.safetensors", "np") as held:
        assert "state/sgd/m/first.W" in held.keys()  # noqa: SIM118 - it is no dictionary
        moment = held.get_tensor("state/sgd/m/first.W")
    np.testing.assert_array_equal(moment, net.optimizer.get_states()["m"]["first.W"].to_numpy())


def test_a_model_without_a_form_in_onnx(tmp_path):
    class Reads(module.Module):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(2)

        def forward(self, x):
            return self.fc(x) * (1 if x.mean().item() > 0 else 2)

    net = Reads()
    net(ROWS)
    before = values(net)
    with pytest.warns(UserWarning, match="save: Reads: .*not the network: ") as caught:
        net.save(tmp_path / "net", {"epoch": 1})
    assert len(caught) == 1 and caught[0].filename == __file__
    net.fc.W.set_value(0)
    assert net.load(tmp_path / "net", include_state=True, strict=True) == {"epoch": 1}
    same(values(net), before)


def test_states_with_the_names_of_inputs_and_results(tmp_path):
    class Odd(module.Module):
        def __init__(self):
            super().__init__()
            self.x, self.y = layer.Linear(2), Tensor(data=np.ones(2), stores_grad=True)
            self.x_, self.add_1 = (Tensor(data=np.ones(2), stores_grad=True) for _ in range(2))

        def forward(self, x):
            return self.x(x) + self.y * self.x_ + self.add_1

    made = Odd()
    made.compile([from_numpy(ROWS)], is_train=False)
    expected = made(from_numpy(ROWS)).to_numpy()
    made.save(tmp_path / "net")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: ROWS})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    made.load(tmp_path / "net", strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (2, 3)])
def test_every_dtype(tmp_path, dtype, shape):
    class Holder(module.Module):
        def __init__(self, array):
            super().__init__()
            self.held = Tensor(data=array, dtype=dtype, requires_grad=False)

    array = np.random.default_rng(0).integers(0, 2, shape)
    saved, loaded = Holder(array), Holder(np.zeros(shape))
    saved.save(tmp_path / "s", {"held": saved.held})
    found = loaded.load(tmp_path / "s", include_state=True)["held"]
    assert (found.dtype, found.shape) == (saved.held.dtype, saved.held.shape)
    for one in (found, loaded.held):
        np.testing.assert_array_equal(one.to_numpy(), saved.held.to_numpy())


def test_bits_of_short_floats(tmp_path):
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = (every.astype(np.uint32) << 16).view(np.float32)
    wide = wide[~np.isnan(wide)]
    held = from_numpy(wide, dtype="bfloat16")
    lone = module.Module()
    lone.held = held
    lone.save(tmp_path / "s", {"held": held})
    held.set_value(0)
    found = lone.load(tmp_path / "s", include_state=True)["held"]
    for one in (found, held):
        np.testing.assert_array_equal(one.to_numpy().view(np.uint32), wide.view(np.uint32))


STATES = {
    "plain": {"a": 1, "b": -2.5, "c": "text", "d": None, "e": True, "f": False, "": "", "é": "ü"},
    "numbers": [2**200, -(2**64), 1e-320, 0.1, float("inf"), float("-inf")],
    "nested": {"a": [{"b": [[], {}, ()]}, (1, (2, [3])), [[]]], "a.b": 1, "a/b": 2},
    "marks": {"$tensor": 1, "$": 2, "$$x": {"$object": {"$array": "a", "dtype": "b"}}},
    "long numbers": [10**5000, -(10**5000), 2**2048, 2**2048 - 1, {"$int": "0x1"}],
    "long texts": ["," * (1 << 20), "[" * (1 << 18), '\\"{' * (1 << 18), '\\\\"' * 9, '"['],
    "surrogate": ["\ud800", "\0", "\n", "\u2028"],
}


@pytest.mark.parametrize("name", STATES)
def test_states_come_back(tmp_path, net, name):
    net.save(tmp_path / "s", {"x": STATES[name]})
    assert net.load(tmp_path / "s", include_state=True) == {"x": STATES[name]}


def test_arrays_come_back(tmp_path, net):
    arrays = {
        "wide": np.arange(6).reshape(2, 3), "turned": np.arange(6.0).reshape(2, 3).T,
        "swapped": np.arange(3, dtype=">i4"), "empty": np.zeros((0, 4)), "scalar": np.float32(0.1),
        "flag": np.bool_(True), "zero-d": np.array(3, np.int8), "half": np.float16([1.5]),
        "stepped": np.arange(10)[::3], "kept/apart": np.zeros(1), "$": np.ones(1),
        "kept": {"apart": np.ones(1)},
    }  # fmt: skip
    net.save(tmp_path / "s", arrays)
    found = net.load(tmp_path / "s", include_state=True)
    assert isinstance(found["scalar"], np.float32) and isinstance(found["flag"], np.bool_)
    assert found["kept"]["apart"] == [1] and found["kept/apart"] == [0]
    for key in arrays.keys() - {"kept"}:
        assert found[key].dtype == arrays[key].dtype.newbyteorder("="), key
        np.testing.assert_array_equal(found[key], arrays[key])
    found["wide"][:] = 7  # it is a copy
    assert net.load(tmp_path / "s", include_state=True)["wide"][0, 0] == 0


def test_objects_tell_their_states(tmp_path, net):
    python, old = random.Random(3), np.random.RandomState(4)
    state = OrderedDict(python=python, old=[old, (opt.MovingAverage(0.9), net.head)])
    net.save(tmp_path / "s", state)
    expected = python.random(), old.normal()
    python.seed(9), old.seed(9)
    found = net.load(tmp_path / "s", state=state)
    assert (python.random(), old.normal()) == expected
    assert found["old"][1][0]["step_counter"] == 0
    np.testing.assert_array_equal(found["old"][1][1]["head.W"].to_numpy(), values(net)["head.W"])


class Odd:
    pass


@pytest.mark.parametrize(
    "wrong",
    [
        Odd(), Odd, opt.SGD, {1: 2}, b"bytes", {1, 2}, 3j, np.array(["text"]), np.array([3j]),
        np.array([object()]), np.longdouble(3), np.ma.masked_array([1], [True]), print,
        np.datetime64("2020"), {"deep": {3: 4}},
    ],
)  # fmt: skip
def test_states_that_cannot_be_saved(tmp_path, net, wrong):
    net.save(tmp_path / "s", {"epoch": 1})
    with pytest.raises(TypeError, match=r"save: state\.x(\.deep)?: got"):
        net.save(tmp_path / "s", {"x": wrong})
    assert net.load(tmp_path / "s", include_state=True) == {"epoch": 1}
    assert len(os.listdir(tmp_path)) == 2


def test_states_without_values_or_ends(tmp_path, net):
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply"):
        net.save(tmp_path / "s", {"x": endless})
    with pytest.raises(GraphError, match=r"save: state\.x\.0 is an unfilled"):
        net.save(tmp_path / "s", {"x": [Placeholder((2,))]})
    for wrong in (3, "abc", [1]):
        with pytest.raises(TypeError, match="save: state: got"):
            net.save(tmp_path / "s", wrong)
        with pytest.raises(TypeError, match="load: state: got"):
            net.load(tmp_path / "s", state=wrong)
    with pytest.raises(CheckpointError, match="save: .*state: it takes .*want at most"):
        net.save(tmp_path / "s", {"x": list(range(2_000_000))})
    assert os.listdir(tmp_path) == []


def test_a_model_without_parameters(tmp_path):
    with pytest.raises(CheckpointError, match="save: BatchNorm1d, Linear: .*call the model"):
        Net().save(tmp_path / "s")
    assert os.listdir(tmp_path) == []


def test_the_packages_are_imported_when_they_are_needed():
    code = (
        "import sys, singa_rs; from singa_rs import data, layer, module, opt; "
        "assert not {'onnx', 'safetensors'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- where it is saved ---------------------------------------------------------------------------


def test_paths(tmp_path, net, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net.save("a.onnx")
    net.save(tmp_path / "b.c")
    assert sorted(os.listdir()) == [
        "a.onnx", "a.state.safetensors", "b.c.onnx", "b.c.state.safetensors",
    ]  # fmt: skip
    assert net.load("a") == net.load("a.onnx") == net.load("b.c", include_state=True) == {}
    for wrong in ("", "folder/", ".onnx"):
        with pytest.raises(CheckpointError, match="save: .*does not name a file"):
            net.save(wrong)
    for wrong in (None, 3, b"\0", []):
        for call in (net.save, net.load):
            with pytest.raises((TypeError, ValueError), match=f"{call.__name__}: got"):
                call(wrong)
    with pytest.raises(FileNotFoundError, match="missing"):
        net.save("missing/net")
    with pytest.raises(CheckpointError, match="no such file"):
        net.load("nothing")
    os.mkdir("folder.onnx")
    for call in (net.save, net.load):
        with pytest.raises(CheckpointError, match="want a regular file"):
            call("folder")
    assert len(os.listdir()) == 5


def test_links_and_permissions_are_kept(tmp_path, net):
    (tmp_path / "in").mkdir()
    link, real = tmp_path / "net.onnx", tmp_path / "in" / "net.onnx"
    link.symlink_to("in/net.onnx")
    net.save(tmp_path / "net")
    real.chmod(0o640)
    net.head.b.set_value(3)
    net.save(tmp_path / "net")
    assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
    net.head.b.set_value(0)
    net.load(tmp_path / "net")
    assert net.head.b.tolist() == [3, 3, 3]
    assert os.listdir(tmp_path / "in") == ["net.onnx"] and len(os.listdir(tmp_path)) == 3


def test_large_models_have_a_file_of_elements(tmp_path, net, monkeypatch):
    monkeypatch.setattr(onnx_writing, "EMBEDDED", 100)
    names = []
    for value in (1, 2):
        net.head.b.set_value(value)
        net.save(tmp_path / "net", {"value": value})
        names.append(next(one for one in os.listdir(tmp_path) if one.endswith(".data")))
        assert len(os.listdir(tmp_path)) == 3
    assert len(set(names)) == 2
    onnx.checker.check_model(tmp_path / "net.onnx")
    (tmp_path / "net.onnx").chmod(0o600)
    net.save(tmp_path / "net", {"value": 2})
    modes = {p.suffix: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert modes[".onnx"] == modes[".data"] == 0o600
    names = [one for one in os.listdir(tmp_path) if one.endswith(".data")]
    found = {
        one.name: onnx.numpy_helper.to_array(one)
        for one in onnx.load(tmp_path / "net.onnx").graph.initializer
    }
    same(found, values(net))
    net.head.b.set_value(0)
    assert net.load(tmp_path / "net", include_state=True) == {"value": 2}
    assert net.head.b.tolist() == [2, 2, 2]
    os.unlink(tmp_path / names[0])
    with pytest.raises(CheckpointError, match="which is missing"):
        net.load(tmp_path / "net")
