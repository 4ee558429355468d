"""Worker processes: spawned, never forked; each serves one thread of its parent at a time."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import threading
import traceback
import weakref
from multiprocessing.connection import Connection, wait
from typing import Any

from ..shown import ending

_BROKEN = (EOFError, OSError)
_HINT = ' (a script that starts processes needs `if __name__ == "__main__":`)'


class WorkerError(RuntimeError):
    """A worker process ended, or raised an error; the message has the worker's traceback."""


def send(to: Connection, message: Any) -> None:
    """Sends an object, arrays without copying them into a pickle first."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, 5, buffer_callback=buffers.append)
    raws = [buffer.raw() for buffer in buffers]
    to.send_bytes(pickle.dumps((head, [raw.nbytes for raw in raws])))
    for raw in raws:
        if raw.nbytes:
            to.send_bytes(raw)


def receive(source: Connection) -> Any:
    """What `send` sent; arrays can be written."""
    head, sizes = pickle.loads(source.recv_bytes())
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        if buffer:
            source.recv_bytes_into(buffer)
    return pickle.loads(head, buffers=buffers)


def serve(parent: Connection) -> None:
    """The life of a worker process: the first message is its job, then come tasks, until the
    parent ends or closes its side."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        job = attempt(lambda: pickle.loads(parent.recv_bytes()))
        while True:
            task = attempt(lambda: receive(parent), _BROKEN)
            failure = next((one for one in (job, task) if isinstance(one, Report)), None)
            made = failure or attempt(lambda task=task: job.make(*task))
            _reply(parent, made)
    except _BROKEN:
        return


def _end_with_parent() -> None:
    """Ends this process when its parent has ended, even while it makes a batch."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _reply(parent: Connection, made: Any) -> None:
    """Sends a result, or why it cannot be sent."""
    unsent = attempt(lambda: send(parent, made), _BROKEN)
    if isinstance(unsent, Report):
        send(parent, unsent)


class Report:
    """An error of a worker, on its way to the parent."""

    def __init__(self, error: BaseException) -> None:
        self.text = "".join(traceback.format_exception(error)).rstrip()
        self.summary = traceback.format_exception_only(error)[-1].strip()
        self.error = _pickled(error)

    def to_error(self, process: int) -> BaseException:
        """The error itself, caused by a WorkerError with its traceback; that one alone where the
        error cannot be copied."""
        told = WorkerError(f"in worker process {process}: {self.summary}\n\n{self.text}")
        try:
            error = None if self.error is None else pickle.loads(self.error)
        except Exception:
            error = None
        if not isinstance(error, BaseException):
            return told
        error.__cause__ = told
        return error


def _pickled(error: BaseException) -> bytes | None:
    try:
        made = pickle.dumps(error)
        return made if type(pickle.loads(made)) is type(error) else None
    except Exception:
        return None


def attempt(call: Any, *beyond: Any) -> Any:
    """What a call returns, or a report of its error; errors of the kinds `beyond` are raised."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, beyond):
            raise
        return Report(error)


class Worker:
    """A worker process, seen from its parent."""

    def __init__(self, job: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._job: bytes | None = job
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._ours.close()
            raise
        finally:
            theirs.close()

    def make(self, *task: Any) -> Any:
        """What the worker makes of a task.

        Raises:
            WorkerError: the process has ended.
            BaseException: what the worker raised.
        """
        try:
            if self._job is not None:
                self._ours.send_bytes(self._job)
                self._job = None
            send(self._ours, task)
            wait([self._ours, self._process.sentinel])
            if not self._ours.poll():
                raise EOFError
            made = receive(self._ours)
        except _BROKEN as error:
            raise WorkerError(self._end()) from error
        if isinstance(made, Report):
            raise made.to_error(self._process.pid or 0)
        return made

    def _end(self) -> str:
        self._process.join(1)
        code, hint = self._process.exitcode, _HINT if self._process.exitcode == 1 else ""
        return f"DataLoader: worker process {self._process.pid} {ending(code)}{hint}"

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()

    def join(self) -> None:
        """Waits until the process has ended, and leaves no zombie."""
        self._process.join()


class Workers:
    """Worker processes that share a job. Each call of `make` is served by one that is free."""

    def __init__(self, job: Any, count: int) -> None:
        blob = _job_as_bytes(job)
        self._workers: list[Worker] = []
        self._free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        #: Ends the processes and waits until they are gone; calls of `make` raise WorkerError.
        self.close = weakref.finalize(self, _end_all, self._workers, os.getpid())
        try:
            for _ in range(count):
                self._workers.append(Worker(blob))
        except BaseException:
            self.close()
            raise
        for worker in self._workers:
            self._free.put(worker)

    def make(self, *task: Any) -> Any:
        """What a worker makes of a task."""
        worker = self._free.get()
        try:
            return worker.make(*task)
        finally:
            self._free.put(worker)

    def are_alive(self) -> bool:
        """Whether all processes run."""
        return all(worker.is_alive() for worker in self._workers)


def _end_all(workers: list[Worker], parent: int) -> None:
    """Ends processes, except in a forked child, which leaves them to their parent."""
    if os.getpid() != parent:
        return
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.join()


def _job_as_bytes(job: Any) -> bytes:
    try:
        return pickle.dumps(job, 5)
    except Exception as error:
        raise TypeError(
            "DataLoader: workers='process' copies the data set, collate and transform to other "
            f"processes, which failed: {error}; want what pickle can copy, or workers='thread'"
        ) from error
