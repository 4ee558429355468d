"""How a step would go on several machines, calculated from its profile on this one and the speed of
a network: nothing is exchanged."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import autograd
from ..refusals import is_integral
from ..shown import shown
from ..tensor import Tensor, float16, from_numpy
from .buckets import WINDOW, filled
from .low_rank import saves, sides
from .measured import DEFAULT
from .measured import chosen as bucket_elements
from .sparse import chosen
from .uses import end_of_uses, uses_of

if TYPE_CHECKING:
    from ..record import Plan
    from ..viz.profile import Profile

#: Bits by the units of a bandwidth, and seconds by those of a latency.
_BITS = {
    f"{prefix}{unit}": 1000**n * bits
    for n, prefix in enumerate(("", "k", "M", "G", "T"))
    for unit, bits in (("b", 1), ("B", 8))
}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NETWORK = re.compile(r"\s*([\d.]+)\s*([kMGT]?[bB])(?:/s|ps)?\s*,\s*([\d.]+)\s*([mun]?s)\s*")
#: Sums of fewer bytes are gathered by all, in one round instead of two (`src/comm/reduce.rs`).
_SMALL = 4 << 10
#: What a sparse exchange sends of a gradient, and for each element the bytes of its value and of
#: the distance from the one before.
_DENSITY, _SPARSE_BYTES = 0.01, 5
#: The columns of a low-rank exchange.
_COLUMNS = 2
#: How often a step runs for its profile, and what is timed beside it, which is of so many elements
#: at most.
_RUNS, _SAMPLE = 5, 1 << 20
#: More ranks than any machine has processors.
_MOST_RANKS = 10**9


class Network(NamedTuple):
    """A network between machines, each of which sends and receives at the same time."""

    #: Bytes a second that a machine sends.
    bandwidth: float
    #: Seconds that a message takes whatever its size.
    latency: float

    @classmethod
    def of(cls, text: Any) -> Network:
        """The network of a text such as "100Gb, 5us" or "12.5GB, 0.005ms".

        Raises:
            TypeError, ValueError: it is something else.
        """
        want = "want a bandwidth and a latency, such as '100Gb, 5us'"
        if not isinstance(text, str):
            raise TypeError(f"plan: got {type(text).__name__} for network, {want}")
        found = _NETWORK.fullmatch(text)
        numbers = [] if found is None else [_number(found[i]) for i in (1, 3)]
        if found is None or None in numbers or not numbers[0]:
            raise ValueError(f"plan: got network={text!r}, {want}")
        return cls(numbers[0] * _BITS[found[2]] / 8, numbers[1] * _SECONDS[found[4]])

    def gather(self, sent: float, ranks: int) -> float:
        """Seconds in which each rank gives `sent` bytes to each other one."""
        return (ranks - 1) * (self.latency + sent / self.bandwidth)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class Gradient(NamedTuple):
    """A parameter's gradient."""

    shape: tuple[int, ...]
    #: Elements, and bytes of each.
    numel: int
    itemsize: int
    #: Seconds after the begin of the step at which it is final.
    ready: float
    #: Likewise, at which its parameter is used for the first time, and for the last before that.
    first: float = 0.0
    last: float = 0.0

    @property
    def bytes(self) -> int:
        """All its bytes."""
        return self.numel * self.itemsize


class Cost(NamedTuple):
    """What an exchange takes."""

    seconds: float
    #: Bytes that a rank sends.
    sent: float

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        return Cost(self.seconds + other.seconds, self.sent + other.sent)


class Sums:
    """What sums over ranks cost, by how they travel."""

    def __init__(self, network: Network, ranks: int) -> None:
        self.network, self.ranks = network, ranks

    def _gathered(self, each: float) -> Cost:
        """Every rank gives so many bytes to every other one."""
        return Cost(self.network.gather(each, self.ranks), (self.ranks - 1) * each)

    def part(self, nbytes: float) -> Cost:
        """Each rank gets its share of a sum; or all gather what are their shares."""
        return self._gathered(nbytes / self.ranks)

    def whole(self, nbytes: float) -> Cost:
        """Each rank gets a sum."""
        if nbytes <= _SMALL:
            return self._gathered(nbytes)
        return self.part(nbytes) + self.part(nbytes)

    def half(self, bucket: Sequence[Gradient]) -> Cost:
        """The same in 16 bits."""
        return self.whole(2 * sum(one.numel for one in bucket))

    def dense(self, bucket: Sequence[Gradient]) -> Cost:
        """A sum of all gradients."""
        return self.whole(sum(one.bytes for one in bucket))

    def scattered(self, bucket: Sequence[Gradient]) -> Cost:
        """Each rank's share of the sum."""
        return self.part(sum(one.bytes for one in bucket))

    def sparse(self, bucket: Sequence[Gradient]) -> Cost:
        """One in a hundred elements; all of them where that is less."""
        each = _DENSITY * _SPARSE_BYTES * sum(one.numel for one in bucket)
        if (self.ranks - 1) * each >= 2 * sum(one.bytes for one in bucket):
            return self.dense(bucket)
        return self._gathered(8) + self._gathered(each)

    def low_rank(self, bucket: Sequence[Gradient]) -> Cost:
        """Two matrices for each gradient that they are smaller than."""
        factors = [0.0, 0.0]
        for one in bucket:
            if saves(one.shape, _COLUMNS):
                for at, side in enumerate(sides(one.shape)):
                    factors[at] += _COLUMNS * side * one.itemsize
            else:
                factors[0] += one.bytes
        return self.whole(factors[0]) + (self.whole(factors[1]) if factors[1] else Cost(0, 0))


