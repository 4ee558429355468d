"""What a step does that its recording does not show, so that replays do not do it: it draws from
generators of random numbers that are not this package's, reads the clock, changes globals."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from functools import cache
from types import BuiltinFunctionType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core
from ..shown import listed
from ..tensor.keys import is_scalar
from .memory import is_made
from .names import names_of
from .programs import is_program

if TYPE_CHECKING:
    from .snapshot import Snapshot

#: What `functools.lru_cache` makes of a function.
_Cache: type = type(cache(id))
#: Functions that answer something else each time, by the module that programs know them from.
_SOURCES: dict[str, frozenset[str]] = {
    "time": frozenset(
        f"{clock}{unit}"
        for clock in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
        for unit in ("", "_ns")
    ),
    "datetime": frozenset({"now", "today", "utcnow"}),
    "os": frozenset({"urandom"}),
    "random": frozenset({"Random", "SystemRandom", "seed"}),
    "secrets": frozenset({"choice", "randbelow", "randbits", "token_bytes", "token_hex"}),
    "uuid": frozenset({"uuid1", "uuid4"}),
}
#: The same, as Python's interpreter names what it calls.
_CALLED = frozenset(
    {f"time.{name}" for name in _SOURCES["time"]}
    | {f"datetime.{name}" for name in _SOURCES["datetime"]}
    | {"date.today", "posix.urandom"}
)
#: NumPy's, of which programs make their own, seeded by the system.
_MAKERS = "default_rng RandomState SeedSequence MT19937 PCG64 PCG64DXSM Philox SFC64".split()
_SOURCES["numpy"] = frozenset(_MAKERS)
_SYSTEM = "the system's generator"


def is_cache(value: Any) -> bool:
    """Whether it is a function that keeps its results."""
    return isinstance(value, _Cache)


def _results(cache: Any) -> Iterator[Any]:
    """What a function's cache holds, among other things."""
    for one in gc.get_referents(cache):
        yield one
        if type(one) is dict:
            yield from one.values()


def kept_by(cache: Any) -> list[Any]:
    """The arguments and results that a function's cache holds."""
    found = [one for one in gc.get_referents(cache) if one is not vars(cache)]
    if cache.cache_parameters()["maxsize"] is None:
        return [made for one in found if type(one) is dict for made in one.values()]
    links = {id(one) for one in found if type(one).__name__ == "_lru_list_elem"}
    is_own = [type(one) is dict and not links.isdisjoint(map(id, one.values())) for one in found]
    return [one for one, own in zip(found, is_own, strict=True) if not own and id(one) not in links]


def added(cache: Any) -> tuple[Any, int]:
    """A function's cache, and how often something was added to it."""
    return cache, cache.cache_info().misses


def is_generator(value: Any) -> bool:
    """Whether a value is a generator of random numbers, of Python's, NumPy's or PyTorch's."""
    modules = map(sys.modules.get, ("random", "numpy.random", "torch"))
    return isinstance(value, _kinds(*modules))


@cache
def _kinds(python: Any, numpy: Any, torch: Any) -> tuple[type, ...]:
    """The classes of generators, of modules that the program has loaded: there are no others."""
    names = "Random Generator RandomState BitGenerator SeedSequence".split()
    found = (getattr(one, name, None) for one in (python, numpy, torch) for name in names)
    return tuple(one for one in found if isinstance(one, type))


class Generators:
    """The positions of generators at one moment: of those that a program holds, by path, or has in
    caches of functions, and of those that libraries share."""

    def __init__(self, held: Mapping[str, Any], caches: Iterable[Any]) -> None:
        kept = ((f"{one.__qualname__}()", made) for one in caches for made in _results(one))
        self._of: dict[str, Any] = {}
        for path, one in (*held.items(), *kept):
            name = f"{path} ({type(one).__name__})"
            while name in self._of:  # of one cache
                name += "'"
            if is_generator(one):
                self._of[name] = one
        self._of.update(_shared())
        self._before = {name: _position(one) for name, one in self._of.items()}

    @property
    def has_system(self) -> bool:
        """Whether one of them has no position: the system's."""
        return None in self._before.values()

    def moved(self) -> list[str]:
        """The names of those that have moved since, or since the last call."""
        found = []
        for name, one in self._of.items():
            now = _position(one)
            if now != self._before[name]:
                self._before[name] = now
                found.append(name)
        return found


def _shared() -> dict[str, Any]:
    found: dict[str, Any] = {}
    python, torch = map(sys.modules.get, ("random", "torch"))
    if python is not None:
        found["Python's random"] = python.getstate.__self__
    if "numpy.random" in sys.modules:
        found["NumPy's numpy.random"] = np.random.get_state.__self__
    if (shared := getattr(torch, "default_generator", None)) is not None:
        found["PyTorch's torch.random"] = shared
    return found


def _position(generator: Any) -> Hashable:
    if hasattr(generator, "getstate"):  # Python's
        try:
            return generator.getstate()
        except NotImplementedError:  # the system's, which has none
            return None
    if hasattr(generator, "initial_seed"):  # PyTorch's
        return generator.get_state().numpy().tobytes()
    if hasattr(generator, "get_state"):  # NumPy's RandomState
        return _frozen(generator.get_state(legacy=False))
    bits = getattr(generator, "bit_generator", generator)
    seeds = getattr(bits, "seed_seq", bits)  # which others can be spawned from
    return _frozen(getattr(bits, "state", None)), getattr(seeds, "n_children_spawned", None)


