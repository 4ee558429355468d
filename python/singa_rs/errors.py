# ruff: noqa: F401 - the engine's exceptions are public here
"""The package's exceptions, and how public functions name themselves in them.

Each exception names the operation, what it got and what it wanted. Functions raise errors of their
own for what they check; other errors come from Python or NumPy and do not mention the operation.
`named` prefixes these with the operation's name, and reports which argument does not match the
signature. Only calls that fail pay for this.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Collection
from functools import lru_cache, wraps
from numbers import Integral, Real
from types import CodeType, FrameType, TracebackType
from typing import Any, NoReturn

import numpy as np

from ._core import (
    CheckpointError,
    DeviceError,
    DistError,
    DTypeError,
    GraphError,
    InternalError,
    MemoryBudgetError,
    OutOfMemoryError,
    ShapeError,
)
from .notices import is_ours
from .refusals import MISCALLED, REFUSED, a_name, flag, is_of_package, wanted
from .shown import is_tensor, shown, wanting

__all__ = [
    "CheckpointError",
    "DTypeError",
    "DeviceError",
    "DistError",
    "GraphError",
    "InternalError",
    "MemoryBudgetError",
    "OutOfMemoryError",
    "ShapeError",
]


def __dir__() -> list[str]:
    return sorted(__all__)


#: What Python and NumPy raise for wrong arguments, excluding warnings turned into errors.
FOREIGN = (
    AttributeError, LookupError, NameError, ZeroDivisionError, OverflowError, AssertionError,
    BufferError, TypeError, ValueError,
)  # fmt: skip
#: How messages of this package begin: with what failed.
_NAMED = re.compile(r"[\w.()\[\]]+( \w+)?: ")
_OWN = (ShapeError, DTypeError, CheckpointError)
#: Of a number that an operand's dtype does not hold, in functions that convert it to it.
_CONVERSION = "from_numpy: got "
_CONVERTERS = ("Tensor", "as_tensor", "from_numpy")
#: Digits of a number that is beyond the usual ones.
_LONG = re.compile(r"(?<![\w.])\d{31,}(?![\w.])")

#: The values that each word of an annotation admits.
_ADMIT: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: is_tensor(value),
    "int": lambda value: isinstance(value, Integral),
    "float": lambda value: isinstance(value, Real),
    "bool": lambda value: isinstance(value, (bool, np.bool_, Integral)),
    "str": lambda value: isinstance(value, str),
    "Device": lambda value: hasattr(type(value), "set_num_threads"),
    "np.ndarray": lambda value: isinstance(value, np.ndarray),
    "None": lambda value: value is None,
    "Sequence[Tensor]": lambda value: _all(value, "Tensor"),
    "Sequence[int]": lambda value: _all(value, "int"),
    **{
        name: lambda value, name=name: type(value).__name__ == name
        for name in ("ConvHandle", "PoolingHandle", "BatchNormHandle")
    },
}
#: Type aliases in annotations.
_ALIASES = {name: "int | Sequence[int]" for name in ("Shape", "Ints", "Pair")}
_ALIASES["Axes"] = "int | Sequence[int] | None"


def _all(value: Any, word: str) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_ADMIT[word], value))


class _Named:
    """What `named` knows of a function: which of its arguments are checked or copied."""

    def __init__(self, function: Any, op: str, takes: Any) -> None:
        self._function, self._op, self._takes = function, op, takes
        #: How many arguments by position need no check: none until the signature was read.
        self.most = -1
        self.strict: Any = {"": None}

    def check(self, args: Any) -> Any:
        """Refuses a flag or a name by position that is neither; returns the parameters of both."""
        if self.most < 0:
            self._prepare()
        for at in self._flags:
            if at < len(args) and type(args[at]) is not bool:
                _check_strict(self._op, self.strict[at], args[at])
        return self.strict

    def _prepare(self) -> None:
        """Reads the signature, at the first call: all of them together would take a third of the
        time in which the package is imported."""
        self.kind, self.places, self.words = None, (), frozenset()
        self.admit = admit = self._takes and self._takes(self._function, self._op)
        if admit is not None:
            # Any number of arguments may be arrays: no class of the first one says that none is.
            several = admit.rest is not None
            self.kind, self.places = (NoReturn, (0,)) if several else (admit.kind, admit.places)
            self.words = admit.words
        #: The class of the first argument, where no other one needs copies.
        self.only = self.kind if self.places == (0,) else None
        strict = _strict(self._function)
        self._flags = [at for at in strict if isinstance(at, int)]
        self.strict, self.most = strict, min(self._flags, default=sys.maxsize)


def named(
    function: Callable[..., Any],
    home: str,
    op: str | None = None,
    respelt: Callable[..., dict[str, Any] | None] | None = None,
    takes: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """`function` as a member of the module `home`, whose errors name the operation `op`.

    `respelt(op, function, args, kwargs)` gives the keywords of a call that Python refused under
    their other names, or None: only calls that have such names pay for it. `takes(function, op)` is
    `tensor.arrays.admission`, for functions that take arrays in place of tensors.
    """
    name = op or function.__name__
    one = _Named(function, name, takes)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if strict := one.strict:
            if len(args) > one.most:
                strict = one.check(args)
            for key in kwargs:
                if key in strict and type(kwargs[key]) is not bool:
                    _check_strict(name, strict[key], kwargs[key])
        try:
            if (only := one.only) is not None:
                if args and type(args[0]) is only:
                    return function(*args, **kwargs) if kwargs else function(*args)
            elif (kind := one.kind) is None:
                return function(*args, **kwargs)
            elif len(args) == 2 and type(args[0]) is type(args[1]) is kind and not kwargs:
                return function(*args)
            else:
                for at in one.places:
                    if at < len(args) and type(args[at]) is not kind and args[at] is not None:
                        break
                else:
                    if one.words.isdisjoint(kwargs):
                        return function(*args, **kwargs)
            args, kwargs = one.admit(args, kwargs)
            return function(*args, **kwargs)
        except FOREIGN as error:
            others = respelt(name, function, args, kwargs) if kwargs and respelt else None
            # Errors but a plain TypeError are from inside, where the keywords were understood.
            if others is None or type(error) is not TypeError:
                reraise(name, function, args, others or kwargs, error)
        except MemoryError as error:
            if is_ours(type(error).__module__) or _is_users(error):
                raise
            raise OutOfMemoryError(f"{name}: {error or 'not enough memory'}") from error
        return call(*args, **others)

    call.__module__ = home
    call.names_itself = True  # type: ignore[attr-defined]
    call.takes_arrays = takes is not None  # type: ignore[attr-defined]
    return call


def _strict(function: Callable[..., Any]) -> dict[int | str, inspect.Parameter]:
    """The parameters that are flags or names, by name and by position: Python would take any object
    for these, also one that has another meaning in that place in NumPy."""
    found: dict[int | str, inspect.Parameter] = {}
    for at, one in enumerate(inspect.signature(function).parameters.values()):
        if one.annotation == "bool" or (one.name == "name" and one.annotation == "str | None"):
            if one.kind is not one.VAR_POSITIONAL and one.kind is not one.VAR_KEYWORD:
                found[one.name] = one
            if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
                found[at] = one
    return found


def check_flags(op: str, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Refuses an argument for a flag or a name of a function of this package that is neither.

    Raises:
        TypeError: naming it.
    """
    strict = _strict_of(function)
    for at, value in (*enumerate(args), *kwargs.items()):
        if at in strict:
            _check_strict(op, strict[at], value)