class Memory(NamedTuple):
    """What a rank keeps, in bytes."""

    #: Parameters, arena and all else that every rank has whole.
    whole: int
    #: The optimizer's moments.
    moments: int


class Scheme(NamedTuple):
    """A way of exchanging."""

    name: str
    #: What the exchange of a bucket costs, of these methods of `Sums`.
    cost: Callable[[Sums, Sequence[Gradient]], Cost]
    #: What a rank computes for it, of a tensor of gradients.
    local: Callable[[Tensor], Any] | None = None
    #: Whether the ranks divide updates and moments, and gather the new parameters.
    divides: bool = False
    #: Whether what is not exchanged is kept, as much as there are gradients.
    keeps: bool = False
    #: Whether the parameters themselves are divided, and gathered where they are used.
    gathers: bool = False
    #: Whether the network decides how large buckets are, as results do not depend on it.
    measures: bool = False


def _rounded(gradients: Tensor) -> Any:
    """Once on the way, and once back."""
    return gradients.as_type(float16).as_type(gradients.dtype)


def _sparsified(gradients: Tensor) -> Any:
    """What is sent, and what is kept."""
    return gradients - chosen(gradients, _DENSITY, True)


SCHEMES = (
    Scheme("all gradients", Sums.dense, measures=True),
    Scheme("float16", Sums.half, _rounded, measures=True),
    Scheme("sparse, 1%", Sums.sparse, _sparsified, keeps=True),
    Scheme(f"low rank, {_COLUMNS}", Sums.low_rank, keeps=True),
    Scheme("shard=1", Sums.scattered, divides=True),
    Scheme("shard=3", Sums.scattered, divides=True, gathers=True),
)


class Row(NamedTuple):
    """A step by one scheme."""

    scheme: str
    #: Of the step, and of its exchanges alone.
    seconds: float
    exchanging: float
    #: Bytes that a rank sends.
    sent: int
    #: The part of the exchanges' time that backward hides.
    overlap: float
    #: Bytes that a rank takes.
    memory: int


