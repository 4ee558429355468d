"""Checks one program in several ways."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from . import compare, ways
from .generate import generate
from .program import Program
from .run import Seen, code_of, run

#: The number of ways besides plain replay in which a program is run.
WAYS = (1, 1, 2)


class Finding(NamedTuple):
    """A program that differs when run in a way."""

    program: Program
    way: ways.Way
    says: str


def check(
    seed: int, also: tuple[ways.Way, ...] = ()
) -> tuple[Program, list[Finding], dict[str, Seen]]:
    """The program of a seed, its findings, and what was seen in each way."""
    program, seen = tried(seed)
    rng = Random(~seed)
    chosen = [ways.REPLAYED, *ways.drawn(rng, program, rng.choice(WAYS)), *also]
    findings = []
    code = code_of(program)
    for way in chosen:
        says = judge(program, way, seen, code)
        if says is not None:
            findings.append(Finding(program, way, says))
    return program, findings, seen


def tried(seed: int) -> tuple[Program, dict[str, Seen]]:
    """The program of a seed, and what eager execution shows. Most programs whose first step is
    refused lose their writes, so that nothing is left to refuse."""
    program = generate(seed)
    eager = run(program, code_of(program), ways.EAGER)
    if eager.error is not None and len(eager.items) == 1 and seed % 10:
        program.forward = [line for line in program.forward if not _is_write(line)]
        eager = run(program, code_of(program), ways.EAGER)
    return program, {ways.EAGER.name: eager}


def _is_write(line: str) -> bool:
    return not re.match(r"(with .*: )?[vw]\w*(, \w+)*,? = ", line)


def still(finding: Finding) -> Callable[[Program], bool]:
    """A predicate: whether a smaller program differs like this one, with the same errors."""

    def errors(program: Program) -> tuple[str | None, str, str]:
        seen: dict[str, Seen] = {}
        says = judge(program, finding.way, seen)
        kinds = [seen[w.name].error for w in (ways.reference(finding.way, program), finding.way)]
        return says, *(type(e).__name__ for e in kinds)

    want = errors(finding.program)[1:]

    def fails(program: Program) -> bool:
        says, *kinds = errors(program)
        return says is not None and tuple(kinds) == want

    return fails


def judge(
    program: Program, way: ways.Way, seen: dict[str, Seen], code: object = None
) -> str | None:
    """How a program differs when run in a way; `seen` caches its runs."""
    code = code_of(program) if code is None else code
    reference = ways.reference(way, program)
    for one in {reference.name: reference, way.name: way, **_one_thread(reference)}.values():
        if one.name not in seen:
            seen[one.name] = run(program, code, one)
    eager, made = seen[reference.name], seen[way.name]
    if not way.exact:
        return compare.apart(eager, made, program)
    found = compare.difference(eager, made, way)
    if found is None and reference is ways.EAGER_2:
        found = compare.apart(seen[ways.EAGER.name], eager, program)
        return found and f"between 1 and 2 threads, eagerly: {found}"
    return found


def _one_thread(reference: ways.Way) -> dict[str, ways.Way]:
    """Two threads are compared with one, too."""
    return {ways.EAGER.name: ways.EAGER} if reference is ways.EAGER_2 else {}
