"""Workers of loaders: threads and processes, their errors and their ends."""

import copy
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest
from forking import in_child, needs_fork
from loading import (
    Again,
    Asleep,
    Drawn,
    Exits,
    Failing,
    Killed,
    Numbers,
    Odd,
    Processes,
    Refused,
    Slow,
    jittered,
    unsendable,
)
from singa_rs import data

KINDS = ["thread", "process"]
ALL = [{}, *({"num_workers": 2, "workers": kind} for kind in KINDS)]


def is_gone(process):
    """Whether a process has ended, and its parent has taken notice."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def soon(is_so, seconds=20):
    """Whether something becomes true."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_so()


def threads():
    return [one for one in threading.enumerate() if one.name.startswith("DataLoader")]


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    gc.collect()
    assert soon(lambda: not threads())


# ---- results -------------------------------------------------------------------------------------


def test_processes_make_the_batches_of_the_caller():
    def run(**how):
        with data.DataLoader(Drawn(13), 4, True, 3, transform=jittered, **how) as loader:
            return [[one.tolist() for one in batch] for _ in range(2) for batch in loader]

    assert run(num_workers=2, workers="process", persistent_workers=True) == run()


def test_processes_are_shared_or_not():
    def pids(loader):
        return {pid for _, pids in loader for pid in pids.tolist()}

    loader = data.DataLoader(Processes(8), 2, num_workers=1, workers="process")
    first, second = pids(loader), pids(loader)
    assert len(first) == len(second) == 1 and first != second and os.getpid() not in first
    assert all(map(is_gone, first | second))
    with data.DataLoader(
        Processes(8), 2, num_workers=1, workers="process", persistent_workers=True
    ) as loader:
        both = [pids(loader) for _ in range(2)]
        pairs = [(a, b) for a, b in zip(loader, loader, strict=True)]
        assert len(pairs) == 4 and both[0] == both[1]
        assert {int(b[1][0].item()) for _, b in pairs} == both[0]
    assert all(map(is_gone, both[0]))
    assert pids(loader) - both[0]  # a closed loader can be iterated again
    loader.close()


def test_an_iteration_keeps_its_loader():
    how = {"num_workers": 1, "workers": "process", "persistent_workers": True}
    got = [pid for _, (pid,) in data.DataLoader(Processes(20), 1, as_numpy=True, **how)]
    assert len(got) == 20
    gc.collect()
    assert is_gone(int(got[0]))


def test_copies_of_a_loader_leave_its_workers_to_it():
    how = {"num_workers": 1, "workers": "process", "persistent_workers": True}
    with data.DataLoader(Processes(4), 2, as_numpy=True, **how) as loader:
        (_, (process, _)), _ = loader
        copied = copy.deepcopy(loader)
        copied.close()
        del copied
        gc.collect()
        assert [pid for _, pids in loader for pid in pids] == [process] * 4


def test_iterables_are_read_by_the_caller_and_stacked_by_processes():
    loader = data.DataLoader(Again(10), 4, num_workers=2, workers="process", as_numpy=True)
    got = list(loader)
    assert [one.tolist() for one in got] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert got[0].flags.writeable


def test_large_and_empty_arrays_pass():
    x = np.random.default_rng(0).random((6, 1 << 18)), np.zeros((6, 0))
    loader = data.DataLoader(x, 3, num_workers=1, workers="process", as_numpy=True)
    for i, (a, b) in enumerate(loader):
        np.testing.assert_array_equal(a, x[0][3 * i : 3 * i + 3])
        assert b.shape == (3, 0) and a.flags.writeable


def test_a_few_batches_are_made_ahead():
    seen = []

    class Counted(Numbers):
        def __getitem__(self, i):
            seen.append(i)
            return super().__getitem__(i)

    batches = iter(data.DataLoader(Counted(100), 2, num_workers=2, prefetch=3))
    assert soon(lambda: len(seen) == 10)
    next(batches)
    assert soon(lambda: len(seen) == 12)
    time.sleep(0.05)
    assert len(seen) == 12
    batches.close()


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ALL)
def test_errors_come_in_their_place(how):
    loader = data.DataLoader(Failing(20, 9, KeyError("nine")), 2, **how)
    batches, got = iter(loader), []
    with pytest.raises(KeyError, match="nine") as caught:
        for _, y in batches:
            got += y.tolist()
    assert got == list(range(8))
    text = "".join(traceback.format_exception(caught.value))
    assert "loading.py" in text and "raise self.error" in text
    assert ("in worker process" in text) == (how.get("workers") == "process")
    with pytest.raises(RuntimeError, match="closed, or ended by an error"):
        next(batches)