class Forecast:
    """A step on several machines with one rank each, for each scheme.

    An exchange takes the latency for each other rank and each of its rounds, and the time of the
    bytes that a rank sends. Exchanges run one after another beside backward, as in `DistOpt`, from
    when their gradients are final. Rounding gradients and choosing some of them takes what it takes
    here; the sums themselves, and copies within a machine, take no time.
    """

    def __init__(
        self,
        ranks: int,
        network: Network,
        seconds: float,
        gradients: Sequence[Gradient],
        memory: Memory,
    ) -> None:
        """`seconds` and `memory` are those of a step without exchanges."""
        self.ranks, self.network, self.alone = ranks, network, seconds
        sums = Sums(network, ranks)
        measured = bucket_elements(2 * (ranks - 1) * network.latency, 2 / network.bandwidth)
        ordered = sorted(gradients, key=attrgetter("ready"))
        by = attrgetter("numel"), attrgetter("itemsize")
        #: By `Scheme.measures`.
        self._buckets = {
            measures: list(filled(ordered, limit, *by))
            for measures, limit in ((True, measured), (False, DEFAULT))
        }
        self._memory = memory
        self.rows = [self._row(scheme, sums) for scheme in SCHEMES]

    def _row(self, scheme: Scheme, sums: Sums) -> Row:
        buckets = self._buckets[scheme.measures]
        costs = [scheme.cost(sums, bucket) for bucket in buckets]
        ready = [bucket[-1].ready for bucket in buckets]
        end = _end(self.alone, ready, [cost.seconds for cost in costs])
        if scheme.gathers:
            uses = uses_of(buckets)
            gathered = [sums.scattered(buckets[number]) for _, number in uses]
            needs = [(begin, cost.seconds) for (begin, _), cost in zip(uses, gathered, strict=True)]
            scatters = zip(ready, (cost.seconds for cost in costs), strict=True)
            end = end_of_uses(self.alone, needs, scatters)
            costs += gathered
        elif scheme.divides:
            gathered = [sums.scattered(bucket) for bucket in buckets]
            end += sum(cost.seconds for cost in gathered)
            costs += gathered
        exchanging = sum(cost.seconds for cost in costs)
        hidden = 1 - (end - self.alone) / exchanging if exchanging else 1.0
        sent = round(sum(cost.sent for cost in costs))
        if scheme.local is not None and sent:
            end += _local(scheme.local, buckets)
        return Row(scheme.name, end, exchanging, sent, hidden, self._bytes(scheme, buckets))

    def _bytes(self, scheme: Scheme, buckets: Sequence[Sequence[Gradient]]) -> int:
        whole, moments = self._memory
        sizes = [sum(one.bytes for one in bucket) for bucket in buckets]
        gradients, bucket = sum(sizes), max(sizes, default=0)
        kept = moments // self.ranks if scheme.divides else moments
        shares = gradients // self.ranks if scheme.divides else 0
        travelling = min((WINDOW + 1) * bucket, gradients)
        if scheme.gathers:  # the unit that is used and the next one are whole
            whole -= gradients - min(2 * bucket, gradients)
        return whole + kept + shares + gradients * scheme.keeps + travelling

    def summary(self) -> str:
        """A table: for each scheme the time of a step, bytes that a rank sends, the part of the
        exchanges that backward hides, and the memory of a rank."""
        gigabits = self.network.bandwidth * 8e-9
        lines = [
            f"on {self.ranks} ranks, {gigabits:g} Gb/s, {self.network.latency * 1e6:g} us; "
            f"{self.alone * 1e3:.3f} ms without exchanges",
            "                        ms   exchanging    hidden      MB sent    MB a rank",
        ]
        lines += [
            f"  {row.scheme:14}{row.seconds * 1e3:10.3f}{row.exchanging * 1e3:10.3f} ms"
            f"{100 * row.overlap:9.0f}%{row.sent / 1e6:13.3f}{row.memory / 1e6:13.3f}"
            for row in self.rows
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Forecast({self.ranks} ranks, {len(self.rows)} schemes)"


def _timed(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _local(work: Callable[[Tensor], Any], buckets: Sequence[Sequence[Gradient]]) -> float:
    """Seconds that all buckets take on this machine."""
    sizes = [sum(one.numel for one in bucket) for bucket in buckets]
    # The device's random numbers are the program's.
    drawn = np.random.default_rng(0).normal(size=min(max(sizes), _SAMPLE))
    sample = from_numpy(drawn.astype(np.float32))
    with autograd.no_grad():
        least = min(_timed(lambda: work(sample)) for _ in range(_RUNS))
    return sum(sizes) / sample.numel * least


def _end(alone: float, ready: Sequence[float], costs: Sequence[float]) -> float:
    """When a step ends, whose exchanges run one after another from when they are ready. The step
    waits for each after later ones were started."""
    late = free = 0.0
    pending: deque[float] = deque()
    for begin, cost in zip(ready, costs, strict=True):
        free = max(begin + late, free) + cost
        pending.append(free)
        if len(pending) > WINDOW:
            late += max(0.0, pending.popleft() - begin - late)
    return max(alone + late, free)


def forecast(plan: Plan, model: Mapping[str, Tensor], ranks: Any, network: Any) -> Forecast:
    """The forecast of a planned step.

    Args:
        model: the parameters and states of its model, by name.
        ranks, network: as those of `Module.plan`.

    Raises:
        TypeError, ValueError: ranks or a network that are none.
    """
    if not is_integral(ranks):
        raise TypeError(f"plan: got {type(ranks).__name__} for ranks, want an int")
    if not 1 <= ranks <= _MOST_RANKS:
        want = "at least 1" if ranks < 1 else f"at most {_MOST_RANKS:,}"
        raise ValueError(f"plan: got ranks={shown(ranks)}, want {want}")
    speed, graph = Network.of(network), plan.picture()
    graph.profile(1)  # which prepares kernels, and backs memory
    profiled = graph.profile(_RUNS)
    trained = plan.numbers(t for t in model.values() if t.stores_grad)
    gradients = _gradients(graph.data(), profiled, trained)
    kept = sum(t.nbytes for t in model.values() if not t.stores_grad)
    moments = max(plan.accounts["states"] - kept, 0)
    memory = Memory(plan.peak_bytes - moments, moments)
    return Forecast(ranks, speed, profiled.seconds, gradients, memory)


def _gradients(
    data: Mapping[str, Any], profiled: Profile, parameters: Mapping[int, Tensor]
) -> list[Gradient]:
    """The gradients of the parameters that a step updates, each of which is final when that
    begins. `parameters` are known by the numbers of their blocks."""
    now, found = 0.0, dict[int, Gradient]()
    uses: dict[int, list[float]] = {number: [] for number in parameters}
    for node, timed in zip(data["nodes"], profiled, strict=True):
        now, begin = now + timed.seconds, now
        written = {out["block"] for out in node["outputs"]} & parameters.keys()
        for number in written:
            param, used = parameters[number], uses[number] or [begin]
            size = param.numel, param.dtype.itemsize
            made = Gradient(tuple(param.shape), *size, now, used[0], used[-1])
            found.setdefault(number, made)
        for number in ({one["block"] for one in node["inputs"]} & parameters.keys()) - written:
            uses[number].append(begin)
    return list(found.values())
