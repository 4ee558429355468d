"""Files: opened only if they are regular, and replaced atomically."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from .errors import CheckpointError

__all__ = [
    "Missing",
    "Replacement",
    "Unusable",
    "check_regular",
    "flush_directory",
    "path_of",
    "reading",
    "replacing",
    "writing",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class Missing(CheckpointError, FileNotFoundError):
    """There is no such file."""


class Unusable(CheckpointError, OSError):
    """The path cannot be opened, or is a directory, a pipe or a device."""


def path_of(op: str, path: Any) -> str:
    """A path as text.

    Raises:
        TypeError: not a path.
        ValueError: not a valid path.
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"{op}: got {type(path).__name__}, want a path") from None
    try:
        is_usable = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        is_usable = False
    if not is_usable:
        raise ValueError(f"{op}: got {text!r}, which is not a valid path")
    return text


@contextmanager
def reading(op: str, path: str) -> Iterator[IO[bytes]]:
    """The file at a path.

    Raises:
        Missing, Unusable: both CheckpointError and OSError.
    """
    try:
        _check_regular(op, path, os.stat(path))
        file = open(path, "rb")  # errors of the caller's block are not of opening
    except FileNotFoundError as error:
        raise Missing(f"{op}: {path}: no such file") from error
    except Unusable:
        raise
    except OSError as error:
        raise Unusable(f"{op}: {path}: cannot be read: {error}") from error
    with file:
        yield file


@contextmanager
def replacing(op: str, path: str) -> Iterator[IO[bytes]]:
    """A file that replaces the one at `path` once it is complete and on disk. If the path is a
    symbolic link, its target is replaced.

    Raises:
        Unusable: the path exists and is not a regular file.
        OSError: the file cannot be written; an existing one is untouched.
    """
    made = Replacement(op, path)
    try:
        with writing(op, path):
            with open(made.temporary, "wb") as file:
                yield file
            made.seal()
            made.commit()
    except BaseException:
        made.discard()
        raise


@contextmanager
def writing(op: str, path: str) -> Iterator[None]:
    """Has the system's errors that name no file, such as that of a full disk, name the operation
    and the file that it writes."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, f"{op}: {error.strerror}", path) from error


class Replacement:
    """A new, empty file next to the one that it is to replace: write to `temporary`, `seal`, then
    `commit` or `discard`. If the path is a symbolic link, its target is replaced. The new file
    has the permissions of the one that it replaces."""

    def __init__(
        self, op: str, path: str, name: Callable[[str], str] = lambda base: _random_name()
    ) -> None:
        """`name` gives the new file's name, of the name of the file that it replaces.

        Raises:
            Unusable: the path exists and is not a regular file.
            OSError: the new file cannot be made.
        """
        self.target, self._before = _target(op, path)
        self._made: list[str] = []
        try:
            self.temporary = self.create(name(os.path.basename(self.target)))
        except OSError as error:  # names the temporary, not the file
            raise OSError(error.errno, f"{op}: {error.strerror}", path) from error

    def create(self, name: str) -> str:
        """Makes another new file in the folder, which is sealed and discarded with the first one;
        returns its path.

        Raises:
            OSError: it exists, or cannot be made.
        """
        path = os.path.join(os.path.dirname(self.target), name)
        mode = 0o666 if self._before is None else 0o600  # nobody else may read it meanwhile
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
        self._made.append(path)
        return path

    def seal(self) -> None:
        """Flushes what was made to disk, with the permissions of the file that is replaced."""
        for path in self._made:
            with open(path, "rb+") as file:
                if self._before is not None:
                    _take_after(path, self._before)
                os.fsync(file.fileno())

    def commit(self) -> None:
        """Replaces the file, in one step."""
        os.replace(self.temporary, self.target)
        flush_directory(self.target)

    def discard(self) -> None:
        """Removes what was made."""
        for path in self._made:
            with suppress(OSError):
                os.unlink(path)


def _target(op: str, path: str) -> tuple[str, os.stat_result | None]:
    """The real path of a file, and its status if it exists."""
    try:
        before = os.stat(path)
    except FileNotFoundError:
        if not os.path.basename(path):
            raise Unusable(f"{op}: {path!r} does not name a file") from None
        return os.path.realpath(path), None
    _check_regular(op, path, before)
    target = os.path.realpath(path)
    if not os.path.exists(target) or not os.path.samestat(before, os.stat(target)):
        raise Unusable(f"{op}: {path}: the file is in no directory, so it cannot be replaced")
    return target, before


def check_regular(op: str, path: str) -> None:
    """Rejects a path at which something else than a regular file is.

    Raises:
        Unusable: a directory, a pipe or a device.
    """
    with suppress(FileNotFoundError):
        _check_regular(op, path, os.stat(path))


def _check_regular(op: str, path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Unusable(f"{op}: {path}: is a {_kind(found.st_mode)}, want a regular file")


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "directory", stat.S_ISFIFO: "pipe", stat.S_ISSOCK: "socket"}
    return next((name for is_one, name in kinds.items() if is_one(mode)), "device")


def _random_name() -> str:
    return f".singa_rs-{os.urandom(16).hex()}.tmp"


def _take_after(path: str, before: os.stat_result) -> None:
    """Gives a file the permissions and, where allowed, the ownership of another."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(path, before.st_uid, before.st_gid)
    os.chmod(path, stat.S_IMODE(before.st_mode))


def flush_directory(path: str) -> None:
    """Flushes the entries of a file's directory to disk, where the system supports that."""
    with suppress(OSError):
        handle = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
