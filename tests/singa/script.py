"""What is known of a program of SINGA's example folder."""

from __future__ import annotations

from typing import NamedTuple

#: Text of a program, and what replaces it.
Changes = dict[str, str]


class Script(NamedTuple):
    """A program: where it is, how it is called, and what it needs."""

    #: Below `examples/`.
    path: str
    arguments: str = ""
    #: Functions of `generated`.
    data: tuple[str, ...] = ()
    #: Folders, below `examples/`, of modules that it imports and that are not beside it.
    paths: tuple[str, ...] = ()
    #: What is typed when it asks.
    typed: str = ""
    #: Text that makes its run long, and what makes it short.
    shorter: Changes = {}
    #: Text that is wrong, and what is right; `wrong` tells of it.
    mended: Changes = {}
    wrong: str = ""
    #: Changes of other files.
    others: dict[str, Changes] = {}
    #: Finds the losses that it prints, the last of which has to be below `falls` times the first.
    loss: str = ""
    #: Text that it prints once it is through, where it prints no losses: some end early, and well,
    #: where data are missing.
    prints: str = ""
    falls: float = 0.9
    #: Whether it asks for a CUDA device.
    cuda: bool = True
    #: As how many processes the launcher of MPI programs starts it; 0 without the launcher.
    ranks: int = 0
    #: Packages that it imports and that are not needed otherwise.
    packages: tuple[str, ...] = ()
    #: Why it is not run.
    needs: str = ""

    def changes(self) -> dict[str, Changes]:
        """All changes of text, for each file."""
        own = {**self.shorter, **self.mended}
        return {**self.others, **({self.path: own} if own else {})}

    def outcome(self) -> str:
        """How it runs here, in words."""
        if self.needs:
            return f"needs {self.needs}"
        by = f", by `mpiexec -n {self.ranks}`" if self.ranks else ""
        if self.wrong:
            return f"after a change{by}: {self.wrong}"
        return f"unchanged, with `SINGA_RS_DEVICE=cpu`{by}" if self.cuda else f"unchanged{by}"
