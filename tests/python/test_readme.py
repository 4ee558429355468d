"""The examples of the README and of the pages on models and on loading data run as written."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = "".join(
    (ROOT / name).read_text() for name in ("README.md", "docs/models.md", "docs/data.md")
)
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGES, re.S)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_runs(number, tmp_path):
    command = [sys.executable, "-W", "error", "-c", EXAMPLES[number]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
