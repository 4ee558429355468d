"""Runs an example of SINGA's on generated data, in a copy: the checkout stays as it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from generated import WRITERS
from script import Script

#: A run may take so many seconds.
LIMIT = 400
#: What a process prints that fails. Programs that start processes do not look how these end.
TRACEBACK = "Traceback (most recent call last)"
#: What the scripts read from folders with these names is generated.
FOLDERS = ("/tmp", "/Dataset")


def run(script: Script, checkout: Path, folder: Path) -> str:
    """What the script prints, run in a folder that it and its data are written to.

    Raises:
        AssertionError: the script fails, or does not have the text that the catalogue changes.
        FileNotFoundError: the checkout does not have the script.
    """
    copy, data = folder / "examples", folder / "data"
    data.mkdir()
    for name in script.data:
        WRITERS[name](data)
    for name in {one.split("/")[0] for one in (script.path, *script.paths, *script.others)}:
        shutil.copytree(checkout / "examples" / name, copy / name)
    change(copy, script, data)
    return _printed(script, copy, data)


def change(copy: Path, script: Script, data: Path) -> None:
    """Makes a copy of the examples read generated data, and the script's changes.

    Raises:
        AssertionError: a text to be changed is missing: this is not the SINGA that the catalogue
            is about.
    """
    for name, changes in script.changes().items():
        path = copy / name
        text = path.read_text(encoding="utf-8")
        for old, new in changes.items():
            assert old in text, f"{name} does not have {old!r}"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    for path in copy.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(_moved(text, data), encoding="utf-8")


def losses(script: Script, printed: str) -> list[float]:
    """The losses that a run printed, in their order."""
    return [float(one) for one in re.findall(script.loss, printed)]


def _moved(text: str, data: Path) -> str:
    """A program's text with the folders of its data replaced."""
    for place in FOLDERS:
        kept = "" if place == "/tmp" else place
        text = re.sub(rf"(['\"]){place}(?=[/'\"])", rf"\g<1>{data}{kept}", text)
    return text.replace("os.path.join('/', 'tmp',", f"os.path.join({str(data)!r},")


def _printed(script: Script, copy: Path, data: Path) -> str:
    arguments = [str(copy / script.path), *script.arguments.format(data=data).split()]
    paths = [*(str(copy / one) for one in (*script.paths, ".")), os.environ.get("PYTHONPATH", "")]
    given = {
        "MPLBACKEND": "Agg",
        "PYTHONPATH": os.pathsep.join(paths),
        "SINGA_RS_DEVICE": "cpu" if script.cuda else "",
    }
    done = subprocess.run(
        [*_launcher(script), sys.executable, "-m", "singa_rs.compat.singa", *arguments],
        cwd=data,
        env={**os.environ, **given},
        input=script.typed,
        timeout=LIMIT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    has_failed = done.returncode != 0 or TRACEBACK in done.stdout
    assert not has_failed, f"{' '.join(arguments)}:\n{done.stdout[-4000:]}"
    return done.stdout


def _launcher(script: Script) -> list[str]:
    """How the processes of a program of MPI are started: by the launcher beside Python."""
    if not script.ranks:
        return []
    return [str(Path(sys.executable).with_name("mpiexec")), "-n", str(script.ranks)]
