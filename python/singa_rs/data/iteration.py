"""One iteration over a data set."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from .pipeline import Failure, Pipeline


class Place:
    """How far an iteration has come: an epoch, and the number of batches given in it."""

    def __init__(self, epoch: int, position: int, is_begun: bool = False) -> None:
        self.epoch, self.position, self.is_begun = epoch, position, is_begun

    def next(self) -> Place:
        """Where the next iteration begins: here, or if one has begun here, in the next epoch."""
        if self.is_begun:
            return Place(self.epoch + 1, 0, True)
        return Place(self.epoch, self.position, True)

    def end(self) -> None:
        """Goes on to the next epoch."""
        self.epoch, self.position, self.is_begun = self.epoch + 1, 0, False


class Batches(Iterator[Any]):
    """The batches of one epoch, which several threads may share. It ends its workers when it ends,
    is closed or is dropped."""

    def __init__(
        self,
        loader: Any,
        tasks: Iterator[Any],
        make: Callable[[int, Any], Any],
        place: Place,
        *,
        stage: Callable[[Any], Any] | None,
        threads: int,
        room: int,
        close: Callable[[], None] | None,
    ) -> None:
        self._loader = loader  # whose end would end the workers that stay
        self._place, self._is_over, self._ending = place, False, threading.Lock()
        step = _Step(make, stage, place.position)
        self._line = Pipeline(tasks, step, threads, room) if threads else _Serial(tasks, step)
        self._end = weakref.finalize(self, _end, self._line, close)
        try:
            self._line.start()
        except BaseException:
            self._end()
            raise

    def __next__(self) -> Any:
        if self._is_over:
            raise StopIteration
        try:
            return self._line.take(self._count)
        except StopIteration:
            self._go_on()
            self.close()
            raise
        except BaseException:
            self._end()
            raise

    def _count(self) -> None:
        self._place.position += 1
        self._loader._note(self._place.position)

    def _go_on(self) -> None:
        """Goes on to the next epoch, once."""
        with self._ending:
            if not self._is_over:
                self._is_over = True
                self._loader._note(0)
                self._place.end()

    def close(self) -> None:
        """Ends the iteration and its workers."""
        self._end()
        self._line.join()


class _Step:
    """Makes a batch of a task, counted from the first batch of the iteration."""

    def __init__(self, make: Callable[[int, Any], Any], stage: Any, start: int) -> None:
        self._make, self._stage, self._start = make, stage, start

    def __call__(self, number: int, task: Any) -> Any:
        batch = self._make(self._start + number, task)
        return batch if self._stage is None else self._stage(batch)


class _Serial:
    """A pipeline without threads: results are made when they are taken."""

    def __init__(self, tasks: Iterator[Any], make: Callable[[int, Any], Any]) -> None:
        self._tasks, self._make, self._taken = tasks, make, 0
        self._is_stopped = self._is_past_end = False
        self._reading = threading.RLock()

    def start(self) -> None:
        """Nothing runs in the background."""

    def take(self, count: Callable[[], None]) -> Any:
        """The next result, as that of a pipeline."""
        with self._reading:
            if self._is_past_end:
                raise StopIteration
            if self._is_stopped:
                raise RuntimeError("DataLoader: the iteration was closed, or ended by an error")
            try:
                made = self._made()
            except BaseException as error:
                self._is_past_end = isinstance(error, StopIteration)
                self._is_stopped = True
                raise
            self._taken += 1
            count()
            return made

    def _made(self) -> Any:
        task = next(self._tasks)
        try:
            return self._make(self._taken, task)
        except StopIteration as error:
            return Failure(error).reraise()

    def stop(self) -> None:
        """Nothing more is taken."""
        self._is_stopped = True

    def join(self) -> None:
        """There is nothing to wait for."""


def _end(line: Pipeline | _Serial, close: Callable[[], None] | None) -> None:
    """Ends what makes batches. Knows nothing of who reads them, whose end calls it."""
    line.stop()
    if close is not None:
        with suppress(OSError):
            close()
