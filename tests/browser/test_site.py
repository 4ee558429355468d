"""The site that `make site` builds finds words when its pages are opened as files, without a
network."""

from pathlib import Path

import browser
import pytest

SITE = Path(__file__).parents[2] / "target" / "site"
pytestmark = [
    pytest.mark.skipif(browser.CHROMIUM is None, reason="there is no chromium"),
    pytest.mark.skipif(not SITE.exists(), reason="there is no site: make site"),
]


@pytest.mark.parametrize("page", ["index.html", "reference/autograd/losses.html"])
def test_the_search_finds_names(page):
    asked = ["--virtual-time-budget=20000", "--dump-dom"]
    found = browser.run(SITE / page, *asked, fragment="?q=softmax_cross_entropy")
    assert "matching documents" in found
    assert "singa_rs.autograd.softmax_cross_entropy" in found.partition("matching documents")[2]
