"""The blocks of Python of a page in docs/."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


def blocks(name):
    """The blocks of a page."""
    return BLOCK.findall((DOCS / name).read_text())


def program(name):
    """All blocks of a page as one program, in which lines have the numbers that they have there."""
    text = (DOCS / name).read_text()
    lines = [""] * text.count("\n")
    for found in BLOCK.finditer(text):
        first = text.count("\n", 0, found.start(1))
        block = found[1].splitlines()
        lines[first : first + len(block)] = block
    return "\n".join(lines)
