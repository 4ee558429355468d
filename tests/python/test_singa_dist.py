"""Distributed training as SINGA's programs have it, through the alias: by processes that share a
token, however they are started, and by those of a launcher of MPI programs."""

import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

MPIEXEC = Path(sys.executable).with_name("mpiexec")
PROGRAM = Path(__file__).with_name("singa_train.py")
OPTIONS = ("plain", "half", "partialUpdate", "sparseTopK", "sparseThreshold")
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="MPI is not installed: pip install singa-rs[mpi]",
)


@cache
def trained(*arguments, launcher=()):
    """The losses that the program prints, and how far its ranks' parameters are apart."""
    command = [*launcher, sys.executable, "-m", "singa_rs.compat.singa", PROGRAM, *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "SINGA_RS_DEVICE": "cpu"},
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    found = [re.findall(rf"{name} = ([\d.]+)", done.stdout) for name in ("loss", "Distance")]
    losses, apart = ([float(one) for one in ones] for ones in found)
    assert len(losses) == 4 and len(apart) == 1, done.stdout
    return losses, apart[0]


def by_mpi(option, size=2):
    return trained("mpi", option, launcher=(str(MPIEXEC), "-n", str(size)))


@pytest.mark.parametrize("option", OPTIONS)
def test_processes_that_share_a_token_learn(option):
    losses, apart = trained("fork", option, "2")
    assert losses[-1] < losses[0] / 10
    assert (apart == 0) == (option != "partialUpdate")


def test_several_processes_do_what_one_does():
    alone, _ = trained("fork", "plain", "1")
    for size in ("2", "4"):
        losses, _ = trained("fork", "plain", size)
        assert losses == pytest.approx(alone, rel=1e-4, abs=2e-6)


def test_what_travels_changes_what_is_learned():
    """So that an option that does nothing shows."""
    found = [trained("fork", option, "2")[0] for option in OPTIONS]
    assert len({tuple(losses) for losses in found}) == len(OPTIONS)


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_processes_that_begin_anew_find_singa(way):
    assert trained(way, "plain", "2") == trained("fork", "plain", "2")


def test_a_module_that_starts_processes_anew_is_found(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.read_text())
    command = ["-m", "singa_rs.compat.singa", "-m", "program", "spawn", "plain", "2"]
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "SINGA_RS_DEVICE": "cpu"},
    )
    assert "Distance = 0.000000" in done.stdout, done.stderr


@needs_mpi
@pytest.mark.parametrize("option", OPTIONS)
def test_processes_of_mpi_do_what_those_with_a_token_do(option):
    assert by_mpi(option) == trained("fork", option, "2")
