"""The house rules that a program can check: dependencies, where `unsafe` is allowed, file sizes."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
PACKAGE = ROOT / "python" / "singa_rs"
RUST = sorted(SRC.rglob("*.rs"))
SHIPPED = [path for path in RUST if "tests" not in path.parts and not path.stem.endswith("tests")]
PYTHON = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("benches/python/*.py")])

# ---- Rust ----------------------------------------------------------------------------------------

# A module imports only from modules in its own row or an earlier one.
ROOMS = [
    {"error", "dtype", "shape", "packing"},
    {"device"},
    {"block", "view"},
    {"comm"},
    {"ops"},
    {"kernels"},
    {"graph"},
    {"rewrite"},
    {"engine"},
    {"step"},
    {"capi"},
    {"python"},
]
PLACE = {room: place for place, rooms in enumerate(ROOMS) for room in rooms}
ENGINE = ("engine/executable/replay.rs", "engine/tests/")
UNSAFE = (
    "device/",
    "block.rs",
    "comm/host/",
    "comm/mpi/",
    "kernels/",
    "graph/replay/",
    *ENGINE,
    "capi/",
    "python/",
)
LINES = 400


def room(path: Path) -> str:
    """The module of the crate that a file belongs to."""
    return path.relative_to(SRC).parts[0].removesuffix(".rs")


def code(path: Path) -> str:
    """A file without comments, strings and unit tests."""
    text = path.read_text()
    text = re.split(r"\n#\[cfg\(test\)\]\nmod tests? \{", text)[0]
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    return re.sub(r"//[^\n]*", "", text)


def imports(path: Path) -> set[str]:
    """The modules of the crate that a file names."""
    text = re.sub(r"\s+", "", code(path))
    found = set(re.findall(r"(?:\$?crate)::(\w+)", text))
    for group in re.findall(r"use(?:\$?crate)::\{(.*?)\};", text):
        found |= set(re.findall(r"(?:^|,)(\w+)(?=::)", re.sub(r"\{[^{}]*\}", "", group)))
    return found & set(PLACE)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


each_rust = pytest.mark.parametrize("path", RUST, ids=relative)
each_shipped = pytest.mark.parametrize("path", SHIPPED, ids=relative)
each_python = pytest.mark.parametrize("path", PYTHON, ids=relative)


def test_every_room_is_known():
    assert {room(path) for path in RUST} - {"lib"} == set(PLACE)


@each_shipped
def test_rooms_know_only_those_to_their_left(path):
    if room(path) == "lib":
        return
    strangers = {other for other in imports(path) if PLACE[other] > PLACE[room(path)]}
    assert not strangers


@each_shipped
def test_processors_are_named_in_few_rooms(path):
    """Everything else asks the target; Python has the public names of devices."""
    if room(path) not in {"device", "kernels"}:
        assert "cpu::device" not in code(path)
        assert room(path) == "python" or not re.search("(?i)cpu|onednn|cuda", code(path))


@each_rust
def test_python_stays_in_its_room(path):
    if room(path) != "python":
        assert not re.search(r"\b(pyo3|numpy)::", code(path))


@each_shipped
def test_the_lock_of_python_changes_hands_in_one_place(path):
    """exit.rs handles an interpreter that exits meanwhile."""
    if room(path) == "python" and path.name != "exit.rs":
        assert not re.search(r"\.detach\(|Python::(try_)?attach\(", code(path))


@each_rust
def test_unsafe_is_explained(path):
    """`unsafe` appears only where it is allowed, and each block states why it is sound."""
    inside = str(path.relative_to(SRC))
    if not re.search(r"\bunsafe\b", code(path)):
        return
    assert inside.startswith(UNSAFE)
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        stripped = line.split("//")[0]
        if not re.search(r"\bunsafe\s*(\{|impl)", stripped):
            continue
        around = lines[max(number - 8, 0) : number + 3]
        assert any("SAFETY:" in text for text in around), f"{inside}:{number + 1}"


@each_shipped
def test_nothing_is_left_to_do_in_rust(path):
    unfinished = re.search(
        r"\b(todo|unimplemented|dbg|println|eprintln)!|\b(TODO|FIXME|XXX)\b", path.read_text()
    )
    assert not unfinished


@each_rust
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= LINES


# ---- Python --------------------------------------------------------------------------------------

ORDER = ["_core", "device", "tensor", "autograd", "record", "dist", "layer", "module"]
# The positions in the chain of modules that are not part of it; `.` is the package's own file.
BESIDE = {
    ".": "module",
    "__main__": "module",
    "cli": "module",
    "errors": "_core",
    "elsewhere": "_core",
    "files": "_core",
    "compat": "module",
    "compat.dependency": "autograd",
    "compat.handles": "autograd",
    "compat.image_tool": "tensor",
    "compat.probabilities": "autograd",
    "compat.raw": "tensor",
    "compat.recording": "record",
    "compat.rules": "autograd",
    "compat.singa_wrap": "dist",
    "compat.written": "autograd",
    "notices": "_core",
    "refusals": "_core",
    "shown": "_core",
    "singa_wrap": "dist",
    "data": "tensor",
    "image_tool": "tensor",
    "initializer": "layer",
    "linalg": "autograd",
    "loss": "layer",
    "metric": "layer",
    "opt": "layer",
    "seeds": "record",
    "model": "module",
    "snapshot": "module",
    "sonnx": "module",
    "viz": "_core",
}
CALL_CORE = {"_core", "device", "tensor", "autograd", "record", "dist"}


def python_room(module: str) -> str:
    """The room of a module, given by its path in the package."""
    for known in (".".join(module.split(".")[:2]), module.partition(".")[0] or "."):
        if known in BESIDE:
            return BESIDE[known]
    return module.partition(".")[0]


def own_room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return python_room(".".join(part for part in parts if part != "__init__"))


class Imports(ast.NodeVisitor):
    """The modules of the package that a file imports, in functions, too, but not for type
    checkers."""

    def __init__(self, path: Path) -> None:
        self.inside, self.found = path.relative_to(PACKAGE).parts, set[str]()
        self.visit(ast.parse(path.read_text()))

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)
        for one in node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else ():
            self.visit(one)

    def visit_Import(self, node: ast.Import) -> None:
        names = [alias.name.split(".") for alias in node.names]
        self.found |= {".".join(n[1:]) for n in names if n[0] == "singa_rs" and len(n) > 1}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module.split(".") if node.module else []
        if node.level:
            module = [*self.inside[: len(self.inside) - node.level], *module]
        elif module[:1] == ["singa_rs"]:
            module = module[1:]
        else:
            return
        self.found |= {".".join([*module, alias.name]) for alias in node.names}
        self.found |= {".".join(module)} if node.module and module else set()


@each_python
def test_python_modules_know_only_those_before_them(path):
    place = ORDER.index(own_room(path))
    assert not {m for m in Imports(path).found if python_room(m) in ORDER[place + 1 :]}


@each_python
def test_only_the_lower_modules_call_the_engine(path):
    if own_room(path) not in CALL_CORE and path != PACKAGE / "__init__.py":
        everywhere = re.search(r"\b_core\b", re.sub(r"#.*", "", path.read_text()))
        assert not everywhere


@each_python
def test_public_python_is_documented(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), node.name


@each_python
def test_nothing_is_left_to_do_in_python(path):
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", path.read_text())


@pytest.mark.parametrize("path", [*PYTHON, *TESTS], ids=relative)
def test_python_files_are_short(path):
    assert len(path.read_text().splitlines()) <= LINES


@pytest.mark.parametrize(
    "ours, theirs",
    [
        ("dist/place.py MOST_RANKS", "comm/host/segment.rs MAX_RANKS: usize"),
        ("dist/forecast.py _SMALL", "comm/reduce.rs SMALL: usize"),
        ("record/lock.py TIMEOUT", "engine/runs.rs PATIENCE: Duration"),
    ],
)
def test_numbers_that_both_languages_have_are_the_same(ours, theirs):
    def value(root, where):
        path, _, name = where.partition(" ")
        text = (root / path).read_text()
        found = re.search(rf"(?m)^(?:const |pub const )?{name} = (.+?);?$", text)
        return eval(re.sub(r"Duration::from_secs\((\d+)\)", r"\1", found[1]))

    assert value(PACKAGE, ours) == value(SRC, theirs)


# ---- the repository ------------------------------------------------------------------------------

TOP = {
    "Cargo.toml", "Cargo.lock", "pyproject.toml", "src", "python", "tests", "benches", "examples",
    "docs", ".ci", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
    ".gitignore", ".rustfmt.toml", ".gitattributes",
}  # fmt: skip


def test_the_top_level_is_as_agreed():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    assert {line.split("/")[0] for line in listed.stdout.splitlines()} <= TOP


def test_links_in_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        prose = re.sub(r"(?s)```.*?```", "", document.read_text())
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
