"""Type checkers know the package: mypy and pyright accept programs as users write them, and refuse
lines with mistakes, line by line.

pyright is skipped where it is not installed; its wheels bring all that it needs.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from test_first_hour import OURS

pytestmark = pytest.mark.timeout(600)  # the first test of each checker reads NumPy's types, too

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.S)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: Pages whose programs are short: their functions have no annotations.
UNANNOTATED = ("models", "data")


def programs(page):
    """The programs of a page."""
    return BLOCK.findall((ROOT / page).read_text())


def strict():
    """The files that are checked strictly, by name."""
    found = {path.name: path.read_text() for path in EXAMPLES}
    found |= {f"readme_{i}.py": text for i, text in enumerate(programs("README.md"))}
    found |= {f"{one}.py": (HERE / "typed" / f"{one}.py").read_text() for one in LINES}
    mistakes = "".join(f"{line}  # wrong\n" for line in MISTAKES)
    return found | {"first.py": OURS["typing"], "first_wrong.py": OURS["typing"] + mistakes}


LINES = ("right", "wrong")
#: Mistakes in the typed program of docs/first-programs.md.
MISTAKES = (
    "scores, shares, more = net.forward(x)", "net.forward(x, x)", "net(x, x, x)", "net.no_such",
    "net.head(x, x)", 'Net("3")', "layer.Linear(3, units=4)",
)  # fmt: skip
#: How many lines are to be refused, at least.
REFUSED = {"wrong.py": 40, "first_wrong.py": len(MISTAKES)}
STRICT = strict()
PAGES = {
    f"{page}_{i}.py": text
    for page in UNANNOTATED
    for i, text in enumerate(programs(f"docs/{page}.md"))
}


def by_mypy(folder, *options):
    """The lines that mypy refuses, by file."""
    pytest.importorskip("mypy")
    call = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--no-error-summary"]
    call += ["--config-file", ROOT / "pyproject.toml", "--cache-dir", folder.parent / "cache"]
    env = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    files = sorted(path.name for path in folder.glob("*.py"))
    done = subprocess.run(
        [*map(str, call), *options, *files], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr or done.stdout
    found = defaultdict(dict)
    for name, line, text in re.findall(r"(?m)^([^:\n]+):(\d+): error: (.*)$", done.stdout):
        found[name][int(line)] = text
    return found


def by_pyright(folder):
    """The lines that pyright refuses, by file."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    settings = {"extraPaths": [str(ROOT / "python")], "pythonVersion": "3.10"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    call = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    env = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr or done.stdout
    found = defaultdict(dict)
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            line = one["range"]["start"]["line"] + 1
            found[Path(one["file"]).name][line] = one["message"]
    return found


def written(folder, texts):
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    home = tmp_path_factory.mktemp("mypy")
    found = by_mypy(written(home / "strict", STRICT), "--strict")
    return found | by_mypy(written(home / "pages", PAGES), "--check-untyped-defs")


@pytest.fixture(scope="module")
def pyright(tmp_path_factory):
    home = tmp_path_factory.mktemp("pyright")
    return by_pyright(written(home / "all", {**STRICT, **PAGES}))


@pytest.fixture
def refused(request):
    """What one of the checkers refuses."""
    return request.getfixturevalue(request.param)


each_checker = pytest.mark.parametrize("refused", ["mypy", "pyright"], indirect=True)


@each_checker
@pytest.mark.parametrize("name", [name for name in (*STRICT, *PAGES) if name not in REFUSED])
def test_programs_are_accepted(refused, name):
    assert refused[name] == {}


@each_checker
@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_refused_line_by_line(refused, name):
    lines = STRICT[name].splitlines()
    want = {number for number, text in enumerate(lines, 1) if text.endswith("# wrong")}
    assert len(want) >= REFUSED[name]
    assert {number: lines[number - 1] for number in want ^ set(refused[name])} == {}


def test_the_accepted_lines_run(tmp_path):
    shutil.copy(HERE / "typed" / "right.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "right.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(STRICT["right.py"].splitlines()) >= 60
