"""What people try first: the programs of docs/first-programs.md run and are no longer than those of
PyTorch beside them, and each name in the table of docs/from-pytorch.md exists."""

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import singa_rs
from singa_rs import autograd, layer
from singa_rs.module import Checkpoints, Module
from singa_rs.tensor import from_numpy

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "from-pytorch.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", (DOCS / "first-programs.md").read_text(), re.S)
NAMES = [
    *("resume", "schedule", "head", "amp", "tensorboard"),
    *("pictures", "unet", "text", "lstm", "gpt", "vae", "gan", "custom"),
    *("shapes", "nan", "memory", "typing", "notebook", "step", "export"),
]
THEIRS, OURS = (dict(zip(NAMES, BLOCKS[side::2], strict=True)) for side in (0, 1))
#: Other packages that programs need.
NEEDS = {
    "export": ["onnxruntime"],
    "notebook": ["matplotlib"],
    "pictures": ["torchvision"],
    "tensorboard": ["tensorboard"],
}


def run(program, folder):
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def draw(folder):
    """Pictures of two classes: brighter to the left, and to the right."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for name in ("left", "right"):
        (folder / "pictures" / name).mkdir(parents=True)
        for number in range(40):
            pixels = rng.integers(0, 150, (20, 20, 3), np.uint8)
            pixels[:, slice(10) if name == "left" else slice(10, 20)] += 100
            image.fromarray(pixels).save(folder / "pictures" / name / f"{number}.png")


def lines(program):
    return len([one for one in program.splitlines() if one.strip()])


@pytest.mark.parametrize("name", NAMES)
def test_each_program_stands_beside_pytorchs(name):
    theirs, ours = THEIRS[name], OURS[name]
    assert "import torch" in theirs and "torch" not in ours.replace("gelu", "")
    assert lines(ours) <= lines(theirs)


#: What programs print, as patterns.
SAID = {
    "lstm": r"^she sells sea shells",
    "gpt": r"^to be, or not to be",
    "nan": r"(?s)^log \(recorded at .*:12\): the first operation that made a NaN .* [1-9]\d* NaN, ",
    "shapes": r"(?s)^name .*\(2, 1568\).*^head: Linear: got shape \(2, 2592\), want 1568 on axis",
    "typing": r"^[0-9.]+ \(4, 3\)$",
}

#: Programs whose results have tests of their own.
SEEN = ("resume", "head", "memory", "notebook", "tensorboard")


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(SEEN)))
def test_ours_runs(name, tmp_path):
    for package in set(NEEDS.get(name, ())) - {"torchvision"}:
        pytest.importorskip(package)
    if name == "pictures":
        draw(tmp_path)
    said, _ = run(OURS[name], tmp_path)
    assert re.search(SAID.get(name, ""), said, re.M), said


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    run(OURS["resume"], tmp_path)
    steps = Checkpoints(tmp_path / "run").steps()
    assert 5 < steps[-1] < 40
    _, again = run(OURS["resume"], tmp_path)
    assert Checkpoints(tmp_path / "run").steps() == steps and not again.startswith("epoch")


def test_only_the_head_is_warned_of(tmp_path):
    _, said = run(OURS["head"], tmp_path)
    assert "head.W" in said and "body" not in said.partition("head.W")[0]


def test_a_budget_halves_the_arena(tmp_path):
    said, _ = run(OURS["memory"], tmp_path)
    whole, half = (int(n.replace(",", "")) for n in re.findall(r"arena: ([\d,]+) bytes", said))
    assert half <= whole / 2


def test_curves_are_in_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    _, said = run(OURS["tensorboard"], tmp_path)
    found = EventAccumulator(str(tmp_path / "logs"))
    found.Reload()
    for tag in ("loss", "val_loss"):
        points, want = found.Scalars(tag), re.findall(rf"  {tag} ([\d.]+)", said)
        assert [one.step for one in points] == [1, 2, 3, 4, 5]
        assert [one.value for one in points] == pytest.approx([float(x) for x in want], rel=1e-3)


def outputs(program, folder):
    """What each cell of a notebook shows."""
    client, format_ = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [format_.v4.new_code_cell(one.strip()) for one in program.split("# %%")]
    book = format_.v4.new_notebook(cells=cells)
    client.NotebookClient(book, timeout=100, kernel_name="python3").execute(cwd=str(folder))
    return [cell.outputs for cell in book.cells]


def test_a_notebook_shows_models_plans_and_profiles(tmp_path):
    shown = [one[-1].data for one in outputs(OURS["notebook"], tmp_path)[1:]]
    assert float(shown[1]["text/plain"]) < 0.01
    net, plan, profile = (shown[at]["text/html"] for at in (0, 2, 3))
    assert "Linear" in net and "arena" in plan and "share" in profile


IN_CELLS = """
import numpy as np
from singa_rs import autograd, layer, opt
from singa_rs.module import Module
x, y = np.zeros((8, 2), np.float32), np.zeros((8, 3), np.float32)
# %%
class Net(Module):
    def __init__(self):
        super().__init__()
        self.linear = layer.Linear(3)
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        h = self.linear(x)
        print(h)
        return h

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss
# %%
net = Net()
net.compile([x], is_train=True)
net(x, y)
# %%
net.fit((x, y), 1)
"""


def test_lines_in_a_notebook_are_those_of_its_cells(tmp_path):
    _, _, recorded, fitted = outputs(IN_CELLS, tmp_path)
    assert "recorded at In[2]:8)" in recorded[0].text
    assert [one.name for one in fitted if "epoch 1/1" in one.get("text", "")] == ["stdout"]


@pytest.mark.parametrize("name", NAMES)
def test_theirs_runs(name, tmp_path):
    for package in ("torch", *NEEDS.get(name, ())):
        pytest.importorskip(package)
    if name == "pictures":
        draw(tmp_path)
    run(THEIRS[name], tmp_path)


# ---- what is different ---------------------------------------------------------------------------

OTHERS = PAGE.partition("Other defaults")[2].partition("## Names\n")[0]
DEFAULTS = re.findall(r"^\| `((?:autograd|layer)\..*?)` \| .* \| `(.*)` \|$", OTHERS, re.M)


@pytest.mark.parametrize(("one", "theirs"), DEFAULTS, ids=[one for one, _ in DEFAULTS])
def test_defaults_differ_as_the_page_says(one, theirs):
    image = from_numpy(np.linspace(-1, 2, 16).reshape(1, 1, 4, 4).astype(np.float32))
    given = {"autograd": autograd, "layer": layer, "i": image, "c": image[0].expand(3, 4, 4)}
    for name, values in {"v": [-1, 0.5, 2, 3], "p": [0.3, 0.6], "q": [0.6, 0.9]}.items():
        given[name] = from_numpy(np.float32(values))
    made, want = (eval(call, given) for call in (one, theirs))  # noqa: S307 - the page's own text
    pairs = zip(made, want, strict=True) if isinstance(made, tuple) else [(made, want)]
    assert any(a.tolist() != b.tolist() for a, b in pairs)


def test_the_list_of_defaults_is_found():
    assert len(DEFAULTS) == 11


# ---- the table -----------------------------------------------------------------------------------

ROWS = re.findall(r"^\| (`.*?) \| (.*) \|$", PAGE.partition("## Names\n")[2], re.M)
ROOTS = {"Tensor": singa_rs.Tensor, "Module": Module, "singa_rs": singa_rs}
SPAN = re.compile(r"`([^`]+)`")


def found(name):
    """What a dotted name of the right-hand column means."""
    root, *rest = name.split(".")
    one = ROOTS.get(root) or importlib.import_module(f"singa_rs.{root}")
    for part in rest:
        one = getattr(one, part)
    return one


def dotted(span):
    """The name at the beginning of a span of code, without its arguments."""
    return re.match(r"[A-Za-z_][\w.]*", span)[0].rstrip(".")


def test_the_table_is_long():
    assert len(ROWS) >= 150 and len({left for left, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("left", "right"), ROWS, ids=[left for left, _ in ROWS])
def test_names_on_the_right_exist(left, right):
    """A span of code that begins with a name of the package; at least one in each row."""
    names = [dotted(span) for span in SPAN.findall(right) if re.match(r"(\w+\.)+\w+", span)]
    names = [name for name in names if not name.startswith("optimizer.")]
    assert names
    for name in names:
        found(name)


RNG = np.random.default_rng(0)


def of(*shape):
    return from_numpy(RNG.normal(size=shape).astype(np.float32))


#: What calls on the right are given, where it is not the usual.
SPECIAL = {
    "Tensor.permute": {"x": of(2, 3, 4)},
    "Tensor.squeeze": {"x": of(1, 3)},
    "Tensor.expand": {"x": of(1, 5)},
    "autograd.bmm": {"a": of(2, 3, 4), "b": of(2, 4, 5)},
    "autograd.clamp": {"a": -0.5, "b": 0.5},
    "autograd.clip": {"a": -0.5, "b": 0.5},
    "autograd.conv": {"x": of(2, 3, 8, 8), "w": of(4, 3, 3, 3)},
    "autograd.scatter_add": {"i": np.zeros((4, 4), np.int64)},
    "autograd.take_along_axis": {"i": np.zeros((4, 1), np.int64)},
    "autograd.one_hot": {"y": from_numpy(np.int32([0, 3]))},
    "autograd.softmax_cross_entropy": {"y": from_numpy(np.int32([0, 3, 1, 2]))},
    "linalg.cholesky": {"x": from_numpy(np.eye(4, dtype=np.float32))},
    "Tensor.item": {"x": of(1)},
    "tensor.from_numpy": {"x": np.ones(3)},
    "tensor.linspace": {"a": 0.0, "b": 1.0},
}
USUAL = {
    "x": of(4, 4), "y": of(4, 4), "a": of(4, 4), "b": of(4, 4), "c": from_numpy(np.eye(4) > 0),
    "m": from_numpy(np.eye(4) > 0), "k": 2, "n": 5, "d": 3, "v": 2.0, "i": np.arange(4),
    "shape": (2, 3), "low": 0, "high": 4, "np": np,
}  # fmt: skip
CALLS = sorted(
    {
        span
        for _, right in ROWS
        for span in SPAN.findall(right)
        if re.match(r"(Tensor|autograd|tensor|linalg|layer|opt)\.\w+\(", span)
        and not re.match(r"opt.Optimizer|autograd.gradients|Tensor.backward", span)
    }
)


@pytest.mark.parametrize("span", CALLS)
def test_calls_on_the_right_are_understood(span):
    """As they are written; what they compute is the matter of other tests."""
    modules = ("autograd", "tensor", "linalg", "layer", "opt")
    space = {name: importlib.import_module(f"singa_rs.{name}") for name in modules}
    space |= USUAL | SPECIAL.get(dotted(span), {}) | {"xs": [USUAL["x"], USUAL["y"]]}
    if dotted(span) in ("Tensor.copy_", "Tensor.copy_from", "Tensor.requires_grad_"):
        space["x"] = of(4, 4)
    assert eval(re.sub("^Tensor[.]", "x.", span), space) is not NotImplemented


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_names_of_pytorch_exist():
    import torch
    import torch.utils.data

    for left, _ in ROWS:
        for span in SPAN.findall(left):
            if span.startswith("torch."):
                name, one = dotted(span), torch
                for part in name.split(".")[1:]:
                    inner = f"{one.__name__}.{part}"
                    one = getattr(one, part, None) or importlib.import_module(inner)
