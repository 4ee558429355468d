"""Saving a step: its recording, with the names of arguments, results and states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from .. import _core, files
from .._core import GraphError
from ..tensor import Tensor
from .attempt import Attempt
from .attempts import Attempts
from .call import Call, admitted
from .effects import Effects
from .options import Options
from .plan import blank, infer
from .results import Leaf
from .tracing import uncollected
from .trees import is_named, replace

#: The name of a result that stands alone.
LONE = "result"


@uncollected
def save_step(
    path: str,
    options: Options,
    function: Callable[..., Any],
    root: Any,
    training: bool,
    *given: Any,
) -> None:
    """Records a call of `function(root, *args, **kwargs)` without running it, and writes the
    recording with the present states; `given` are args and kwargs. Leaves the model as it was,
    except that it has its parameters.

    Raises:
        GraphError: a step that another call would not repeat, that runs user code, or whose values
            are tapped; an argument that is a parameter.
        OSError: the file cannot be written.
    """
    args, kwargs = replace(admitted(*given, root), _stand_in)
    # Parameters and moments exist from here on.
    infer(function, root, training, args, kwargs, op="save_step")
    with ExitStack() as undone:
        attempts = Attempts(most=2, leaves=False)
        first = _recorded(undone, Call(function, root, training, args, kwargs), attempts)
        first.plan(options)
        again = _recorded(undone, Call(function, root, training, args, kwargs), attempts)
        _check(first, again)
        _write(path, options, first)


def form_of(call: Call) -> tuple[Any, Any] | None:
    """A call's arguments without their values; None if it has parameters, which the step itself may
    have made of them, or others that are known by identity."""
    if call.objects or any(call.parameters) or any(x.stores_grad for x in call.tensors):
        return None
    return replace((call.args, call.kwargs), _stand_in)


def _stand_in(leaf: Any) -> Any:
    """For a tensor, a row-major one of its shape and dtype, which takes no memory."""
    if not isinstance(leaf, Tensor):
        return leaf
    if leaf.stores_grad:
        raise GraphError("save_step: an argument is a parameter, which belongs to the model")
    return blank(leaf)


def _recorded(undone: ExitStack, call: Call, attempts: Attempts) -> Attempt:
    """A recording whose changes to the model last until `undone` is closed."""
    before = call.look()
    call.identify(before.known, before.turns)
    previous, _ = attempts.latest(call, before)
    made, undo = attempts.record(call, before, previous)
    undone.callback(undo)
    attempts.keep(made, previous)
    return made


def _check(first: Attempt, again: Attempt) -> None:
    """Rejects a step that a file cannot repeat."""
    if first.tapping.probes:
        names = ", ".join(sorted(probe.name for probe in first.tapping.probes))
        raise GraphError(f"save_step: the step has taps: {names}; remove them first")
    reason = first.obstacle()
    if reason is None:
        effects = first.compare(again)
        if not isinstance(effects, Effects):
            reason = f"two calls differ: {effects}"
        elif asked := again.guards.shown():
            reason = f"it depends on {asked[0]}, of attributes which it changes"
    if reason is not None:
        raise GraphError(f"save_step: the step cannot be repeated without its program: {reason}")


def _write(path: str, options: Options, attempt: Attempt) -> None:
    call, traced, tensors = attempt.call, attempt.traced, attempt.before.tensors
    outline = traced.results.outline(call.tensors, tensors, call.lists)
    with files.replacing("save_step", path) as file:
        traced.recording.write(
            file,
            list(_arguments(call)),
            list(_results(outline, call.tensors)),
            list(_states(call, attempt)),
            exact=options.exact,
            check_finite=options.check_finite,
            parallel=options.parallel,
            memory_budget=options.budget(call.training),
        )


# ---- names ---------------------------------------------------------------------------------------


def _arguments(call: Call) -> Iterator[str]:
    """The names of the tensors among a call's arguments, in their order."""
    bound = inspect.signature(call.function).bind(call.root, *call.args, **call.kwargs)
    parameters = bound.signature.parameters
    own = list(parameters)[0]
    positional: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        if name == own or (name in call.kwargs):
            continue
        if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            positional += [(f"{name}.{index}", one) for index, one in enumerate(value)]
        elif parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
            positional.append((name, value))
    for name, value in [*positional, *call.kwargs.items()]:
        yield from (path for path, _ in _paths(value, name))


def _paths(value: Any, path: str = "") -> Iterator[tuple[str, Tensor | Leaf]]:
    """The tensors in an argument or a result, and their paths in it, which begin with `path`."""
    if isinstance(value, (Tensor, Leaf)):
        yield path, value
    elif isinstance(value, dict):
        yield from _paths_of(value.items(), path)
    elif is_named(value):
        yield from _paths_of(zip(type(value)._fields, value, strict=True), path)
    elif type(value) in (list, tuple):
        yield from _paths_of(enumerate(value), path)


def _paths_of(items: Iterable[tuple[Any, Any]], path: str) -> Iterator[tuple[str, Tensor | Leaf]]:
    for key, item in items:
        yield from _paths(item, f"{path}.{key}" if path else str(key))


def _results(outline: Any, arguments: Sequence[Tensor]) -> Iterator[tuple[str, Tensor | Leaf]]:
    """The names of the tensors among the results, and where they come from: a tensor is a state."""
    given = {id(tensor): Leaf("argument", index) for index, tensor in enumerate(arguments)}
    for path, found in _paths(outline):
        yield path or LONE, given.get(id(found), found)


def _states(call: Call, attempt: Attempt) -> Iterator[tuple[str, Tensor]]:
    """Names of the tensors that the step may use: those of the model, then those that optimizers
    keep for their parameters, then attributes by their paths, then the generators."""
    yield from call.root.get_states().items()
    for path, one in attempt.before.objects:
        # Those that processes gather are of steps that exchange, which no file can have.
        if hasattr(type(one), "get_named_states") and not getattr(one, "gathers_states", False):
            found = one.get_named_states(path).items()  # a moment still waiting is no tensor
            yield from ((name, state) for name, state in found if isinstance(state, Tensor))
    yield from attempt.before.tensors.items()
    yield "generator", _core.random_state(call.device, "step")
    yield "initial_generator", _core.random_state(call.device, "init")
