"""Runs a program of SINGA's unchanged: `python -m singa_rs.compat.singa script.py [arguments]`, or
`... -m module [arguments]`, with `singa` standing for `singa_rs.compat.singa`, also in processes
that the program starts by multiprocessing."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from .alias import install

#: What processes that do not have this one's modules find `singa` in. It comes after the program's
#: own folder, which programs expect to be first.
_SPAWNED = str(Path(__file__).parents[1] / "spawned")
_USAGE = "python -m singa_rs.compat.singa (script.py | -m module) [arguments]"


def main(arguments: list[str]) -> None:
    """Runs the script, or the module, that the arguments name."""
    is_module = arguments[:1] == ["-m"]
    program, *rest = arguments[is_module:] or [""]
    if not program or (program.startswith("-") and not is_module):
        raise SystemExit(f"usage: {_USAGE}")
    if not is_module and not Path(program).is_file():
        raise SystemExit(f"{_USAGE.split(' (')[0]}: got {program!r}, want a script")
    install()
    sys.argv = [program, *rest]
    sys.path.insert(1, _SPAWNED)
    if is_module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
