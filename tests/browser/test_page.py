"""The page of a graph in a browser: it passes its self-test, and a large one stays responsive."""

import html
import json
import re

import browser
import numpy as np
import pytest
from singa_rs import autograd, device, viz
from singa_rs.tensor import Tensor, from_numpy

pytestmark = pytest.mark.skipif(
    browser.CHROMIUM is None, reason="there is no chromium (Debian: apt-get install chromium)"
)
CPU = device.get_default_device()
RNG = np.random.default_rng(0)
#: A redraw of 5,000 operations takes at most this: ten frames a second on a busy machine.
MOST_MS = 100


def parameter(*shape):
    data = RNG.normal(size=shape, scale=0.1).astype(np.float32)
    return Tensor(data=data, requires_grad=True, stores_grad=True)


def recurrent(steps):
    """A graph of an unrolled LSTM: forward, backward and update, 43 operations a step."""
    w, u, b = parameter(16, 64), parameter(16, 64), parameter(64)
    xs = [from_numpy(RNG.normal(size=(4, 16)).astype(np.float32)) for _ in range(steps)]
    h = c = from_numpy(np.zeros((4, 16), np.float32))
    with autograd._training_scope(True), CPU.record() as graph:
        for x in xs:
            z = x @ w + h @ u + b
            i, f, o, g = (z[:, k * 16 : k * 16 + 16] for k in range(4))
            c = autograd.sigmoid(f) * c + autograd.sigmoid(i) * autograd.tanh(g)
            h = autograd.sigmoid(o) * autograd.tanh(c)
        loss = (h * h).mean()
        for p, grad in autograd.backward(loss):
            p -= grad * 0.01
        del h, c, z, i, f, o, g, p, grad
    graph.run()
    return graph


def page_of(graph, tmp_path, title="a graph"):
    picture = viz.Graph(graph.graph, title)
    picture.last_profile = graph.last_profile
    path = tmp_path / "graph.html"
    picture.to_html(path)
    return path


def tried(page, size=browser.SIZE):
    """The outcome of the page's self-test."""
    found = re.search(r'<pre id="selftest"[^>]*>(.*?)</pre>', browser.tried(page, size))
    assert found, "the page did not try itself out"
    return json.loads(html.unescape(found[1]))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    graph = recurrent(240)
    assert graph.nodes > 5000
    graph.profile(2)
    return page_of(graph, tmp_path_factory.mktemp("large"))


@pytest.mark.parametrize("size", [(1400, 900), (390, 800)], ids=["wide", "narrow"])
def test_zoom_search_hover_and_keys(tmp_path, size):
    graph = recurrent(3)
    graph.profile(2)
    assert tried(page_of(graph, tmp_path), size)["failures"] == []


def test_without_a_profile(tmp_path):
    page = page_of(recurrent(2), tmp_path)
    assert tried(page)["failures"] == []
    assert "Nothing was measured" in browser.dom(page, "#timeline")


def test_five_thousand_operations_stay_fluent(large):
    found = tried(large)
    assert found["failures"] == []
    print(json.dumps(found["figures"], indent=2))
    assert max(found["figures"].values()) < MOST_MS


def test_hostile_names_are_shown_as_text(tmp_path):
    title = '</script><img src=x onerror="document.title=1"><h1>'
    made = browser.dom(page_of(recurrent(2), tmp_path, title))
    assert f'<h1 id="title">{html.escape(title, quote=False)}</h1>' in made
    assert "<img" not in made.split('id="data"')[0]


@pytest.mark.parametrize("view", ["graph", "memory", "timeline"])
def test_pictures_are_not_blank(large, tmp_path, view):
    image = pytest.importorskip("PIL.Image")
    browser.picture(large, tmp_path / "view.png", f"#{view}")
    pixels = np.asarray(image.open(tmp_path / "view.png").convert("RGB"))[130:, :1000]
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
