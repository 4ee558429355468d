"""Shrinks a program that differs: drops lines, substitutes their values, reduces sizes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from .program import Program

#: Seconds that shrinking one program may take.
PATIENCE = 40.0
_NAME = re.compile(r"\b(?:v\d+(?:_\d+)?|w2?|x|z)\b")
_PLAIN_LOSS = ["loss = autograd.reduce_mean(out * out).reshape((1,))"]
_PLAIN: dict[str, list[list[str]]] = {
    "session": [["see(m(x0, y0))"] * n for n in (1, 2, 3, 4)],
    "losses": [_PLAIN_LOSS],
    "update": [[], ["loss.backward()"], ["self.opt0(loss)"]],
}
#: Parts of a line that may be left out.
_LESS = (
    (r", \w+=[^,()]+(?=[,)])", ""),
    (r" if [^\[]* else \w+$", ""),
    (r" \* -?\d[\d.]*", ""),
    (r"-?\d[\d.]* \* ", ""),
    (r" [-+] (0\.\d+ \* )?loss\d.*$", ""),
    (r"\.as_type\([^)]*\)", ""),
    (r", keep=False", ""),
    (r"opt\.\w+\([^()]*\)", "opt.SGD(0.1)"),
)


class Shrinker:
    """The smallest program so far for which `fails` holds, and the time left."""

    def __init__(self, program: Program, fails: Callable[[Program], bool], patience: float) -> None:
        self.best, self.fails = program, fails
        self.end = time.monotonic() + patience

    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.end

    def takes(self, smaller: Program) -> bool:
        """Whether a smaller program fails as well, and so becomes the best."""
        if self.is_over():
            return False
        try:
            fails = self.fails(smaller)
        except (SyntaxError, NameError):
            fails = False
        if fails:
            self.best = smaller
        return fails

    def run(self) -> Program:
        """Continues for as long as anything gets smaller."""
        before = None
        while before != self._weight() and not self.is_over():
            before = self._weight()
            self._plain()
            for part in ("session", "update", "losses", "forward", "init", "data"):
                self._pieces(part)
            self._results()
            self._lines()
            self._sizes()
        return self.best

    def _weight(self) -> tuple[int, int]:
        return self.best.lines(), len(self.best.source()) + len(self.best.classes)

    def _with(self, part: str, lines: list[str]) -> Program:
        made = self.best.copy()
        setattr(made, part, lines)
        return made

    def _plain(self) -> None:
        """Tries the plainest version of each part."""
        for part, versions in _PLAIN.items():
            for lines in versions:
                have = getattr(self.best, part)
                if (len(lines), len("".join(lines))) < (len(have), len("".join(have))):
                    if self.takes(self._with(part, list(lines))):
                        break

    def _pieces(self, part: str) -> None:
        """Drops pieces of a part, large ones first."""
        size = max(len(getattr(self.best, part)) // 2, 1)
        while size:
            i = len(getattr(self.best, part))
            while i > 0:
                i = min(i, len(getattr(self.best, part)))
                lines = getattr(self.best, part)
                start = max(i - size, 0)
                self.takes(self._with(part, lines[:start] + lines[i:])) or (
                    size == 1 and part == "forward" and self._replaced(start)
                )
                i = start
            size //= 2

    def _replaced(self, i: int) -> bool:
        """Drops a statement, and uses one of its operands instead of its result."""
        lines = self.best.forward
        left, _, right = lines[i].partition(" = ")
        if not right or not _NAME.fullmatch(left):
            return False
        use = re.compile(rf"\b{left}\b")
        for other in dict.fromkeys(_NAME.findall(right)):
            made = self.best.copy()
            made.forward = [use.sub(other, s) for s in lines[:i] + lines[i + 1 :]]
            made.result = use.sub(other, made.result)
            if self.takes(made):
                return True
        return False

    def _results(self) -> None:
        """Tries earlier values as the result, and fewer values to return."""
        made = self.best.copy()
        made.classes = ""
        if self.best.classes:
            self.takes(made)
        made = self.best.copy()
        made.answer = "loss"
        if self.best.answer != "loss":
            self.takes(made)
        for name in _made(self.best):
            if name == self.best.result:
                break
            made = self.best.copy()
            made.result = name
            if self.takes(made):
                break

    def _lines(self) -> None:
        """Drops arguments, and simplifies calls."""
        for part in ("forward", "losses", "init", "session"):
            for i, line in enumerate(getattr(self.best, part)):
                for shorter in _shorter(line):
                    lines = list(getattr(self.best, part))
                    lines[i] = shorter
                    if self.takes(self._with(part, lines)):
                        break

    def _sizes(self) -> None:
        """Tries smaller numbers in shapes, everywhere at once."""
        text = "\n".join(line for part in Program.PARTS for line in getattr(self.best, part))
        sizes = sorted({int(n) for n in re.findall(r"(?<![\w.])\d+(?![\w.])", text)}, reverse=True)
        for size in sizes:
            for smaller in (1, 2, size // 2, size - 1):
                if 0 < smaller < size and self.takes(_resized(self.best, size, smaller)):
                    break


def shrink(
    program: Program, fails: Callable[[Program], bool], patience: float = PATIENCE
) -> Program:
    """A smaller program for which `fails` still holds."""
    return Shrinker(program, fails, patience).run()


def _made(program: Program) -> list[str]:
    made = [line.split(" = ")[0] for line in program.forward if " = " in line]
    return ["x", *(name for left in made for name in _NAME.findall(left))]


def _shorter(line: str) -> Iterator[str]:
    for pattern, to in _LESS:
        for match in re.finditer(pattern, line):
            if match.group() != to:
                yield line[: match.start()] + to + line[match.end() :]


def _resized(program: Program, size: int, smaller: int) -> Program:
    use = re.compile(rf"(?<![\w.]){size}(?![\w.])")
    made = program.copy()
    for part in Program.PARTS:
        setattr(made, part, [use.sub(str(smaller), line) for line in getattr(program, part)])
    made.result = program.result
    return made
