"""A shortened run of the GPT: it learns, and a run that is resumed has the bits of a whole one."""

import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "gpt.py"
SMALL = ("--batch", 4, "--context", 16, "--width", 16, "--heads", 2, "--layers", 1, "--sample", 5)


def gpt(*arguments):
    command = [sys.executable, EXAMPLE, *map(str, (*SMALL, *arguments))]
    few = {**os.environ, "OMP_NUM_THREADS": "1"}  # a busy machine runs one thread best
    run = subprocess.run(command, capture_output=True, text=True, timeout=250, env=few)
    assert "Traceback" not in run.stderr, run.stderr
    return run


def arrays(path):
    """What a checkpoint holds."""
    import io
    import zipfile

    import numpy as np

    with zipfile.ZipFile(path) as outer, np.load(io.BytesIO(outer.read("tensor_dict.npz"))) as held:
        return {name: held[name].tobytes() for name in held.files}


def test_learns_and_resumes_to_the_bit(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("abcd " * 40)
    common = ("--text", text, "--lr", 0.01)
    whole = gpt(*common, "--steps", 40, "--target", 1.2, "--checkpoint", tmp_path / "whole.zip")
    assert whole.returncode == 0, whole.stdout
    assert re.search(r"step 40: mean loss [\d.]+, target 1.2", whole.stdout)
    parts = ("--checkpoint", tmp_path / "parts.zip", "--target", 9)
    for steps in (25, 40):
        assert gpt(*common, "--steps", steps, *parts).returncode == 0
    assert arrays(tmp_path / "parts.zip") == arrays(tmp_path / "whole.zip")


def test_says_that_the_target_was_missed():
    run = gpt("--steps", 2, "--target", 0.1)
    assert run.returncode == 1 and "step 2: mean loss" in run.stdout
