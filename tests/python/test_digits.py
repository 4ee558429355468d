"""A shortened run of the demo: it learns digits, and its exit status is non-zero if it did not."""

import gzip
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DEMO = Path(__file__).parents[2] / "examples" / "digits.py"


def demo(*arguments):
    command = [sys.executable, DEMO, *map(str, arguments)]
    few = {**os.environ, "OMP_NUM_THREADS": "1"}  # a busy machine runs one thread best
    run = subprocess.run(command, capture_output=True, text=True, timeout=250, env=few)
    assert "Traceback" not in run.stderr, run.stderr
    return run


def test_learns():
    run = demo("--epochs", 3, "--target", 0.93, "--summary")
    assert run.returncode == 0, run.stdout
    assert "360 held out" in run.stdout and "images/s" in run.stdout
    assert re.search(r"^features\.0 +Conv2d", run.stdout, re.M)


def test_says_that_the_target_was_missed():
    assert demo("--epochs", 1, "--lr", 0, "--target", 0.9, "--width", 4).returncode == 1


def test_same_seed_same_numbers():
    few = ("--epochs", 1, "--seed", 3, "--target", 0, "--width", 4)
    runs = [demo(*few).stdout for _ in range(2)]
    losses = [re.search(r"loss ([\d.]+)  test accuracy ([\d.]+)%", out).groups() for out in runs]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_files(tmp_path, pack):
    rng = np.random.default_rng(0)
    for part, count in (("train", 64), ("t10k", 16)):
        labels = rng.integers(0, 2, count).astype("u1")
        images = (labels[:, None, None] * 200 + rng.integers(0, 50, (count, 8, 8))).astype("u1")
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            (tmp_path / f"{part}-{kind}-ubyte").write_bytes(pack(head + array.tobytes()))
    run = demo("--data", tmp_path, "--epochs", 4, "--batch", 16, "--width", 4, "--target", 0.9)
    assert run.returncode == 0, run.stdout
