"""The page of a step with layers: they open and close, and a large one stays fast."""

import json
import re

import browser
import pytest
import steps
from test_page import MOST_MS, tried

pytestmark = pytest.mark.skipif(
    browser.CHROMIUM is None, reason="there is no chromium (Debian: apt-get install chromium)"
)
#: What 5,000 operations may take on a busy machine until they are first seen, and to be opened.
MOST_TIMES_MS = {"first view, ms": 1500, "open all, ms": 1000, "close all, ms": 500}


@pytest.fixture(scope="module", params=["gpt", "unet"])
def page(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("layers") / "page.html"
    return steps.page_of(getattr(steps, request.param)(), path)


@pytest.mark.parametrize("size", [(1400, 900), (390, 800)], ids=["wide", "narrow"])
def test_layers_open_and_close(page, size):
    found = tried(page, size)
    assert found["failures"] == []
    assert found["times"]["open all, ms"] > 0, "there were layers to open"


def test_without_a_profile(tmp_path):
    page = steps.page_of(steps.unet(), tmp_path / "page.html", profiled=False)
    assert tried(page)["failures"] == []


def test_phases_are_in_the_legend(page):
    made = browser.dom(page)
    legend = re.search(r'<ul class="legend" id="legend">(.*?)</ul>', made)[1]
    assert all(f"</i>{phase}</li>" in legend for phase in ("Forward", "Backward", "Update"))


def test_boxes_that_cover_each_other_are_noticed(page, tmp_path):
    text = page.read_text("utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(
        text.replace("return box.y + box.height + 14;", "return box.y + 40;"), "utf-8"
    )
    assert "closed: nothing covers anything else" in tried(broken)["failures"]


def test_five_thousand_operations_in_layers_stay_fluent(tmp_path):
    model = steps.gpt(layers=110, width=16, heads=2, batch=2, context=8)
    assert model.graphs[0].nodes > 5000
    found = tried(steps.page_of(model, tmp_path / "large.html"))
    print(json.dumps({**found["figures"], **found["times"]}, indent=2))
    assert found["failures"] == []
    assert max(found["figures"].values()) < MOST_MS
    assert all(found["times"][name] < most for name, most in MOST_TIMES_MS.items())


def test_hostile_paths_are_shown_as_text(page, tmp_path):
    """Names of attributes may be anything that `setattr` takes."""
    hostile = "<img src=x onerror=document.title=1>"
    text = page.read_text("utf-8")
    escaped = json.dumps(hostile).replace("<", "\\u003c").replace(">", "\\u003e")[1:-1]
    changed = tmp_path / "hostile.html"
    changed.write_text(text.replace('"layer":"head"', f'"layer":"{escaped}"'), "utf-8")
    assert tried(changed)["failures"] == []
    assert "<img" not in browser.tried(changed).split('id="data"')[0]
