"""Exchanges between processes, and how processes begin and end."""

import subprocess
import sys
import time
from pathlib import Path

import dist_programs as programs
import numpy as np
import pytest
from singa_rs import dist, tensor

TIMEOUT = 30.0
SIZES = [2, 3]
SHM = Path("/dev/shm")


def spawn(fn, n, *args):
    return dist.spawn(fn, n, args, timeout=TIMEOUT)


def of_ranks(n, dtype, shape):
    return [programs.values(dtype, shape, rank) for rank in range(n)]


def in_order(parts, combine):
    made = parts[0]
    for part in parts[1:]:
        made = combine(made, part)
    return made


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No shared memory, and no zombie."""
    before = set(SHM.iterdir()) if SHM.is_dir() else set()
    yield
    after = set(SHM.iterdir()) if SHM.is_dir() else set()
    assert not [path for path in after - before if path.name.startswith("singa_rs")]
    states = [_parent_and_state(path) for path in Path("/proc").glob("[0-9]*/stat")]
    assert (_own(), "Z") not in states


def _own():
    return Path("/proc/self").resolve().name


def _parent_and_state(path):
    try:
        state, parent = path.read_text().rpartition(")")[2].split()[:2]
    except OSError:  # it has ended
        return None
    return parent, state


# ---- exchanges -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_reductions(n, dtype):
    shape = (7, 5)
    parts = of_ranks(n, dtype, shape)
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}
    ops = [*combine] if dtype == "int32" else [*combine, "mean"]
    ranks = spawn(programs.each, n, programs.reduced, [(op, dtype, shape) for op in ops])
    for op, *made_by_ranks in zip(ops, *ranks, strict=True):
        for made in made_by_ranks:
            if op == "mean":
                np.testing.assert_allclose(made, np.mean(parts, 0), rtol=1e-6)
                np.testing.assert_array_equal(made, made_by_ranks[0])
            else:
                np.testing.assert_array_equal(made, in_order(parts, combine[op]))


def test_reductions_of_many_elements_are_in_the_order_of_ranks():
    found = spawn(programs.reduced, 3, "sum", "float32", (300, 1001))
    want = in_order(of_ranks(3, "float32", (300, 1001)), np.add)
    for made in found:
        np.testing.assert_array_equal(made, want)


@pytest.mark.parametrize("wire", ["float16", "bfloat16"])
def test_wires_of_16_bits(wire):
    found = spawn(programs.over, 2, wire, (1000,), 1.0)
    want = found[0][0] + found[1][0]
    np.testing.assert_allclose(found[0][1], want, rtol=2e-2, atol=0.2)
    assert not np.array_equal(found[0][1], want)
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_sparse_sums_are_the_dense_ones(share):
    found = spawn(programs.over, 3, "sparse", (5000,), share)
    want = in_order([x for x, _ in found], np.add)
    for _, made in found:
        np.testing.assert_array_equal(made, want)


@pytest.mark.parametrize("n", [2, 4])
def test_bytes_on_the_wire(n):
    """A ring's number of bytes if dense, or if sparse is no shorter; a hundredth takes little."""
    calls = [(None, 1), ("sparse", 0.01), ("sparse", 0.9)]
    dense, sparse, full = zip(*spawn(programs.each, n, programs.sent, calls), strict=True)
    ring = 2 * (n - 1) * 1_600_000 // n
    assert all(ring <= count < 1.01 * ring for count in (*dense, *full))
    assert all(0 < some <= 0.03 * count for some, count in zip(sparse, dense, strict=True))
    assert programs.sent(None, 1) == 0


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_moves(n, dtype):
    x, parts = of_ranks(n, dtype, (3, 2)), of_ranks(n, dtype, (n, 4))
    for r, made in enumerate(spawn(programs.moved, n, dtype)):
        gathered, turned, scattered, sent, got = made
        np.testing.assert_array_equal(gathered, x)
        np.testing.assert_array_equal(turned, [part[r] for part in parts])
        np.testing.assert_array_equal(scattered, in_order([p[r] for p in parts], np.add))
        np.testing.assert_array_equal(sent, x[n - 1])
        np.testing.assert_array_equal(got, x[(r - 1) % n])


