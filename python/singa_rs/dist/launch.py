"""Processes that a program starts to work together on this machine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from ..refusals import is_integral
from ..shown import ending, shown
from . import group
from .children import end_with, segment
from .faults import DistError, RankError, told
from .place import MOST_RANKS, Place

#: How many seconds longer than the timeout the other ranks get to end after one has failed.
_GRACE = 1.0
#: How many seconds the system waits at once: far fewer than it can count.
_LONGEST = 1e6


class _Outcome(NamedTuple):
    """What a rank has come to. `is_cause` tells whether it may have made the others fail."""

    is_good: bool
    value: Any
    is_cause: bool = True


def spawn(
    fn: Callable[..., Any], n: int, args: Sequence[Any] = (), timeout: float = group.PATIENCE
) -> list[Any]:
    """Calls `fn(*args)` in `n` new processes that work together, and returns what they return, in
    the order of ranks.

    The processes exchange through shared memory, so they are for one machine: notebooks, tests, a
    computer with several devices. A script that calls this needs `if __name__ == "__main__":`.
    When one fails, the others' exchanges raise; those that go on without any are ended.

    Args:
        fn: a function that pickle can copy; a notebook imports it from a file.
        args: what it is called with.
        timeout: as that of `init`.

    Raises:
        TypeError, ValueError: an argument of the wrong type or out of range, or one that pickle
            cannot copy.
        RankError: a rank has raised, was killed or has exited; it names the rank that was the
            cause, with its traceback.
    """
    if not is_integral(n):
        raise TypeError(f"spawn: got n {n!r:.80}, want an int")
    if not 1 <= n <= MOST_RANKS:
        want = "at least 1" if n < 1 else f"at most {MOST_RANKS}"
        raise ValueError(f"spawn: got n {shown(n)}, want {want}")
    group.check_timeout(timeout, "spawn")
    job = _job(fn, args)
    with segment() as path:
        places = [Place(rank, n, rank, n, path if n > 1 else None, "spawn") for rank in range(n)]
        ranks: list[_Rank] = []
        try:
            for place in places:
                ranks.append(_Rank(job, place, timeout))
            return _results(ranks, timeout + _GRACE)
        finally:
            for one in ranks:
                one.end()


def _job(fn: Callable[..., Any], args: Sequence[Any]) -> bytes:
    try:
        return pickle.dumps((fn, tuple(args)))
    except Exception as error:
        raise TypeError(
            f"spawn: fn and args are copied to the processes, which failed: {error}; want what "
            "pickle can copy, such as a function at the top of a file"
        ) from error


class _Rank:
    """A process, seen from its parent."""

    def __init__(self, job: bytes, place: Place, timeout: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.number = place.rank
        self.pipe, theirs = context.Pipe(duplex=False)
        given = (job, place, timeout, os.getpid(), theirs)
        self.process = context.Process(target=_live, args=given, name=f"rank {place.rank}")
        try:
            self.process.start()
        except BaseException:
            self.pipe.close()
            raise
        finally:
            theirs.close()

    def outcome(self) -> _Outcome:
        """What the process, which has answered or ended, has come to."""
        try:
            answer = self.pipe.recv_bytes()
        except (EOFError, OSError):  # it ended without an answer
            self.process.join()
            return _Outcome(False, ending(self.process.exitcode))
        try:
            return _Outcome(*pickle.loads(answer))
        except Exception as error:
            return _Outcome(False, f"returned what pickle cannot copy: {told(error)}")

    def end(self) -> None:
        """Ends the process if it still runs, and leaves no zombie."""
        if self.process.pid is not None:
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _results(ranks: list[_Rank], grace: float) -> list[Any]:
    """What all ranks return; an error where one fails."""
    found: dict[int, _Outcome] = {}
    deadline: float | None = None
    while waiting := [one for one in ranks if one.number not in found]:
        left = _LONGEST if deadline is None else max(0.0, deadline - time.monotonic())
        ready = wait([one.pipe for one in waiting], min(left, _LONGEST))
        if not ready and left < _LONGEST:
            break
        for one in waiting:
            if one.pipe in ready:
                found[one.number] = one.outcome()
                if not found[one.number].is_good and deadline is None:
                    deadline = time.monotonic() + grace
    if deadline is not None:
        raise _error(found)
    for one in ranks:
        one.process.join()
    return [found[one.number].value for one in ranks]


def _error(found: dict[int, _Outcome]) -> RankError:
    """The error of the rank that failed first of itself; a line for each of the others."""
    failed = {number: one for number, one in found.items() if not one.is_good}
    cause = next((number for number, one in failed.items() if one.is_cause), next(iter(failed)))
    others = (
        f"rank {number} {one.value.splitlines()[0]}"
        for number, one in sorted(failed.items())
        if number != cause
    )
    return RankError(cause, failed[cause].value, tuple(others))


# ---- in the process ------------------------------------------------------------------------------


def _live(job: bytes, place: Place, timeout: float, parent: int, answers: Connection) -> None:
    """The life of a process: joins the others, calls the function, answers with its result."""
    end_with(parent)
    try:
        fn, args = pickle.loads(job)
        group.join(place, timeout)
        answer = pickle.dumps(_Outcome(True, fn(*args)))
    except BaseException as error:
        is_cause = not isinstance(error, DistError)
        if is_cause:
            group.tell_failure(error)
        trace = "".join(traceback.format_exception(error)).rstrip()
        summary = traceback.format_exception_only(error)[-1].strip()
        text = f"raised {summary}\n\n{trace}"
        answer = pickle.dumps(_Outcome(False, text, is_cause))
    answers.send_bytes(answer)
    answers.close()
    group.shutdown()
