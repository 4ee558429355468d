"""Runs code in a forked child."""

import os
import signal
import time

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def in_child(job) -> str:
    """The result of `job` in a forked child that then exits as scripts do; kills one that hangs."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = str(job())
        except BaseException as failure:
            answer = f"{type(failure).__name__}: {failure}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + 30
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pytest.fail("the forked child hangs")
        time.sleep(0.01)
    with os.fdopen(reader) as answer:
        return answer.read()
