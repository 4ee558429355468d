"""Shortened runs of the examples: each learns, and a run that is resumed has the bits of a whole
one. The demo and the residual network have tests of their own."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file
from singa_rs import _core
from singa_rs.module import Checkpoints

EXAMPLES = Path(__file__).parents[2] / "examples"


class Short(NamedTuple):
    """A run of a few steps: what makes it small, how many steps, which target it reaches, and one
    that it misses."""

    options: str
    steps: int
    target: float
    missed: float


SHORT = {
    "char_lstm": Short("--batch 8 --context 24 --width 48 --sample 5 --lr 0.02", 80, 2.2, 0.01),
    "curvature": Short("--rows 200", 100, 0.6, 1.0),
    "classify": Short("--layers 1 --lr 0.006", 120, 0.7, 1.1),
    "gan": Short("--batch 128 --width 64", 300, 0.02, 0.13),
    "gpt": Short(
        "--batch 4 --context 16 --width 16 --heads 2 --layers 1 --sample 5 --lr 0.01", 40, 2.7, 0.1
    ),
    "tabular": Short("--width 32", 250, 0.7, 1.0),
    "translate": Short("--batch 32 --width 32 --heads 2 --layers 1 --lr 0.005", 150, 0.4, 1.1),
    "unet": Short("--batch 8 --levels 2", 100, 0.2, 1.0),
    "wgan": Short("--batch 128 --width 64 --lr 0.003", 300, 0.02, 0.13),
    "vae": Short("--batch 32 --width 64 --latent 8", 60, 31.0, 10.0),
}


def line(name, *options):
    """The command line of an example."""
    return [sys.executable, EXAMPLES / f"{name}.py", *map(str, options)]


def run(name, *options):
    few = {**os.environ, "OMP_NUM_THREADS": "1"}  # a busy machine runs one thread best
    command = line(name, *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=few)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def short(name, *options):
    return run(name, *SHORT[name].options.split(), *options)


def held(folder):
    """What the newest checkpoint in a folder holds: its step, and its tensors."""
    steps = Checkpoints(folder).steps()
    stem = f"{folder}/step-{steps[-1]:08d}"
    model = onnx.load(f"{stem}.onnx").graph.initializer
    found = {one.name: one.raw_data for one in model}
    moments = load_file(f"{stem}.state.safetensors").items()
    return steps[-1], {**found, **{name: one.tobytes() for name, one in moments}}


@pytest.mark.parametrize("name", SHORT)
def test_learns_and_resumes_to_the_bit(name, tmp_path):
    _, steps, target, missed = SHORT[name]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    done = short(name, "--steps", steps, "--target", target, "--checkpoint", whole)
    assert done.returncode == 0, done.stdout
    assert re.search(rf"step {steps}: .* [\d.]+, target {target}", done.stdout)
    assert f"{steps}/{steps}" in done.stderr  # the bar
    short(name, "--steps", steps // 2, "--checkpoint", parts)
    again = short(name, "--steps", steps, "--checkpoint", parts, "--target", missed)
    assert held(parts) == held(whole)
    assert again.returncode == 1 and f"step {steps}:" in again.stdout


def test_a_checkpoint_of_a_later_step_is_refused(tmp_path):
    short("gpt", "--steps", 3, "--checkpoint", tmp_path)
    before = held(tmp_path)
    done = short("gpt", "--steps", 2, "--checkpoint", tmp_path)
    assert done.returncode == 1 and "is of step 3" in done.stderr
    assert held(tmp_path) == before


def test_a_run_that_was_killed_goes_on_to_the_bit(tmp_path):
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    folder.mkdir()
    command = [*line("gpt", *SHORT["gpt"].options.split()), "--steps", "1000000"]
    killed = subprocess.Popen(
        [*command, "--every", "10", "--checkpoint", folder], stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(2000):
            if Checkpoints(folder).steps() or killed.poll() is not None:
                break
            time.sleep(0.05)
    finally:
        killed.kill()
        killed.wait()
    step = Checkpoints(folder).steps()[-1]
    assert 0 < step < 1000000 and step % 10 == 0
    for one in (folder, whole):
        short("gpt", "--steps", step + 5, "--checkpoint", one)
    assert held(folder) == held(whole)


def test_gpt_learns_a_file(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("abcd " * 40)
    done = short("gpt", "--text", text, "--steps", 40, "--target", 1.2)
    assert done.returncode == 0, done.stdout


def test_tabular_reads_a_file(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "table.csv"
    x = rng.normal(size=(400, 3))
    lines = [",".join(map(str, [*row, row @ [1, -2, 3] + 5])) for row in x]
    path.write_text("\n".join(["a,b,c,label", *lines]))
    done = short("tabular", "--data", path, "--steps", 300, "--target", 0.9)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short(path):
    longest = 185 if path.stem in ("digits", "resnet") else 120
    assert len(path.read_text().splitlines()) <= longest


@pytest.mark.skipif(not hasattr(_core, "emulated_gpu"), reason="a build without an emulated GPU")
@pytest.mark.parametrize("name", ["char_lstm", "curvature", "gpt", "tabular", "vae", "wgan"])
def test_runs_on_a_gpu(name, tmp_path, monkeypatch):
    """The emulated one is slow, so that a few steps of the smaller examples must do."""
    monkeypatch.setenv("SINGA_RS_DEVICE", "emulated")
    options = ("--steps", 3, "--checkpoint")
    done = short(name, *options, tmp_path / "gpu", "--device", "cuda")
    assert "step 3: " in done.stdout, done.stderr
    here = short(name, *options, tmp_path / "cpu")
    numbers = [re.search(r"step 3: \D+([\d.]+),", one.stdout)[1] for one in (done, here)]
    assert float(numbers[0]) == pytest.approx(float(numbers[1]), rel=1e-3)
    assert held(tmp_path / "gpu")[1].keys() == held(tmp_path / "cpu")[1].keys()