def test_several_at_once():
    for made in spawn(programs.overlapped, 2):
        for k, one in enumerate(made):
            want = in_order(of_ranks(2, np.float32, (100 + k,)), np.add)
            np.testing.assert_array_equal(one, want)


def test_one_process_needs_no_other():
    assert programs.place()[:3] == (0, 1, 0)
    t = tensor.from_numpy(np.arange(3, dtype=np.float32))
    assert dist.all_reduce(t, "mean", "sparse") is t
    np.testing.assert_array_equal(dist.all_gather(t).to_numpy(), [[0, 1, 2]])
    one = t.reshape((1, 3))
    np.testing.assert_array_equal(dist.reduce_scatter(one).to_numpy(), [0, 1, 2])
    np.testing.assert_array_equal(dist.all_to_all(one).to_numpy(), [[0, 1, 2]])
    np.testing.assert_array_equal(dist.broadcast(t).to_numpy(), [0, 1, 2])
    dist.barrier()
    (made,) = spawn(programs.place, 1)
    assert made == (0, 1, 0, True)


def test_places():
    assert spawn(programs.place, 3) == [(r, 3, r, True) for r in range(3)]


def test_seeds():
    (first, own), (again, other) = spawn(programs.same_seed, 2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(own, other)


def test_wrong_calls():
    for r, found in enumerate(spawn(programs.wrong, 2)):
        assert found == [
            "all_reduce: got ndarray, want a Tensor",
            "all_reduce: got op 'product', want one of ('sum', 'mean', 'max', 'min')",
            "all_reduce: got dtype int32, want a float dtype for a mean",
            "all_reduce: got wire 'zip', want one of ('dense', 'float16', 'bfloat16', 'sparse')",
            "all_reduce: got dtype int32, want float32 for a short form on the wire",
            "broadcast: root: got 2, want a rank from 0 to 1",
            f"send: to: got {r}, want a rank from 0 to 1 other than this one, {r}",
            "recv: source: got '1', want an int",
            "reduce_scatter: got shape (3, 2), want 2 parts, one for each rank",
            "all_to_all: got shape (3, 2), want 2 parts, one for each rank",
            "set_timeout: got timeout 0, want seconds above 0",
            "wait: this all_reduce was waited for before",
        ]


def test_rows_are_dealt_out():
    assert spawn(programs.rows, 2, 7) == [
        [([0, 1, 2], 1.0), ([6], 0.0)],
        [([3, 4, 5], 1.0), ([6], 2.0)],
    ]


# ---- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("raise", "raised ValueError: boom"),
        ("kill", "was ended by signal 9"),
        ("exit", "ended with exit code 3"),
        ("leave", "raised SystemExit: 4"),
        ("surrogate", r"raised ValueError: caf\udce9"),
        ("silent", ".*str.. failed"),
    ],
)
def test_a_rank_that_fails(how, text):
    begun = time.monotonic()
    with pytest.raises(dist.RankError, match=f"spawn: rank 1 {text}") as caught:
        spawn(programs.fail, 3, how)
    assert time.monotonic() - begun < TIMEOUT
    assert caught.value.rank == 1
    assert [line.split(" raised ")[0] for line in caught.value.others] == ["rank 0", "rank 2"]
    assert all("DistError" in line and "rank 1" in line for line in caught.value.others)


def test_a_rank_that_comes_with_another_operation():
    with pytest.raises(dist.RankError, match="all_reduce"):
        spawn(programs.fail, 2, "other")


def test_a_rank_that_does_not_come():
    begun = time.monotonic()
    with pytest.raises(dist.RankError, match="DistError.*rank 1"):
        dist.spawn(programs.fail, 2, ("late",), timeout=1.0)
    assert time.monotonic() - begun < TIMEOUT


def test_a_rank_that_returns_what_cannot_be_read():
    with pytest.raises(dist.RankError, match="rank 1 returned what pickle cannot copy: TypeError"):
        spawn(programs.unreadable, 2)


