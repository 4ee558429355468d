"""Screenshots for the documentation: what they have to show is in the pages. `make screenshots`
keeps them in docs/."""

import html
import json
import re
from pathlib import Path

import browser
import notebook
import numpy as np
import pytest
import steps

pytestmark = pytest.mark.skipif(
    browser.CHROMIUM is None, reason="there is no chromium (Debian: apt-get install chromium)"
)
SITE = Path(__file__).parents[2] / "target" / "site"
MOST_BYTES = 250_000

#: Opens layers, fits the view, chooses a layer, and writes what is where into the document.
OPENED = """
<script>
{
  const pane = app.panes.graph, { scene } = pane;
  for (const path of %s) app.layers.byPath.get(path).isOpen = true;
  pane.rearrange();
  pane.fit();
  app.chooseLayer(app.layers.byPath.get("%s"));
  pane.now();
  const size = (r) => [r.width * pane.kx, r.height * pane.ky];
  const seen = (r) => [r.x * pane.kx + pane.x, r.y * pane.ky + pane.y, ...size(r)];
  const place = (n) => seen({ x: scene.x[n], y: scene.y[n], ...BOX });
  const report = {
    layers: scene.boxes.map((box) => [box.layer.path, box.layer.isOpen, seen(box)]),
    operations: scene.shown.map((n) => [app.model.nodes[n].name, place(n)]),
    size: [pane.width, pane.height], scale: pane.kx,
    map: [pane.minimap.canvas, pane.canvas].map((one) => {
      const { left, top, width, height } = one.getBoundingClientRect();
      return [left, top, width, height];
    }),
    frame: pane.minimap.frame(),
  };
  document.body.append(element("pre", { id: "report", hidden: "" }, JSON.stringify(report)));
}
</script></body>"""

VIEWS = {
    "gpt": (["blocks", "blocks.0"], "blocks.0.self_attn", (1320, 1440)),
    "unet": (["down", "up"], "down.0", (1320, 1300)),
}


def overlap(a, b):
    """Whether two rectangles have a point in common."""
    meet = (a[i] < b[i] + b[i + 2] - 0.01 and b[i] < a[i] + a[i + 2] - 0.01 for i in (0, 1))
    return all(meet)


def contains(outer, inner):
    """Whether one rectangle lies in another."""
    return all(
        outer[i] - 0.01 <= inner[i]
        and inner[i] + inner[i + 2] <= outer[i] + outer[i + 2] + 0.01
        for i in (0, 1)
    )  # fmt: skip


def shrink(path):
    """Limits a screenshot to 256 colours: frequent ones that differ, with those of legends."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.asarray(image.open(path).convert("RGB"))
    colours, where, counts = np.unique(
        pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    chosen = np.zeros((0, 3), int)
    for colour in colours[np.argsort(-counts)].astype(int):
        if len(chosen) < 256 and (abs(chosen - colour).sum(1) > 9).all():
            chosen = np.vstack([chosen, colour])
    away = abs(colours.astype(int)[:, None] - chosen[None]).sum(2)
    numbers = away.argmin(1).astype(np.uint8)[where.reshape(pixels.shape[:2])]
    few = image.fromarray(numbers, "P")
    few.putpalette(chosen.astype(np.uint8).tobytes())
    few.save(path, optimize=True)
    assert path.stat().st_size < MOST_BYTES, "small enough for a repository"


def take(page, path, fragment="", size=(1400, 900)):
    """Takes a screenshot, which is a picture of something."""
    browser.picture(page, path, fragment, size)
    shrink(path)
    assert path.stat().st_size > 10_000


@pytest.mark.parametrize("name", VIEWS)
def test_the_graph_of_a_step(name, pictures, tmp_path):
    opened, chosen, size = VIEWS[name]
    model = getattr(steps, name)()
    page = steps.page_of(model, tmp_path / "page.html")
    script = OPENED % (json.dumps(opened), chosen)
    page.write_text(page.read_text("utf-8").replace("</body>", script), "utf-8")
    made = browser.dom(page, "#graph", size)
    report = json.loads(html.unescape(re.search(r'<pre id="report"[^>]*>(.*?)</pre>', made)[1]))

    shown = {path: is_open for path, is_open, _ in report["layers"]}
    tops = {path.partition(".")[0] for path in model.get_params()}
    assert tops <= shown.keys() and {path for path in shown if shown[path]} == set(opened)
    inner = {path for path in shown if path.rpartition(".")[0] in opened}
    assert inner and not any(shown[path] for path in inner - set(opened))
    boxes = [box for _, is_open, box in report["layers"] if not is_open]
    boxes += [box for _, box in report["operations"]]
    assert not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(contains([0, 0, *report["size"]], box) for box in boxes)
    small, canvas = report["map"]
    assert contains(canvas, small) and report["scale"] > 0.5, "it can be read"
    corner = [small[0] - canvas[0], small[1] - canvas[1], *small[2:]]
    assert not any(overlap(corner, box) for box in boxes)
    frame = report["frame"]
    assert contains([0, 0, *small[2:]], [frame[side] for side in ("x", "y", "width", "height")])
    assert f"<h2>{chosen}</h2>" in made, "its figures are beside the graph"

    take(page, pictures / f"viewer-{name}.png", "#graph", size)


CELLS = [
    """from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Placeholder

class Digits(module.Module):
    def __init__(self):
        super().__init__()
        self.conv = layer.Sequential(layer.Conv2d(8, 3), layer.ReLU(), layer.MaxPool2d(2))
        self.head = layer.Sequential(layer.Flatten(), layer.Linear(10))
        self.optimizer = opt.Adam(0.001)

    def forward(self, x):
        return self.head(self.conv(x))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return loss

x, y = Placeholder((64, 1, 28, 28)), Placeholder((64,), dtype="int32")
m = Digits()
m.compile([x], is_train=True)
m""",
    "m.plan(x, y)",
    """import numpy as np

digits = np.random.rand(64, 1, 28, 28).astype(np.float32), np.random.randint(0, 10, 64)
for _ in range(3):
    m(digits[0], digits[1].astype(np.int32))
m.graphs[0].profile(20)""",
]


def test_a_notebook(pictures, tmp_path):
    page = tmp_path / "notebook.html"
    page.write_text(notebook.page("A model, its plan and its profile", CELLS), "utf-8")
    made = browser.dom(page)
    shown = re.findall(r'<div class="shown"><pre>(.*?)</pre></div>', made, re.S)
    assert len(shown) == 3
    assert "Conv2d" in shown[0] and "parameters" in shown[0]
    assert "peak" in shown[1] and "arena" in shown[1]
    assert "ms a run" in shown[2] and "conv2d" in shown[2]
    take(page, pictures / "notebook.png", size=(1060, 1590))


@pytest.mark.skipif(not SITE.exists(), reason="there is no site: make site")
def test_the_first_page_of_the_site(pictures):
    page = SITE / "index.html"
    made = browser.dom(page)
    assert "md-nav" in made and "singa_rs" in made
    take(page, pictures / "site.png")
