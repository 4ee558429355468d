"""What a step does that its recording does not show, so that replays do not do it: it draws from
generators of random numbers that are not this package's, reads the clock, changes globals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
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
    "secrets": frozenset({"choice", "randbelow", "randbits", "token_bytes", "token_hex"}),
    "uuid": frozenset({"uuid1", "uuid4"}),
}
#: The same, as Python's interpreter names what it calls.
_CALLED = frozenset(
    {f"time.{name}" for name in _SOURCES["time"]}
    | {f"datetime.{name}" for name in _SOURCES["datetime"]}
    | {"date.today", "posix.urandom"}
)


def is_cache(value: Any) -> bool:
    """Whether it is a function that keeps its results."""
    return isinstance(value, _Cache)


def added(cache: Any) -> tuple[Any, int]:
    """A function's cache, and how often something was added to it."""
    return cache, cache.cache_info().misses


def is_generator(value: Any) -> bool:
    """Whether a value is a generator of random numbers, of Python's or NumPy's."""
    return isinstance(value, _kinds("random" in sys.modules, "numpy.random" in sys.modules))


@cache
def _kinds(has_python: bool, has_numpy: bool) -> tuple[type, ...]:
    """The classes of generators, of modules that the program has loaded: there are no others."""
    of_python = (sys.modules["random"].Random,) if has_python else ()
    of_numpy = (np.random.Generator, np.random.RandomState) if has_numpy else ()
    return of_python + of_numpy


class Generators:
    """The positions of generators at one moment: of those that a program holds, by path, and of
    those that libraries share."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self._of = {f"{path} ({type(one).__name__})": one for path, one in held.items()}
        self._of.update(_shared())
        self._before = {name: _position(one) for name, one in self._of.items()}

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
    if torch is not None and hasattr(torch, "get_rng_state"):
        found["PyTorch's torch.random"] = lambda: torch.get_rng_state().numpy().tobytes()
    return found


def _position(generator: Any) -> Hashable:
    if not is_generator(generator):
        return generator()
    if hasattr(generator, "bit_generator"):  # NumPy's Generator
        return _frozen(generator.bit_generator.state)
    if hasattr(generator, "get_state"):  # NumPy's RandomState
        return _frozen(generator.get_state(legacy=False))
    try:
        return generator.getstate()
    except NotImplementedError:  # the system's, which has none
        return None


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
        sources = _SOURCES.get(module) if isinstance(module, str) else None
        if sources and (
            getattr(value, "__name__", None) in sources or sources & names.of_attributes
        ):
            return True
    return any(_SOURCES.get(name, frozenset()) & names.of_attributes for name in names.of_modules)


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
        self._before, self._generators = before, Generators(before.generators)
        has_draws = previous is not None and bool(previous.draws)
        self._traces = has_draws and sys.gettrace() is None
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
        if name in _CALLED:
            found = _program(frame)
            if found is not None:
                self._calls.setdefault(name.replace("posix", "os"), _place(found))


def _program(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the program."""
    while frame is not None and not _is_program(frame):
        frame = frame.f_back
    return frame


def _is_program(frame: FrameType) -> bool:
    return is_program(frame.f_globals.get("__name__"))


def _place(frame: FrameType) -> str:
    return f"{_core.program_file(frame.f_code.co_filename)}:{frame.f_lineno}"
