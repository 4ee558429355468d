"""Processes that start in milliseconds: forked from one that has imported what tests import, where
`spawn` starts an interpreter for each."""

import multiprocessing
import os
from multiprocessing import forkserver

import pytest

HERE = os.path.dirname(__file__)
#: What it is set to differs from test to test.
VARYING = {"PYTEST_CURRENT_TEST"}


def environment():
    return {name: value for name, value in os.environ.items() if name not in VARYING}


class Server:
    """The process that forks, with the environment that it was started in."""

    started_in = None

    @classmethod
    def start(cls):
        if cls.started_in is None:
            forkserver.set_forkserver_preload(["forked_ranks"])
            paths = os.pathsep.join([HERE, os.path.dirname(HERE), os.environ.get("PYTHONPATH", "")])
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PYTHONPATH", paths)
                forkserver.ensure_running()
            cls.started_in = environment()


@pytest.fixture
def quick_start(monkeypatch):
    """Has processes forked that would be spawned, unless a test has changed the environment."""
    Server.start()
    context = multiprocessing.get_context

    def get_context(method=None):
        is_quick = method == "spawn" and environment() == Server.started_in
        return context("forkserver" if is_quick else method)

    monkeypatch.setattr(multiprocessing, "get_context", get_context)
