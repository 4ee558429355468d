"""The results of a run: a table by room, and the survivors with their reasons."""

import json
from collections import Counter
from functools import cache
from pathlib import Path

REASONS = Path(__file__).parent / "survivors.json"
CAUGHT = ("caught", "timeout")


def read(results: Path) -> dict[str, dict]:
    """The last record of each mutant."""
    lines = results.read_text().splitlines() if results.exists() else []
    return {record["key"]: record for record in map(json.loads, lines)}


@cache
def reasons() -> list[dict]:
    """Why mutants may survive: each names a file, and optionally functions and parts of changes."""
    return json.loads(REASONS.read_text()) if REASONS.exists() else []


def reason(record: dict) -> str | None:
    """Why a mutant may survive, if that is known."""
    for one in reasons():
        mutants = one.get("mutants", [""])
        functions = one.get("functions", [record["function"]])
        is_same = record["file"] == one["file"] and record["function"] in functions
        if is_same and any(part in record["mutant"] for part in mutants):
            return one["reason"]
    return None


def table(records: list[dict]) -> str:
    """How many were caught, by room."""
    counts: dict[str, Counter] = {}
    for record in records:
        for room in (record["file"].split("/")[1], "all"):
            counts.setdefault(room, Counter())[record["outcome"]] += 1
    rows = ["| room | mutants | caught | by time | survived | not reached | share caught |"]
    rows.append("|---|---:|---:|---:|---:|---:|---:|")
    for room, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0])):
        caught = sum(count[c] for c in CAUGHT)
        cells = [count.total(), caught, count["timeout"], count["survived"], count["not reached"]]
        rows.append(f"| {room} | {' | '.join(map(str, cells))} | {caught / count.total():.1%} |")
    return "\n".join(rows)


def survivors(records: list[dict]) -> list[str]:
    """One line per mutant that no test caught, with the reason if one is known."""
    lines = []
    for record in sorted(records, key=lambda r: (r["file"], r["line"])):
        if record["outcome"] not in CAUGHT:
            why = reason(record) or "NO REASON KNOWN"
            note = " (not reached)" if record["outcome"] == "not reached" else ""
            place = f"{record['file']}:{record['line']}"
            lines.append(f"{place} {record['function']}: {record['mutant']}{note} -- {why}")
    return lines
