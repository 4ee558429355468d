"""Files are replaced whole or not at all, and only regular files are read or replaced."""

import os
import socket
import stat
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest
from archives import same, small, values
from singa_rs import CheckpointError, data, files
from singa_rs.tensor import Tensor


def kinds(tmp_path):
    """Paths of things other than regular files."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    server.close()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "to the device").symlink_to("/dev/null")
    names = ["folder", "pipe", "socket", "link", "to the device"]
    return [*(tmp_path / name for name in names), "/dev/null", "/dev/zero", tmp_path]


def test_irregular_files_are_refused(tmp_path):
    net = small()
    before = values(net)
    for path in kinds(tmp_path):
        kept = os.lstat(path)
        for call in (net.save_states, net.load_states, data.read_idx):
            with pytest.raises(CheckpointError, match=r"want a regular file") as caught:
                call(path)
            assert isinstance(caught.value, OSError) and call.__name__ in str(caught.value)
        assert os.lstat(path)[:2] == kept[:2] and os.lstat(path).st_mode == kept.st_mode
    same(values(net), before)
    names = {"folder", "pipe", "socket", "link", "to the device"}
    assert set(os.listdir(tmp_path)) == names and os.listdir(tmp_path / "folder") == []


def test_a_device_node_stays_one(tmp_path):
    node = tmp_path / "node"
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        pytest.skip("may not make device nodes")
    with pytest.raises(CheckpointError, match="device"):
        small().save_states(node)
    assert stat.S_ISCHR(os.lstat(node).st_mode)


def test_the_target_of_a_link_is_replaced(tmp_path):
    (tmp_path / "in").mkdir()
    real, link, net = tmp_path / "in" / "real", tmp_path / "link", small()
    link.symlink_to("in/real")
    for _ in range(2):  # at first the link is dangling
        net.save_states(link)
        assert link.is_symlink() and zipfile.is_zipfile(real) and not real.is_symlink()
        net.load_states(link)
    assert sorted(os.listdir(tmp_path)) == ["in", "link"] and os.listdir(real.parent) == ["real"]
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for call in (net.save_states, net.load_states):
        with pytest.raises(OSError):
            call(loop)
    assert loop.is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o664, 0o400, 0o777])
def test_permissions_are_kept(tmp_path, mode):
    path, net = tmp_path / "s", small()
    net.save_states(path)
    path.chmod(mode)
    net.save_states(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_files_have_the_usual_permissions(tmp_path, mask):
    before = os.umask(mask)
    try:
        small().save_states(tmp_path / "s")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o666 & ~mask


def test_a_replacement_is_private_until_it_is_complete(tmp_path, monkeypatch):
    path, net, seen = tmp_path / "s", small(), []
    net.save_states(path)
    path.chmod(0o600)
    write = np.lib.format.write_array

    def look(*args, **kwargs):
        seen.extend(stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir())
        return write(*args, **kwargs)

    monkeypatch.setattr(np.lib.format, "write_array", look)
    net.save_states(path)
    assert set(seen) == {0o600} and len(seen) > 4


FAILURES = {
    "fsync": OSError("disk full"),
    "replace": PermissionError("not yours"),
    "chmod": OSError("not here"),
    "chown": KeyboardInterrupt(),
}


@pytest.mark.parametrize("function", FAILURES)
def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch, function):
    path, net = tmp_path / "s", small()
    net.save_states(path)
    before = path.read_bytes()
    net.first.W.set_value(3.0)

    def fail(*_args, **_kwargs):
        raise FAILURES[function]

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(type(FAILURES[function])):
            net.save_states(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["s"]
    net.save_states(path)
    assert path.read_bytes() != before and os.listdir(tmp_path) == ["s"]


@pytest.mark.parametrize("call", ["save", "save_states"])
def test_a_full_disk_is_named_with_the_operation_and_the_file(tmp_path, call):
    """That of a limit on the size of files says the same in the same way."""
    code = f"""
        import resource, signal
        import singa_rs as singa
        from singa_rs import layer, module

        class Net(module.Module):
            def __init__(self):
                super().__init__()
                self.a = layer.Linear(2)

            def forward(self, x):
                return self.a(x)

        net, path = Net(), {str(tmp_path / "s")!r}
        net.compile([singa.Placeholder((2, 3))])
        net.{call}(path)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        try:
            net.{call}(path)
        except OSError as error:
            assert error.filename == path and str(error.strerror).startswith("{call}: "), error
        else:
            raise AssertionError
    """
    pytest.importorskip("resource")
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    names = ["s"] if call == "save_states" else ["s.onnx", "s.state.safetensors"]
    assert sorted(os.listdir(tmp_path)) == names


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        call = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, call=call, name=name: (done.append(name), call(*a))[1]
        )
    small().save_states(tmp_path / "s")
    assert done == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize("wrong", [None, 3, 1.5, [], {}, Tensor((1,)), object()])
def test_values_other_than_paths(wrong):
    net = small()
    for call in (net.save_states, net.load_states, data.read_idx, data.load_mnist):
        with pytest.raises(TypeError, match=f"{call.__name__}: got .*, want a path"):
            call(wrong)


@pytest.mark.parametrize("wrong", ["a\0b", b"a\0b", "a\ud800b"])
def test_invalid_paths(wrong):
    net = small()
    for call in (net.save_states, net.load_states, data.read_idx):
        with pytest.raises(ValueError, match=f"{call.__name__}: got"):
            call(wrong)


def test_paths_are_text_bytes_or_path_like(tmp_path):
    net = small()
    for path in (str(tmp_path / "a"), os.fsencode(tmp_path / "b"), tmp_path / "c"):
        net.save_states(path)
        net.load_states(path)
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_names_that_are_none(tmp_path):
    net = small()
    for path in ("", f"{tmp_path}/none/", tmp_path / "none" / "s"):
        for call in (net.save_states, net.load_states):
            with pytest.raises(OSError):
                call(path)
    assert os.listdir(tmp_path) == []


def test_a_bare_name_has_its_directory_flushed(tmp_path, monkeypatch):
    opened = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files.os, "open", lambda path, flags: opened.append(path) or 10**6)
    files.flush_directory("net.bin")
    files.flush_directory(str(tmp_path / "net.bin"))
    assert opened == [".", str(tmp_path)]
