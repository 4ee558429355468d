"""Steps that cannot be saved, and files that cannot be loaded."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
import singa_rs
from singa_rs import autograd, layer, module, tensor
from singa_rs.tensor import from_numpy
from step_models import made

X = np.ones((2, 3), np.float32)


class Bare(module.Module):
    """A layer, with more to do in subclasses."""

    def __init__(self):
        super().__init__()
        self.fc = layer.Linear(2)
        self.count, self.first, self.h = 0, True, tensor.zeros((2, 2))

    def forward(self, x):
        return self.more(self.fc(x))


class ReadsCount(Bare):
    def more(self, out):
        self.count += 1
        return out * self.count


class First(Bare):
    def more(self, out):
        self.first, before = False, self.first
        return out if before else out + 1


class Recurs(Bare):
    def more(self, out):
        self.h = out + self.h
        return self.h


class Prints(Bare):
    def more(self, out):
        return out * float(out.to_numpy()[0, 0])


class Draws(Bare):
    def more(self, out):
        return out * float(np.random.default_rng().normal())


class Double(autograd.Operator):
    host = True

    def infer(self, x):
        return x

    def forward(self, x):
        return x * 2


class Hosts(Bare):
    def more(self, out):
        return Double()(out)[0]


REFUSED = {
    ReadsCount: "two calls differ",
    First: "two calls differ",
    Recurs: "two calls differ",
    Prints: "a value is read while a step is recorded|only recorded",
    Draws: "two calls differ",
    Hosts: "save_step: .* runs user code",
}


@pytest.mark.parametrize("cls", REFUSED, ids=lambda cls: cls.__name__)
def test_steps_that_need_their_program_are_refused(cls, tmp_path):
    model = cls().eval()
    before = dict(count=model.count, first=model.first, h=model.h)
    with pytest.raises(singa_rs.GraphError, match=REFUSED[cls]):
        model.save_step(tmp_path / "step.srs", X)
    assert os.listdir(tmp_path) == []
    assert all(getattr(model, name) is value for name, value in before.items())


class Counts(Bare):
    def more(self, out):
        self.count += 1
        self.last = out
        return out


def test_what_a_step_only_writes_for_its_program_is_left_out(tmp_path):
    model = Counts().eval()
    model.save_step(tmp_path / "step.srs", X)
    assert model.count == 0 and not hasattr(model, "last")
    step = singa_rs.Step.load(tmp_path / "step.srs")
    assert step.run(X)[0].to_numpy().tobytes() == model(from_numpy(X)).to_numpy().tobytes()


def test_taps_and_parameters_as_arguments_are_refused(tmp_path):
    model = Counts().eval()
    model(from_numpy(X))
    with pytest.raises(singa_rs.GraphError, match="an argument is a parameter"):
        model.save_step(tmp_path / "step.srs", model.fc.W)
    with model.tap("fc"), pytest.raises(singa_rs.GraphError, match="has taps: fc"):
        model.save_step(tmp_path / "step.srs", X)
    model.save_step(tmp_path / "step.srs", X)


def test_paths_are_checked(tmp_path):
    model = Counts().eval()
    with pytest.raises(TypeError, match="save_step: got int, want a path"):
        model.save_step(3, X)
    with pytest.raises(singa_rs.CheckpointError, match="is a directory"):
        model.save_step(tmp_path, X)
    with pytest.raises(OSError):
        model.save_step(tmp_path / "none" / "step.srs", X)
    with pytest.raises(singa_rs.CheckpointError, match="no such file"):
        singa_rs.Step.load(tmp_path / "none.srs")
    with pytest.raises(singa_rs.CheckpointError, match="is a directory"):
        singa_rs.Step.load(tmp_path)
    with pytest.raises(TypeError, match="for device"):
        singa_rs.Step.load(tmp_path / "none.srs", device="cpu")


def test_the_exception_of_the_file_is_raised(tmp_path):
    model, given = made("mlp")
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    model.save_step(tmp_path / "step.srs", *given[0])
    step = singa_rs.Step.load(tmp_path / "step.srs")
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space"):
        step._step.write(full)


class Slow(io.BytesIO):
    """A file that takes some bytes at a time, as unbuffered ones may."""

    def write(self, data):
        return super().write(bytes(data)[:100])


def test_files_that_write_a_part_are_given_the_rest(tmp_path):
    model, given = made("mlp")
    model.save_step(tmp_path / "step.srs", *given[0])
    step, slow = singa_rs.Step.load(tmp_path / "step.srs"), Slow()
    step._step.write(slow)
    assert slow.getvalue() == (tmp_path / "step.srs").read_bytes()


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a step of training."""
    path = tmp_path_factory.mktemp("sound") / "step.srs"
    model, given = made("conv")
    model.save_step(path, *given[0])
    return path.read_bytes()


def test_damaged_files_are_refused(sound, tmp_path):
    path, rng = tmp_path / "step.srs", np.random.default_rng(0)
    for number in range(200):
        damaged = bytearray(sound)
        for at in rng.integers(0, len(sound), 1 + number % 3):
            damaged[at] ^= rng.integers(1, 256)
        path.write_bytes(damaged if number % 2 else damaged[: rng.integers(0, len(sound))])
        with pytest.raises(singa_rs.CheckpointError, match=f"^Step.load: {path}: "):
            singa_rs.Step.load(path)


PROGRAM = """
import resource, sys, time
import singa_rs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
try:
    singa_rs.Step.load(sys.argv[1])
except singa_rs.CheckpointError:
    pass
else:
    sys.exit("it was read")
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
seconds = time.perf_counter() - start
assert more < 64 << 10 and seconds < 1, (more, seconds)
"""


@pytest.mark.parametrize("at", [16, 24, 32])
def test_huge_sizes_take_neither_time_nor_memory(sound, tmp_path, at):
    """The lengths in the prefix, in a file that is really as long."""
    path, more = tmp_path / "step.srs", 3 << 30
    length = int.from_bytes(sound[at : at + 8], "little") + more
    path.write_bytes(sound[:at] + length.to_bytes(8, "little") + sound[at + 8 :])
    os.truncate(path, len(sound) + more)  # sparse
    done = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_step_without_arguments_of_which_no_call_was_recorded(tmp_path):
    class Doubles(Bare):
        def more(self, out):
            return out * 2

    model = Doubles().eval()
    with pytest.raises(singa_rs.GraphError, match="got no arguments for forward, and no call"):
        model.save_step(tmp_path / "step.srs")
    model.compile([X], is_train=False)
    with pytest.raises(singa_rs.GraphError, match="got no arguments for forward, and no call"):
        model.save_step(tmp_path / "step.srs")
    model(X)
    model.save_step(tmp_path / "step.srs")
    assert singa_rs.Step.load(tmp_path / "step.srs").arguments[0].shape == X.shape