@pytest.mark.parametrize("how", ALL)
def test_an_error_that_would_end_the_loop_in_silence(how):
    with pytest.raises(RuntimeError, match="the data set raised StopIteration"):
        list(data.DataLoader(Failing(6, 3, StopIteration()), 2, **how))


@pytest.mark.parametrize("how", ALL[:2])
def test_errors_of_an_iterable(how):
    def samples():
        yield from range(3)
        raise OSError("the tape is torn")

    got = []
    with pytest.raises(OSError, match="torn"):
        got.extend(data.DataLoader(samples(), 2, collate=list, **how))
    assert got == [[0, 1]]


@pytest.mark.parametrize("how", ALL[1:])
def test_errors_of_collate_and_staging(how):
    with pytest.raises(ValueError, match=r"shapes \(1,\) and \(2,\)"):
        list(data.DataLoader([np.zeros(1), np.zeros(2)], 2, **how))
    with pytest.raises(TypeError, match="NoneType"):
        list(data.DataLoader([None], 2, **how))


def test_errors_that_cannot_be_copied():
    with pytest.raises(data.WorkerError, match="Strange: odd and strange") as caught:
        list(data.DataLoader(Odd(6, 3, None), 2, num_workers=1, workers="process"))
    assert "Traceback" in str(caught.value) and "loading.py" in str(caught.value)


def test_results_that_cannot_be_copied():
    with pytest.raises(Exception, match="(?i)pickle|local object"):
        list(data.DataLoader(Numbers(4), 2, transform=unsendable, **ALL[2]))


def test_an_iteration_that_cannot_begin_leaves_no_process():
    loader = data.DataLoader(iter(range(3)), num_workers=1, workers="process")
    assert len(list(loader)) == 3
    with pytest.raises(ValueError, match="only once"):
        iter(loader)
    assert not multiprocessing.active_children()


def test_data_sets_that_cannot_be_copied():
    with pytest.raises(TypeError, match="DataLoader: workers='process' copies the data set"):
        iter(data.DataLoader([lambda: 0], num_workers=1, workers="process"))
    with pytest.raises(ValueError, match="refused to be copied"):
        list(data.DataLoader(Refused(4), **ALL[2]))


@pytest.mark.parametrize(
    "dataset, error",
    [(Killed(8, 4, None), "was ended by signal 9"), (Exits(8, 4, None), "ended with exit code 3")],
)
def test_a_worker_that_is_killed_raises(dataset, error):
    loader = data.DataLoader(dataset, 2, num_workers=2, workers="process", persistent_workers=True)
    got = []
    for _ in range(2):  # the second time with new processes
        with pytest.raises(data.WorkerError, match=f"worker process [0-9]+ {error}"):
            for _, y in loader:
                got += y.tolist()
    assert got == [0, 1, 2, 3] * 2
    loader.close()


def test_a_worker_that_is_killed_while_it_waits():
    with data.DataLoader(
        Processes(100), 1, num_workers=1, prefetch=0, workers="process", persistent_workers=True
    ) as loader:
        batches = iter(loader)
        os.kill(int(next(batches)[1].item()), signal.SIGKILL)
        with pytest.raises(data.WorkerError, match="was ended by signal 9"):
            list(batches)
        assert len(list(loader)) == 100


# ---- several readers -----------------------------------------------------------------------------