@lru_cache(maxsize=256)
def _strict_of(function: Callable[..., Any]) -> dict[int | str, inspect.Parameter]:
    return _strict(function) if is_of_package(function) else {}


def _check_strict(op: str, one: inspect.Parameter, value: Any) -> None:
    argument = f"{op}: {one.name}"
    if one.annotation == "bool":
        flag(value, argument)
    else:
        a_name(value, argument)


def called(function: Any, name: str, doc: str | None, home: str | None = None) -> Any:
    """A function made by another one, under the name and documentation that users see."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__module__ = home or function.__module__
    return function


def name_functions(
    space: dict[str, Any],
    quiet: Collection[str] = (),
    takes: Callable[..., Any] | None = None,
) -> None:
    """Wraps the public functions in a module's namespace in `named`, except those in `quiet`,
    whose errors are raised as they are."""
    for name, function in list(space.items()):
        is_public = inspect.isfunction(function) and not name.startswith("_")
        if is_public and name not in quiet and not hasattr(function, "names_itself"):
            space[name] = named(function, space["__name__"], name, None, takes)


def name_methods(*classes: type, takes: Callable[..., Any] | None = None) -> None:
    """Wraps the public methods of classes in `named`, where they take arguments."""
    for owner in classes:
        for name, method in list(vars(owner).items()):
            if inspect.isfunction(method) and not name.startswith("_") and _takes(method.__code__):
                setattr(owner, name, named(method, owner.__module__, name, None, takes))


def _takes(code: CodeType) -> bool:
    return code.co_argcount + code.co_kwonlyargcount > 1 or bool(code.co_flags & inspect.CO_VARARGS)


def reraise(
    op: str, function: Callable[..., Any], args: Any, kwargs: Any, error: Exception
) -> NoReturn:
    """Raises the error of a failed call: `error` itself if it is specific enough, or comes from
    code outside of this package and NumPy; otherwise one that adds what is missing."""
    made = error if _is_users(error) else _explained(op, function, args, kwargs, error)
    if made is error:
        raise error.with_traceback(_without_library(error.__traceback__))
    raise made from error.with_traceback(_without_library(error.__traceback__))


def is_own(error: Exception) -> bool:
    """Whether an error was raised by this package, and not by user code that it called."""
    return is_ours(type(error).__module__) or (
        _is_plain(error) and _NAMED.match(str(error)) is not None and not _ends_in_users(error)
    )


def place(error: Exception, path: str) -> None:
    """Has the message of an error begin with a layer's path, unless it begins with one already;
    where a value was read while it was only recorded, it also ends with what helps."""
    if not path or hasattr(error, "_path") or not error.args or not isinstance(error.args[0], str):
        return
    text = error.args[0]
    if isinstance(error, GraphError) and text.endswith("use_graph=False"):
        text += f" or debug=True; tap({path!r}) keeps it (docs/inspection.md), repr shows its shape"
    error._path = path  # type: ignore[attr-defined]
    error.args = (f"{path}: {text}", *error.args[1:])


def _without_library(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without this package's frames, unless `SINGA_RS_FULL_TRACEBACK=1`."""
    if trace is None or os.environ.get("SINGA_RS_FULL_TRACEBACK") == "1":
        return trace
    frames = []
    while trace is not None:
        if not is_ours(trace.tb_frame.f_globals.get("__name__")):
            frames.append(trace)
        trace = trace.tb_next
    made = None
    for one in reversed(frames):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


