"""Headless Chromium: the document that a page's scripts make, and screenshots.

`python tests/browser/browser.py PAGE.html#memory PICTURE.png` takes a screenshot by hand.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SIZE = (1400, 900)
#: What tries a page out by the events that a user makes, in order of dependency.
SELF_TESTS = ("selftest_layers.js", "selftest.js")


def run(page, *options, size=SIZE, fragment=""):
    """Opens a local page without access to a network; what Chromium prints."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--proxy-server=127.0.0.1:9", f"--user-data-dir={profile}",
            f"--window-size={size[0]},{size[1]}", *options, f"{Path(page).as_uri()}{fragment}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dom(page, fragment="", size=SIZE):
    """The document after its scripts have run."""
    return run(page, "--dump-dom", size=size, fragment=fragment)


def tried(page, size=SIZE):
    """The document after the page has tried itself out."""
    before, end, after = Path(page).read_text("utf-8").rpartition("</script>")
    scripts = (Path(__file__).with_name(name).read_text("utf-8") for name in SELF_TESTS)
    testing = Path(page).with_suffix(".tried.html")
    testing.write_text("\n".join([before, *scripts, end + after]), "utf-8")
    return dom(testing, "#selftest", size)


def picture(page, path, fragment="", size=SIZE, dark=False):
    """Takes a screenshot."""
    more = ["--force-dark-mode", "--enable-features=WebUIDarkMode"] if dark else []
    run(page, f"--screenshot={path}", *more, size=size, fragment=fragment)


if __name__ == "__main__":
    where, _, view = sys.argv[1].partition("#")
    picture(Path(where).resolve(), sys.argv[2], f"#{view}", dark="--dark" in sys.argv)
