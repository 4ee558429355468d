"""The command `singa-rs`: `info`, `view`, `bench`, `run`; also `python -m singa_rs`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import bench, info, run, view

#: Each has `NAME`, `add(parser)`, which adds its arguments, and `run(given)`, the exit status.
COMMANDS = (info, view, bench, run)
#: What is wrong with a file, an argument or a machine, as against this program.
FAILURES = (OSError, ValueError, TypeError, RuntimeError, ModuleNotFoundError, MemoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status: 0, 1 where it failed, 2 for wrong arguments, and
    for `run` that of the program."""
    parser = argparse.ArgumentParser(
        prog="singa-rs", description="Looks at, measures and runs what singa_rs does."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command in COMMANDS:
        text = (command.__doc__ or "").split(": ", 1)[1].rstrip(".")
        command.add(commands.add_parser(command.NAME, help=text, description=command.__doc__))
    given = parser.parse_args(arguments)
    chosen = next(one for one in COMMANDS if one.NAME == given.command)
    try:
        return chosen.run(given)
    except FAILURES as error:
        print(f"singa-rs {given.command}: {error}", file=sys.stderr)
        return 1
