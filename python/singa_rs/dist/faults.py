"""What is raised where processes work together."""

from __future__ import annotations

from ..errors import DistError


class RankError(DistError):
    """A process that `spawn` started has failed: `rank` tells which one, `text` its traceback, or
    how it ended."""

    def __init__(self, rank: int, text: str, others: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join((f"spawn: rank {rank} {text}", *others)))
        self.rank, self.text, self.others = rank, text, others

    def __reduce__(self) -> tuple[type[RankError], tuple[int, str, tuple[str, ...]]]:
        """Copies are made of the parts, not of the message."""
        return RankError, (self.rank, self.text, self.others)


def told(error: BaseException) -> str:
    """The class and text of an error, in what UTF-8 can encode; of one that fails to tell its text,
    the class."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = type(error).__name__
    return text.encode(errors="backslashreplace").decode()
