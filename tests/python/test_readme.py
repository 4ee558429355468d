"""The examples of the README and of the pages on models, data, nets, training and ONNX run as
written."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = "".join(
    (ROOT / name).read_text()
    for name in ("README.md", "docs/models.md", "docs/data.md", "docs/nets.md", "docs/training.md")
)
BLOCK = re.compile(r"```python\n(.*?)```", re.S)
# The second example of the last page reads what the first one has written.
EXAMPLES = [*BLOCK.findall(PAGES), "\n".join(BLOCK.findall((ROOT / "docs/onnx.md").read_text()))]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_runs(number, tmp_path):
    command = [sys.executable, "-W", "error", "-c", EXAMPLES[number]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