def _frozen(state: Any) -> Hashable:
    if isinstance(state, Mapping):
        return tuple((key, _frozen(value)) for key, value in state.items())
    return state.tobytes() if isinstance(state, np.ndarray) else state


def may_answer_otherwise(functions: Iterable[FunctionType]) -> bool:
    """Whether functions of the program name one that answers something else each time."""
    return any(map(_names_source, functions))


def _names_source(function: FunctionType) -> bool:
    known, names = function.__globals__, names_of(function.__code__)
    if not is_program(known.get("__name__")):
        return False
    for name in names.of_globals:
        value = known.get(name)
        module = getattr(value, "__module__", None) or getattr(value, "__name__", None)
        sources = _sources(module) if isinstance(module, str) else None
        if sources and (
            getattr(value, "__name__", None) in sources or sources & names.of_attributes
        ):
            return True
    return any(_sources(name) & names.of_attributes for name in names.of_modules)


def _sources(module: str) -> frozenset[str]:
    return _SOURCES.get(module.partition(".")[0], frozenset())


def globals_set(before: Snapshot, after: Snapshot) -> list[str]:
    """The globals, and what else lies outside of the model, that a step sets to another value, but
    no tensor that it makes, or makes longer or shorter."""
    names = []
    for path in sorted(before.outside & after.outside):
        old, new = before.items[path], after.items[path]
        changes = old.value != new.value and not is_made(new.value)
        if changes and not any(path.startswith(f"{n}.") for n in names):
            names.append(path)
    return names


class Unseen(NamedTuple):
    """What a recording found."""

    #: Generators and functions, each with the line where that is known; globals.
    draws: list[str]
    calls: list[str]
    sets: list[str]
    #: Globals that are set to another scalar or object.
    replaced: list[str]

    def warning(self) -> str | None:
        """What replays do not do, as text."""
        lines = []
        if self.calls:
            lines.append(f"call {listed(self.calls, 3)}")
        if self.sets:
            lines.append(f"set {listed(self.sets, 3)}")
        if not lines:
            return None
        return (
            f"replays do not {' or '.join(lines)}, as the step does; what depends on that stays as "
            "recorded. Do it outside of the step, keep it in attributes of the model, or compile "
            "with use_graph=False"
        )

    def difference(self) -> str | None:
        """What makes no two steps the same, as text."""
        if self.replaced:
            return f"{listed(self.replaced, 3)}, which the step sets outside of the model"
        if not self.draws:
            return None
        return (
            f"the numbers that it draws from {listed(self.draws, 3)}, which a replay would not draw"
        )


class Watching:
    """A context around a recording, which finds what that does not show, and the lines of the
    program that draw from generators or call what answers something else each time. Under a
    debugger or a profiler it finds no lines."""

    def __init__(self, before: Snapshot, previous: Unseen | None, suspects_calls: bool) -> None:
        """`previous` is what the recording before found: lines that draw are looked for if there
        are any."""
        self._before = before
        self._generators = Generators(before.generators, (cache for cache, _ in before.caches))
        has_draws = previous is not None and bool(previous.draws)
        self._traces = has_draws and sys.gettrace() is None
        suspects_calls = suspects_calls or self._generators.has_system
        self._profiles = suspects_calls and sys.getprofile() is None
        self._last: str | None = None
        #: By generator and by function: the line.
        self._draws: dict[str, str] = {}
        self._calls: dict[str, str] = {}

    def __enter__(self) -> Watching:
        if self._traces:
            sys.settrace(self._entered)
        if self._profiles:
            sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        if self._traces:
            sys.settrace(None)
        if self._profiles:
            sys.setprofile(None)

    def found(self, after: Snapshot, known: Collection[str]) -> Unseen:
        """What the recording did; `known` are the paths of what replays set, too."""
        places = {**dict.fromkeys(self._generators.moved()), **self._draws}
        draws = [name if place is None else f"{name} at {place}" for name, place in places.items()]
        calls = [f"{name} at {place}" for name, place in self._calls.items()]
        sets = [path for path in globals_set(self._before, after) if path not in known]
        values = ((path, after.items[path].value) for path in sets)
        replaced = [path for path, one in values if is_scalar(one) or type(one) is not tuple]
        return Unseen(draws, calls, [path for path in sets if path not in replaced], replaced)

    def _entered(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        return self._line if _is_program(frame) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        for name in self._generators.moved():
            self._draws.setdefault(name, self._last or _place(frame))
        outer = frame.f_back if event == "return" else frame
        if outer is not None and _is_program(outer):
            self._last = _place(outer)
        return self._line

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        if event != "c_call" or not isinstance(arg, BuiltinFunctionType):
            return
        name = arg.__qualname__ if "." in arg.__qualname__ else f"{arg.__module__}.{arg.__name__}"
        is_system = frame.f_globals.get("__name__") == "random" and (
            name == "posix.urandom" or name == "Random.seed" and frame.f_locals.get("a", 0) is None
        )
        if (is_system or name in _CALLED) and (found := _program(frame)) is not None:
            named = self._draws if is_system else self._calls
            named.setdefault(_SYSTEM if is_system else name.replace("posix", "os"), _place(found))


def _program(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the program."""
    while frame is not None and not _is_program(frame):
        frame = frame.f_back
    return frame


def _is_program(frame: FrameType) -> bool:
    return is_program(frame.f_globals.get("__name__"))


def _place(frame: FrameType) -> str:
    return f"{_core.program_file(frame.f_code.co_filename)}:{frame.f_lineno}"
