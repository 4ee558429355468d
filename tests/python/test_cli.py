"""The command `singa-rs`: what it prints and writes, its messages and exit statuses."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import webbrowser

import numpy as np
import pytest
import singa_rs
from singa_rs import autograd, cli, layer, module, opt
from singa_rs.cli import bench, bench_models, info
from singa_rs.tensor import from_numpy

X, Y = np.ones((4, 3), np.float32), np.int32([0, 1, 0, 1])


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.body, self.sgd = layer.Linear(2), opt.SGD(0.1)

    def forward(self, x):
        return autograd.relu(self.body(x))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.sgd(loss)
        return loss


@pytest.fixture(scope="module")
def trained():
    net = Net()
    net.compile([from_numpy(X)])
    for _ in range(3):
        net(X, Y)
    return net


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fails(capsys, *arguments):
    """What a command that fails says."""
    assert cli.main(list(map(str, arguments))) == 1
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1
    return said.err


# ---- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: command"),
        (("dance",), "invalid choice: 'dance'"),
        (("info", "more"), "unrecognized arguments: more"),
        (("view",), "the following arguments are required: file"),
        (("bench", "--steps", "0"), "argument --steps: got 0, want at least 1"),
        (("bench", "--compare", "paper"), "invalid choice: 'paper'"),
        (("run", "train.py"), "the following arguments are required: -n"),
    ],
)
def test_wrong_arguments_are_status_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["info", "view", "bench", "run"])
def test_each_command_has_help(capsys, name):
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    assert ended.value.code == 0 and f"usage: singa-rs {name}" in capsys.readouterr().out


def test_a_program_can_run_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys; sys.exit(7)")
    command = [sys.executable, "-m", "singa_rs", "run", "-n", "1", program]
    assert subprocess.run(command, capture_output=True).returncode == 7


# ---- info ----------------------------------------------------------------------------------------


def test_info_tells_what_was_found(capsys):
    assert cli.main(["info"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["python"] == ".".join(map(str, sys.version_info[:3]))
    assert lines["numpy"] == np.__version__ and lines["onnx"][0].isdigit()
    assert re.match(r"\d+ of \d+ allowed", lines["threads"])
    assert lines["instructions"] in ("baseline", "neon", "avx2", "avx512")
    assert {"processor", "quota", "memory", "GPU", "system", "mpi4py"} <= set(lines)


def test_info_says_why_there_is_no_gpu(monkeypatch):
    assert re.match("none: .*no driver", info.gpu())
    monkeypatch.setenv("SINGA_RS_DEVICE", "cpu")
    assert info.gpu() == "none: SINGA_RS_DEVICE=cpu lets the CPU answer instead"
    monkeypatch.setenv("SINGA_RS_DEVICE", "tpu")
    assert "SINGA_RS_DEVICE='tpu'" in info.gpu()


def test_info_says_what_is_missing():
    assert info.version_of("no-such-package-here") == "not installed"
    program = "import sys; from singa_rs.cli import main; sys.exit(main(['info']))"
    few = {**os.environ, "SINGA_RS_KERNELS": "portable", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=few, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search("library +portable kernels", done.stdout)
    assert re.search("threads +1 of 1 allowed", done.stdout)


# ---- view ----------------------------------------------------------------------------------------


def test_view_of_a_step(capsys, here, trained):
    trained.save_step("a<b>.srs", X, Y)
    assert cli.main(["view", "a<b>.srs"]) == 0
    assert capsys.readouterr().out == "a<b>.srs.html\n"
    page = (here / "a<b>.srs.html").read_text("utf-8")
    assert "<title>a&lt;b&gt;.srs</title>" in page and "default-src 'none'" in page
    for name in ("x", "body.W"):
        assert f'"name":"{name}"' in page, name
    assert re.search(r'"layer":"body","line":"test_cli.py:\d+","phase":"backward"', page)
    assert '"sources":{}' in page


def test_a_step_from_a_file_is_inspected_like_a_model(here, trained):
    trained.save_step("step.srs", X, Y)
    graph = singa_rs.Step.load("step.srs").graph
    (own,) = trained.graphs
    assert [row[:3] for row in graph.layers()] == [row[:3] for row in own.layers()]
    assert graph.nodes == own.nodes and graph.arena_bytes == own.arena_bytes
    assert len(graph.profile(1)) == graph.nodes


def test_view_of_a_graph(capsys, here, trained):
    graph = trained.graphs[0]
    (here / "graph.json").write_text(graph.to_json())
    assert cli.main(["view", "graph.json", "-o", "out.html"]) == 0
    page = (here / "out.html").read_text("utf-8")
    assert capsys.readouterr().out == "out.html\n"
    assert f'"arena_bytes":{graph.arena_bytes}' in page and "body.W" in page


def test_view_of_a_model(here, trained):
    trained.export("net.onnx", [X], dynamic={"x": {0: "batch"}})
    assert cli.main(["view", "net.onnx", "--shape", "x=5,3"]) == 0
    page = (here / "net.onnx.html").read_text("utf-8")
    assert '"shape":[5,3]' in page and "body.W" in page and "matmul" in page


def test_view_opens_a_browser(capsys, here, trained, monkeypatch):
    (here / "graph.json").write_text(trained.graphs[0].to_json())
    seen, works = [], [True, False]
    monkeypatch.setattr(webbrowser, "open", lambda uri: seen.append(uri) or works.pop(0))
    assert cli.main(["view", "graph.json", "--open"]) == 0
    assert seen == [(here / "graph.json.html").as_uri()]
    assert cli.main(["view", "graph.json", "--open"]) == 1
    assert "found no browser to show graph.json.html" in capsys.readouterr().err


def test_view_refuses_other_files(capsys, here, trained):
    for name in ("none.srs", "none.onnx", "none.json"):
        assert f"{name}: no such file" in fails(capsys, "view", name)
    assert "want a file that ends with .srs, .onnx, .json" in fails(capsys, "view", "net.pt")
    for text, message in (("{", "is no JSON"), ("[]", "has no"), ('{"nodes": []}', "has no")):
        (here / "bad.json").write_text(text)
        assert message in fails(capsys, "view", "bad.json")
    assert "--shape, which is for ONNX" in fails(capsys, "view", "bad.json", "--shape", "x=1")
    (here / "bad.srs").write_bytes(b"singastp" + bytes(100))
    assert "singa-rs view: Step.load: bad.srs" in fails(capsys, "view", "bad.srs")
    (here / "bad.onnx").write_bytes(b"\x00no model")
    assert "bad.onnx" in fails(capsys, "view", "bad.onnx")
    trained.export("net.onnx", [X], dynamic={"x": {0: "batch"}})
    assert "input x is (?,3); give --shape x=" in fails(capsys, "view", "net.onnx")
    said = fails(capsys, "view", "net.onnx", "--shape", "z=4,3")
    assert "got --shape z, want one of x" in said
    assert "want INPUT=2,3" in fails(capsys, "view", "net.onnx", "--shape", "x=a")
    assert not list(here.glob("*.html"))


# ---- bench ---------------------------------------------------------------------------------------


def test_bench_prints_a_row_for_each_model(capsys):
    assert cli.main(["bench", "mlp", "--steps", "3", "--threads", "1"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == "model library ms a step planned MiB process MiB".split()
    name, library, *numbers = row.split()
    assert (name, library) == ("mlp", "singa_rs") and all(float(one) > 0 for one in numbers)


@pytest.mark.parametrize("name", bench.MODELS)
def test_each_model_learns(name):
    step, planned = bench_models.step_of(name, None)
    losses = [step() for _ in range(12)]
    assert losses[-1] < losses[0] and planned > 0


@pytest.mark.parametrize("name", bench.MODELS)
def test_pytorch_has_models_of_the_same_size(name):
    pytest.importorskip("torch")
    from singa_rs.cli import bench_torch

    theirs = {"mlp": bench_torch._mlp, "lenet": bench_torch._lenet, "gpt": bench_torch._gpt}[name]
    ours = {"mlp": bench_models.Mlp, "lenet": bench_models.LeNet, "gpt": bench_models.Gpt}[name]()
    ours.compile([from_numpy(bench_models.batch(name)[0])])
    count = sum(one.numel() for one in theirs()[0].parameters())
    assert count == sum(one.numel for one in ours.get_params().values())
    step, planned = bench_torch.step_of(name, 1)
    assert step() > 0 and planned is None


def test_bench_measures_itself_in_a_process(capsys):
    assert cli.main(["bench", "mlp", "--alone", "singa_rs", "--steps", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ms"] > 0 and found["planned"] > 0 and found["grown"] >= 0


def test_bench_says_what_is_wrong(capsys, monkeypatch):
    assert "got model vgg, want mlp, lenet, gpt" in fails(capsys, "bench", "vgg")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    said = fails(capsys, "bench", "--compare", "torch")
    assert "--compare torch: it is not installed; pip install torch" in said
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert cli.main(["bench", "mlp"]) == 1
    assert "mlp in singa_rs failed: exit status 1" in capsys.readouterr().err
