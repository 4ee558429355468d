"""The results of steps.py as a table in Markdown and as a picture."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from workloads import CASES

if TYPE_CHECKING:
    from steps import Outcome

WIDTH, LEFT, ROW, GAP = 760, 120, 17, 40
COLOURS = {"singa_rs": "#c2410c", "portable": "#fdba74", "JAX": "#64748b"}
OTHER = "#94a3b8"


def duration(seconds: float) -> str:
    """The time in a suitable unit."""
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError


def ratio(values: list[float]) -> str:
    """The median and the middle half."""
    if len(values) < 2:
        return f"{values[0]:.2f}"
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):.2f} ({low:.2f} to {high:.2f})"


def bounded(values: list[float], most: float) -> str:
    """The median and the middle half, marked if the median is over its limit."""
    over = f", over {most:g}" if statistics.median(values) > most else ""
    return ratio(values) + over


def _cell(outcome: Outcome, title: str) -> str:
    if title in outcome.failures:
        return "failed"
    if not outcome.shared(title):
        return "-"
    few = outcome.shared(title)
    mark = f" ({len(few)} rounds)" if len(few) < len(outcome.rounds) else ""
    return duration(outcome.seconds(title)) + mark


def _row(outcome: Outcome, titles: Sequence[str], is_loaded: bool) -> str:
    best, case = outcome.best(), CASES[outcome.model]
    cells = [case.title, *(_cell(outcome, title) for title in titles)]
    for ours in ("singa_rs", "portable"):
        if ours in titles:
            known = best and outcome.shared(ours, best)
            cells.append(f"**{ratio(outcome.ratios(ours, best))}**" if known else "-")
    cells += [best or "-", f"{1.2 if is_loaded else case.target:.2f}", str(len(outcome.rounds))]
    return f"| {' | '.join(cells)} |"


def table(outcomes: list[Outcome], titles: Sequence[str], is_loaded: bool) -> str:
    """A row per model: medians, singa_rs's ratio to the best peer, the largest ratio aimed at."""
    heads = ["one step", *titles, "ratio to the best peer"]
    heads += ["portable's ratio"] if "portable" in titles else []
    heads += ["best peer", "at most", "rounds"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [_row(outcome, titles, is_loaded) for outcome in outcomes]
    for outcome in outcomes:
        lines += [f"\n{outcome.model}: {why}" for why in outcome.failures.values()]
        worst = max((turn.others for one in outcome.rounds for turn in one.values()), default=0)
        if worst > 0.1 and not is_loaded:
            lines.append(f"\n{outcome.model}: others took up to {worst:.0%} of the machine")
    return "\n".join(lines)


def _bar(y: int, title: str, share: float, longest: float, label: str) -> str:
    width = share / longest * (WIDTH - LEFT - 130)
    return (
        f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(title)}</text>'
        f'<rect x="{LEFT}" y="{y + 2}" width="{width:.1f}" height="{ROW - 4}" '
        f'fill="{COLOURS.get(title, OTHER)}"/>'
        f'<text x="{LEFT + width + 6:.1f}" y="{y + 12}">{escape(label)}</text>'
    )


def _group(outcome: Outcome, titles: Sequence[str], top: int) -> tuple[list[str], int]:
    """The bars of one model, scaled by the best peer's time, and where the next model begins."""
    best = outcome.best() or "singa_rs"
    shown = [title for title in titles if outcome.shared(title)]
    shares = {title: statistics.median(outcome.ratios(title, best)) for title in shown}
    case = CASES[outcome.model]
    marks = [f'<text x="{LEFT}" y="{top - 5}" font-weight="bold">{escape(case.title)}</text>']
    for i, title in enumerate(shown):
        label = f"{duration(outcome.seconds(title))}, {shares[title]:.2f}"
        marks.append(_bar(top + ROW * i, title, shares[title], max(shares.values()), label))
    return marks, top + ROW * len(shown) + GAP


def draw(outcomes: list[Outcome], titles: Sequence[str], machine: str) -> str:
    """An SVG picture: bars of the time of a step, each labelled with its ratio to the best peer."""
    marks, top = [], 60
    for outcome in outcomes:
        group, top = _group(outcome, titles, top)
        marks += group
    words = "time of a training step (ratio to the best peer); shorter is better"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" '
            f'viewBox="0 0 {WIDTH} {top}" font-family="sans-serif" font-size="12">',
            f"<title>{escape(words)}</title><desc>{escape(machine)}</desc>",
            f'<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>',
            f'<text x="10" y="22" font-size="14">{escape(words)}</text>',
            *marks,
            "</svg>\n",
        ]
    )