def test_wrong_spawns():
    with pytest.raises(TypeError, match="spawn: fn and args are copied"):
        dist.spawn(lambda: None, 2)
    with pytest.raises(TypeError, match="spawn: got n 2.5, want an int"):
        dist.spawn(programs.place, 2.5)
    with pytest.raises(ValueError, match="spawn: got n 0, want at least 1"):
        dist.spawn(programs.place, 0)
    with pytest.raises(ValueError, match="spawn: got n 257, want at most 256"):
        dist.spawn(programs.place, 257)
    with pytest.raises(ValueError, match="spawn: got timeout 0, want seconds above 0"):
        dist.spawn(programs.place, 2, timeout=0)
    for long in (float("inf"), 1e300):
        with pytest.raises(ValueError, match=r"spawn: got timeout .*, want at most 1e\+10 seconds"):
            dist.spawn(programs.place, 2, timeout=long)


def test_a_long_timeout_may_be_waited_for():
    with pytest.raises(dist.RankError, match="rank 1 was ended by signal 9"):
        dist.spawn(programs.fail, 2, ("kill",), timeout=1e10)


# ---- the command ---------------------------------------------------------------------------------

PROGRAM = """
import logging, sys
import numpy as np
from singa_rs import dist, tensor
dist.init(5)
logging.basicConfig(level=logging.INFO, format="%(message)s")
logging.info(f"told by {dist.rank()}")
logging.warning(f"warned by {dist.rank()}")
total = dist.all_reduce(tensor.from_numpy(np.ones(2, np.float32))).to_numpy()
logging.warning(f"{total.tolist()} {sys.argv[1:]}")
if sys.argv[1:] == ["fail"] and dist.rank() == 1:
    raise KeyError("x")
dist.barrier()
"""


def run(tmp_path, *args):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "singa_rs", "run", "-n", "3", str(program), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_runs_ranks(tmp_path):
    done = run(tmp_path, "a", "-n")
    assert done.returncode == 0
    told = sorted(line for line in done.stderr.splitlines() if " by " in line)
    assert told == ["told by 0", *(f"warned by {r}" for r in range(3))]
    assert done.stderr.count("[3.0, 3.0] ['a', '-n']") == 3


def test_the_command_tells_of_a_rank_that_fails(tmp_path):
    done = run(tmp_path, "fail")
    assert done.returncode == 1
    assert "KeyError: 'x'" in done.stderr
    assert "singa-rs: rank 1 ended with exit code 1" in done.stderr
    assert done.stderr.count("DistError") >= 2


def _left():
    dist.barrier()
    dist.shutdown()
    try:
        dist.init()
    except dist.DistError as error:
        return str(error)
    return "alone"


def test_processes_that_share_memory_cannot_join_again():
    for said in spawn(_left, 2):
        assert said == "init: this process has left the others by shutdown; start them again"


def test_timeouts_are_numbers():
    for wrong in ("x", None, True):
        with pytest.raises(TypeError, match="spawn: got timeout .*, want a number of seconds"):
            dist.spawn(_left, 2, timeout=wrong)


def _left_waiting():
    dist.init(timeout=1.5)
    dist.init()  # leaves it as it is
    if dist.rank() == 1:
        time.sleep(4)
        return None
    begun = time.monotonic()
    try:
        dist.all_reduce(tensor.zeros((2,)))
    except dist.DistError:
        return time.monotonic() - begun
    return None


def test_a_timeout_is_set_where_spawn_has_joined():
    seconds, _ = spawn(_left_waiting, 2)
    assert seconds is not None and 1 < seconds < 4


def _wrong_timeouts():
    said = []
    for call, wrong in ((dist.init, "soon"), (dist.init, 0), (dist.set_timeout, "soon")):
        try:
            call(timeout=wrong)
        except (TypeError, ValueError) as error:
            said.append(f"{type(error).__name__}: {error}")
    return said


def test_timeouts_are_checked_where_spawn_has_joined():
    assert spawn(_wrong_timeouts, 1)[0] == [
        "TypeError: init: got timeout 'soon', want a number of seconds",
        "ValueError: init: got timeout 0, want seconds above 0",
        "TypeError: set_timeout: got timeout 'soon', want a number of seconds",
    ]
