"""A process that ends while it saves, at whatever moment, leaves a whole checkpoint."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from checkpoint_nets import interrupted_save
from singa_rs import CheckpointError, module
from singa_rs.module.checkpoint import onnx_writing, pair
from singa_rs.tensor import Tensor

#: How often a saving process is killed; 200 is a thorough run.
KILLS = int(os.environ.get("SINGA_RS_KILLS", "12"))


class Numbered(module.Module):
    """A model all of whose numbers are that of the save."""

    def __init__(self, size=4):
        super().__init__()
        self.held = [Tensor((size,), stores_grad=True) for _ in range(3)]

    def save_number(self, path, number):
        for one in self.held:
            one.set_value(number)
        self.save(path, {"number": number, "array": np.full(len(self.held[0]), number)})

    def number(self, path):
        """The number of the save, in which all parts of the checkpoint agree."""
        for one in self.held:
            one.set_value(-1)
        state = self.load(path, include_state=True)
        found = {state["number"], *state["array"].tolist()}
        for one in self.held:
            found |= set(one.tolist())
        assert len(found) == 1, found
        return int(found.pop())


@pytest.fixture(params=["embedded", "data file"])
def large(request, monkeypatch):
    """Whether elements have a file of their own."""
    if request.param == "data file":
        monkeypatch.setattr(onnx_writing, "EMBEDDED", 0)


# ---- every moment, one after another -------------------------------------------------------------

CALLS = ("open", "replace", "fsync", "unlink", "close", "chmod")


def moments(folder, aside, save, monkeypatch):
    """Copies of a folder as they are before and after each call that a save makes of the system."""
    copies, copying = [], []

    def copy():
        if not copying:  # copying makes such calls, too
            copying.append(True)
            copies.append(aside / str(len(copies)))
            shutil.copytree(folder, copies[-1])
            copying.clear()

    def watched(call):
        def wrapper(*args, **kwargs):
            copy()
            try:
                return call(*args, **kwargs)
            finally:
                copy()

        return wrapper

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(pair.files.os, name, watched(getattr(os, name)))
        save()
    return copies


def test_every_moment_leaves_a_whole_checkpoint(tmp_path, monkeypatch, large):
    folder, net = tmp_path / "in", Numbered()
    folder.mkdir()
    net.save_number(folder / "net", 1)
    copies = moments(
        folder, tmp_path / "copies", lambda: net.save_number(folder / "net", 2), monkeypatch
    )
    numbers = []
    for copy in copies:
        numbers.append(net.number(copy / "net"))
        net.save_number(copy / "net", 3)  # which also removes what the interrupted save left
        assert net.number(copy / "net") == 3
        assert len(os.listdir(copy)) == len(os.listdir(folder))
    assert numbers == sorted(numbers) and set(numbers) == {1, 2} and len(numbers) > 20


def test_every_moment_of_the_first_save(tmp_path, monkeypatch, large):
    folder, net = tmp_path / "in", Numbered()
    folder.mkdir()
    found = []
    for copy in moments(
        folder, tmp_path / "copies", lambda: net.save_number(folder / "net", 2), monkeypatch
    ):
        try:
            found.append(net.number(copy / "net"))
        except CheckpointError as error:
            assert "no such file" in str(error)
            found.append(0)
    assert found == sorted(found) and set(found) == {0, 2}


def test_an_interrupted_save_is_not_mixed_with_the_next(tmp_path, monkeypatch, large):
    """Two interruptions in a row, and a save that fails in between."""
    net = Numbered()
    for number in (1, 2, 3):
        with interrupted_save(monkeypatch):
            net.save_number(tmp_path / "net", number)
        assert net.number(tmp_path / "net") == number
        with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
            patch.setattr(os, "fsync", _fail)
            net.save_number(tmp_path / "net", 9)
        assert net.number(tmp_path / "net") == number
    net.save_number(tmp_path / "net", 4)
    assert net.number(tmp_path / "net") == 4
    assert not any(name.endswith(".tmp") for name in os.listdir(tmp_path))


def _fail(*_args):
    raise OSError("disk full")


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
@pytest.mark.parametrize("at", range(5))
def test_failures_leave_the_old_checkpoint_or_the_new(tmp_path, monkeypatch, call, at, large):
    net, made = Numbered(), []
    net.save_number(tmp_path / "net", 1)
    before = sorted(os.listdir(tmp_path))
    real = getattr(os, call)

    def sometimes(*args, **kwargs):
        made.append(call)
        if len(made) == at + 1:
            raise OSError("disk full")
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(pair.files.os, call, sometimes)
        try:
            net.save_number(tmp_path / "net", 2)
        except OSError:
            is_committed = call == "replace" and at == 1
            assert net.number(tmp_path / "net") == (2 if is_committed else 1)
            assert is_committed or sorted(os.listdir(tmp_path)) == before
            return
    assert net.number(tmp_path / "net") == 2


# ---- torn pairs ----------------------------------------------------------------------------------


def test_files_of_two_saves_are_refused(tmp_path):
    net = Numbered()
    for number in (1, 2):
        net.save_number(tmp_path / f"n{number}", number)
    for one, other in ((1, 2), (2, 1)):
        shutil.copy(tmp_path / f"n{one}.onnx", tmp_path / "net.onnx")
        shutil.copy(tmp_path / f"n{other}.state.safetensors", tmp_path / "net.state.safetensors")
        net.held[0].set_value(7)
        for include_state in (True, False):
            with pytest.raises(CheckpointError, match="are of two different saves"):
                net.load(tmp_path / "net", include_state=include_state)
        assert net.held[0].tolist() == [7] * 4
        net.load_states(tmp_path / "net.onnx")
        assert net.held[0].tolist() == [one] * 4


def test_a_model_without_its_state(tmp_path):
    net = Numbered()
    net.save_number(tmp_path / "net", 5)
    os.unlink(tmp_path / "net.state.safetensors")
    assert net.load(tmp_path / "net") == {}
    with pytest.raises(CheckpointError, match=r"net\.state\.safetensors: no such file"):
        net.load(tmp_path / "net", include_state=True)


# ---- several at once -----------------------------------------------------------------------------


def test_several_threads_save_and_load(tmp_path):
    """Each load sees one save, whole."""
    Numbered().save_number(tmp_path / "net", 0)
    found, wrong, until = [], [], time.monotonic() + 2

    def work(number):
        net = Numbered()
        try:
            while time.monotonic() < until:
                if number:
                    net.save_number(tmp_path / "net", number)
                else:
                    found.append(net.number(tmp_path / "net"))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1, 2, 0)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong and set(found) >= {1, 2}
    assert len(os.listdir(tmp_path)) == 2


# ---- at random moments ---------------------------------------------------------------------------

SAVES = """
import sys
from pathlib import Path
from test_checkpoint_kill import Numbered
path, net = sys.argv[1], Numbered(200_000)
number = net.number(path)
print(number, flush=True)
while True:
    number += 1
    net.save_number(path, number)
    print(number, flush=True)
"""


@pytest.mark.timeout(120 + 10 * KILLS)
def test_processes_that_are_killed(tmp_path):
    rng, net, path = np.random.default_rng(), Numbered(200_000), tmp_path / "net"
    net.save_number(path, 0)
    last = 0
    for _ in range(KILLS):
        command = [sys.executable, "-c", SAVES, path]
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
        )
        try:
            for _ in range(2):
                child.stdout.readline()
            time.sleep(float(rng.random()) * 0.1)
        finally:
            child.send_signal(signal.SIGKILL)
            told, _ = child.communicate()
        told = [int(line) for line in told.split()]
        found = net.number(path)
        # A save that has returned is on disk; one that has not may be.
        assert found >= max([last + 1, *told]) and found <= max([last + 1, *told]) + 1
        last = found
    net.save_number(path, last + 1)
    assert sorted(os.listdir(tmp_path)) == ["net.onnx", "net.state.safetensors"]
