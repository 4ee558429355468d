"""Makes the modules that tests share importable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))


def pytest_addoption(parser):
    """`--pictures FOLDER`: where screenshots are kept that tests take."""
    parser.addoption("--pictures", help="keep screenshots in this folder")


@pytest.fixture
def pictures(request, tmp_path):
    """The folder that screenshots are written to."""
    given = request.config.getoption("--pictures")
    return Path(given).resolve() if given else tmp_path
