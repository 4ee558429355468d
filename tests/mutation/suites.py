"""The tests for mutants: those in Rust, one by one, and those in Python, by file."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from crate import ROOT, Crate

SETTINGS = {
    "PROPTEST_RNG_SEED": "1",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
    "RUST_BACKTRACE": "0",
}


class Rust:
    """The tests of the crate's library, each in a process of its own."""

    name = "Rust"
    #: Limits in seconds: of one test without a mutant, and of all tests of a mutant together.
    longest, altogether = 1800.0, 1800.0

    def __init__(self, crate: Crate, programs: int):
        self.folder, self.program = crate.folder, crate.program()
        drawn = {"SINGA_RS_PROGRAMS": str(programs)} if programs else {}
        self.environment: Mapping[str, str] = {**os.environ, **SETTINGS, **drawn}

    def names(self) -> list[str]:
        """All tests."""
        listed = subprocess.run(
            [self.program, "--list", "--format", "terse"],
            cwd=self.folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
        lines = listed.stdout.splitlines()
        return [line[: -len(": test")] for line in lines if line.endswith(": test")]

    def command(self, test: str) -> list[str | Path]:
        """The command that runs one."""
        return [self.program, "--exact", test]


class Python:
    """The tests of the package, each file in a process of its own, up to the first failure."""

    name = "Python"
    #: As of `Rust`.
    longest, altogether = 30.0, 40.0
    folder = ROOT

    def __init__(self, crate: Crate, folder: Path):
        package = folder / "singa_rs"
        shutil.rmtree(folder, ignore_errors=True)
        built = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / "python" / "singa_rs", package, ignore=built)
        shutil.copy(crate.library(), package / "_core.abi3.so")
        self.environment = {**os.environ, **SETTINGS, "PYTHONPATH": str(folder)}

    def names(self) -> list[str]:
        """All files with tests."""
        files = sorted((ROOT / "tests" / "python").glob("test_*.py"))
        return [str(file.relative_to(ROOT)) for file in files]

    def command(self, test: str) -> list[str | Path]:
        """The command that runs one."""
        return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