def read_by_threads(batches, readers=3):
    """What threads that share an iteration get together, the errors of each, and the seconds."""
    found, errors = [], []

    def read():
        try:
            found.extend(batches)
        except Exception as error:
            errors.append(error)

    begun = time.monotonic()
    running = [threading.Thread(target=read) for _ in range(readers)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    return found, errors, time.monotonic() - begun


@pytest.mark.parametrize("how", ALL)
def test_threads_that_share_an_iteration_get_each_batch_once(how):
    loader = data.DataLoader(Slow(40), 2, as_numpy=True, **how)
    found, errors, seconds = read_by_threads(iter(loader))
    assert sorted(y.tolist() for _, y in found) == [[i, i + 1] for i in range(0, 40, 2)]
    assert errors == [] and seconds < 8
    assert (loader.epoch, loader.state_dict()["position"]) == (1, 0)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_ends_the_iteration_for_all_threads(workers):
    batches = iter(data.DataLoader(Failing(40, 20, ValueError("no")), 2, num_workers=workers))
    found, errors, seconds = read_by_threads(batches)
    assert len(found) == 10 and seconds < 8
    assert "no" in map(str, errors) and len(errors) == 3
    assert sum("ended by an error" in str(one) for one in errors) == 2


# ---- ends ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_early_break_ends_the_workers(kind):
    loader = data.DataLoader(Processes(1000), 2, num_workers=2, workers=kind)
    _, pids = next(iter(loader))
    assert soon(lambda: not threads())
    assert kind == "thread" or soon(lambda: all(map(is_gone, pids.tolist())))


@pytest.mark.parametrize("way", ["close", "drop", "loader"])
def test_workers_that_never_answer_are_ended(way):
    loader = data.DataLoader(
        Asleep(8), 1, num_workers=1, workers="process", persistent_workers=way == "loader"
    )
    batches = iter(loader)
    pid = int(next(batches)[1].item())
    begun = time.monotonic()
    if way == "close":
        batches.close()
        with pytest.raises(RuntimeError, match="closed"):
            next(batches)
    elif way == "drop":
        del batches
    else:
        del batches, loader
    gc.collect()
    assert is_gone(pid) and time.monotonic() - begun < 30


def test_closing_a_loader_ends_its_iterations():
    loader = data.DataLoader(Numbers(100), 2, num_workers=2)
    first, second = iter(loader), iter(loader)
    next(first), next(second)
    loader.close()
    assert not threads()
    for one in (first, second):
        with pytest.raises(RuntimeError, match="closed"):
            next(one)
    loader.close()
    assert len(list(loader)) == 50


def test_an_iteration_that_has_ended_stays_so():
    batches = iter(data.DataLoader(Numbers(4), 2, num_workers=2))
    assert len(list(batches)) == 2
    assert list(batches) == [] and next(batches, None) is None


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_an_error_and_ends_nothing():
    batches = iter(data.DataLoader(Processes(100), 2, num_workers=1, workers="process"))
    pid = int(next(batches)[1][0].item())

    def child():
        try:
            next(batches)
        except RuntimeError as error:
            batches.close()
            return str(error)

    assert "was forked" in in_child(child)
    assert not is_gone(pid) and len(list(batches)) == 49


#: Programs find this package and `loading` as the tests do.
PATHS = [os.path.dirname(__file__), *filter(None, sys.path)]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
PROGRAM = """
import os, sys, time
from loading import Asleep, Numbers
from singa_rs import data

if __name__ == "__main__":
    kind, way = sys.argv[1:]
    loader = data.DataLoader(Asleep(8), 1, num_workers=2, workers=kind)
    batches = iter(loader)
    print(os.getpid(), *(int(next(batches)[1].item()) for _ in range(4)), flush=True)
    if way != "exit":
        next(batches)
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["exit", "interrupt", "kill"])
def test_the_program_ends(tmp_path, kind, way):
    (tmp_path / "main.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py"), kind, way],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    pids = [int(one) for one in process.stdout.readline().split()]
    assert pids[0] == process.pid
    time.sleep(0.2)
    if way != "exit":
        process.send_signal(signal.SIGINT if way == "interrupt" else signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert soon(lambda: all(is_gone(pid) for pid in set(pids[1:]) - {process.pid}))
    if way == "exit":
        assert process.returncode == 0 and not errors
    elif way == "interrupt":
        assert errors.rstrip().endswith("KeyboardInterrupt") and errors.count("Traceback") == 1


def test_a_program_without_a_guard_is_told_so(tmp_path):
    (tmp_path / "main.py").write_text(
        "from loading import Numbers\nfrom singa_rs import data\n"
        "list(data.DataLoader(Numbers(2), num_workers=1, workers='process'))\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "main.py")],
        capture_output=True, text=True, timeout=60, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode and re.search("WorkerError.*__main__", done.stderr)
