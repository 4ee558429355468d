"""Threads that make numbered results in the background, which readers take in order."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

#: Seconds that `close` waits for threads, which end when what they are calling returns.
PATIENCE = 10.0


class Failure:
    """An error in the place of a result."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def reraise(self) -> None:
        """Raises the error where the result is wanted."""
        if isinstance(self._error, (StopIteration, StopAsyncIteration, GeneratorExit)):
            # As it is, it would end the reader's loop in silence.
            kind = type(self._error).__name__
            raise RuntimeError(f"DataLoader: the data set raised {kind}") from self._error
        raise self._error


class Pipeline:
    """Makes a result of each task on threads; at most `room` of them are made and not yet taken.

    Results come in the order of their tasks. The first error, of a task or of `tasks` itself, comes
    in the place of its result and is the last. The threads know the pipeline alone, not who reads
    it, so that a reader which is dropped can stop it.
    """

    def __init__(
        self, tasks: Iterator[Any], make: Callable[[int, Any], Any], threads: int, room: int
    ) -> None:
        self._tasks, self._make, self._room = tasks, make, room
        self._feed = threading.Lock()
        self._change = threading.Condition()
        self._results: dict[int, Any] = {}
        self._begun = self._taken = 0
        self._end: int | None = None
        self._is_stopped = self._has_failed = False
        self._process = os.getpid()
        self._threads = [
            threading.Thread(target=self._work, name=f"DataLoader-{i}", daemon=True)
            for i in range(threads)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (begun := self._next()) is not None:
            number, task = begun
            try:
                result = task if isinstance(task, Failure) else self._make(number, task)
            except BaseException as error:
                result = Failure(error)
            del task
            self._put(number, result)
            del result

    def _next(self) -> tuple[int, Any] | None:
        """The next task and its number, once there is room for its result."""
        with self._feed:
            with self._change:
                while not self._is_over() and self._begun - self._taken >= self._room:
                    self._change.wait()
                if self._is_over():
                    return None
                number = self._begun
            try:
                task = next(self._tasks)
            except StopIteration:
                self._finish(number)
                return None
            except BaseException as error:
                task = Failure(error)
            with self._change:
                self._begun += 1
                if isinstance(task, Failure):
                    self._end = self._begun
            return number, task

    def _is_over(self) -> bool:
        return self._is_stopped or self._end is not None

    def _finish(self, end: int) -> None:
        with self._change:
            self._end = end
            self._change.notify_all()

    def _put(self, number: int, result: Any) -> None:
        with self._change:
            if not self._is_stopped:
                self._results[number] = result
            if isinstance(result, Failure) and self._end is None:
                self._end = self._begun  # what has been begun comes before the error, or is dropped
            self._change.notify_all()

    def take(self, count: Callable[[], None] | None = None) -> Any:
        """The next result. `count` is called before another reader may take one.

        Raises:
            StopIteration: there are no more.
            RuntimeError: the pipeline was stopped, or this process was forked from the one whose
                threads fill it.
        """
        if os.getpid() != self._process:
            raise RuntimeError(
                "DataLoader: this process was forked from the one that began the iteration, whose "
                "workers it does not have; want processes started by multiprocessing's 'spawn'"
            )
        with self._change:
            while self._taken not in self._results:
                self._check_end()
                self._change.wait(PATIENCE)
                self._check_threads()
            result = self._results.pop(self._taken)
            self._taken += 1
            if isinstance(result, Failure):
                self._has_failed = True
                self._drop()
            elif count is not None:
                count()
            self._change.notify_all()
        if isinstance(result, Failure):
            result.reraise()
        return result

    def _is_past_end(self) -> bool:
        """Whether all results were taken. Another reader may have taken the last one."""
        return self._end is not None and self._taken >= self._end

    def _check_end(self) -> None:
        """Raises where no further result comes."""
        if self._has_failed or (self._is_stopped and not self._is_past_end()):
            raise RuntimeError("DataLoader: the iteration was closed, or ended by an error")
        if self._is_past_end():
            raise StopIteration

    def _check_threads(self) -> None:
        """Without a thread, waiting would never end."""
        is_over = self._taken in self._results or self._is_stopped or self._is_past_end()
        if not is_over and not any(thread.is_alive() for thread in self._threads):
            raise RuntimeError("DataLoader: the threads that make batches have ended")

    def stop(self) -> None:
        """Lets the threads end after what they are doing, and drops what is not taken. May be
        called from a finaliser; a forked child, which has no threads, is left alone."""
        if os.getpid() != self._process:
            return
        self._is_stopped = True
        with self._change:
            self._drop()
            self._change.notify_all()

    def _drop(self) -> None:
        """Nothing more is made, and what is not taken is dropped."""
        self._is_stopped = True
        self._results.clear()

    def join(self) -> None:
        """Waits for the threads to end, not longer than the data set may reasonably take."""
        deadline = time.monotonic() + PATIENCE
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