def shortened(error: Exception) -> Exception:
    """An error of this package without its frames; another one as it is."""
    return error.with_traceback(_without_library(error.__traceback__)) if is_own(error) else error


def _ends_in_users(error: Exception) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and _runs_users(trace.tb_frame)


def _runs_users(frame: FrameType) -> bool:
    """Whether a frame runs code of neither this package nor NumPy."""
    home = frame.f_globals.get("__name__", "")
    return not is_ours(home) and home.partition(".")[0] != "numpy"


def _is_users(error: Exception) -> bool:
    """Whether an error was raised in user code that a function of this package called."""
    place = error.__traceback__
    while place is not None and (place := place.tb_next) is not None:
        if _runs_users(place.tb_frame):
            return True
    return False


#: What `inspect` finds takes longer than the rest of an explanation.
_signature = lru_cache(maxsize=512)(inspect.signature)


def _explained(
    op: str, function: Callable[..., Any], args: Any, kwargs: Any, error: Exception
) -> Exception:
    text = _LONG.sub(lambda one: f"{one[0][0]}.{one[0][1:4]}e{len(one[0]) - 1}", str(error))
    if isinstance(error, DTypeError) and text.startswith(_CONVERSION) and op not in _CONVERTERS:
        return DTypeError(f"{op}: got {text.removeprefix(_CONVERSION)}")
    says_it = isinstance(error, _OWN) or (_is_plain(error) and re.search(rf"\b{op}\b", text))
    is_refused = REFUSED.search(text) or MISCALLED.search(text)
    if says_it and not is_refused:
        return error
    try:
        bound = _signature(function).bind(*args, **kwargs).arguments
    except TypeError as wrong:
        hint = wanted(text if is_refused else str(wrong), function, kwargs)
        if function.__name__ == "__init__" and any(map(_is_array, args[1:])):
            hint = f"{op}(...), which is then called with tensors"
        return TypeError(f"{op}: {wrong}" + (f"; want {hint}" if hint else ""))
    if says_it:
        return error
    given = {name: value for name, value in bound.items() if name not in ("self", "cls")}
    misfit = _misfit(function, given)
    if misfit is not None:
        name, value, want = misfit
        return TypeError(f"{op}: got {shown(value)} for {name}, {wanting(value, want)}")
    kind = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
    got = ", ".join(map(shown, given.values()))
    return kind(f"{op}: got {got}: {text}")


def _is_array(value: Any) -> bool:
    return is_tensor(value) or isinstance(value, np.ndarray)


def _is_plain(error: Exception) -> bool:
    return type(error) in (TypeError, ValueError, IndexError)


def _misfit(function: Callable[..., Any], given: dict[str, Any]) -> tuple[str, Any, str] | None:
    """The first argument that does not match its annotation: name, value and annotation."""
    parameters = _signature(function).parameters
    for name, value in given.items():
        want = parameters[name].annotation
        want = _ALIASES.get(want, want)
        if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            want = f"Sequence[{want}]"
        if isinstance(want, str) and not _admitted(value, want):
            return name, value, _spoken(want)
    return None


def _admitted(value: Any, want: str) -> bool:
    words = want.split(" | ")
    known = [_ADMIT[word] for word in words if word in _ADMIT]
    return len(known) < len(words) or any(admit(value) for admit in known)


def _spoken(want: str) -> str:
    text = want.replace("np.ndarray", "NumPy array").replace("Sequence[Tensor]", "list of Tensors")
    text = text.replace("Sequence[int]", "list of ints").replace(" | ", " or ")
    return f"an {text}" if text.startswith("int") else f"a {text}"
