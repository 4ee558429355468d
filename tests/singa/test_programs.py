"""The programs of SINGA's example folder run on generated data, and those that print a loss learn.

make test-singa SINGA=folder     # a checkout of SINGA, from which the programs are read
"""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from programs import SCRIPTS
from running import losses, run

RUN = [one for one in SCRIPTS if not one.needs]


@pytest.fixture(scope="session")
def checkout():
    folder = os.environ.get("SINGA")
    if not folder:
        pytest.fail("SINGA names no checkout of SINGA: make test-singa SINGA=folder")
    return Path(folder)


@pytest.mark.parametrize("script", RUN, ids=[one.path for one in RUN])
def test_runs_and_learns(script, checkout, tmp_path):
    if missing := [name for name in script.packages if find_spec(name) is None]:
        pytest.skip(f"it imports {', '.join(missing)}")
    printed = run(script, checkout, tmp_path)
    assert script.prints in printed, printed
    if script.loss:
        first, *_, last = losses(script, printed)
        assert last < script.falls * first, printed
