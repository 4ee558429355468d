"""Reading and writing the parameters and states of a layer and those below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import autograd
from ..autograd.order import has_history
from ..errors import CheckpointError, ShapeError
from ..notices import once, warn_user
from ..record.looks import LONGEST
from ..record.places import CONTAINERS, in_slots, own_attributes
from ..record.programs import is_program, module_of
from ..shown import kind_of
from ..tensor import Placeholder, Tensor
from .cache import KeyValueCache
from .check import mapping
from .node import now
from .tree import Collection, alive, join, named_members, owners, rename

if TYPE_CHECKING:
    from .base import Layer
    from .node import Node


@contextmanager
def _collection(layer: Layer) -> Iterator[tuple[Collection, bool]]:
    """The call in progress on the whole model, or a new one; and whether it is new."""
    outer = now.collection
    new = outer is None or id(layer) not in outer.tree.paths
    now.collection = Collection(layer) if new else outer
    now.collection.open.append(layer)
    try:
        yield now.collection, new
    finally:
        now.collection.open.pop()
        now.collection = outer


def is_parameter(member: Tensor) -> bool:
    """Whether a layer's tensor is a parameter, be it a frozen one (`autograd.leaves`)."""
    return member._stores_grad is not False


def _own(layer: Layer, method: str, names: dict[int, str]) -> dict[str, Tensor]:
    states = () if method == "get_params" else layer._layer_node.states
    found: dict[str, Tensor] = {}
    for name, member in named_members(layer):
        if isinstance(member, Tensor) and (is_parameter(member) or name in states):
            _add(found, method, names[id(member)], member)
    return found


def _add(found: dict[str, Tensor], method: str, name: str, tensor: Tensor) -> None:
    if found.setdefault(name, tensor) is not tensor:
        raise ValueError(f"{method}: two tensors have the name {name!r}")


def get(layer: Layer, method: str) -> dict[str, Tensor]:
    """The result of `get_params` or `get_states` (the method named)."""
    with _collection(layer) as (call, _):
        found = _own(layer, method, call.tree.names)
        for child in call.children(layer):
            # A program's own method may take tensors for granted that are yet to be made.
            made = get(child, method) if child._makes_tensors() else getattr(child, method)()
            for name, tensor in made.items():
                _add(found, method, name, tensor)
    return found


def at(layer: Layer, method: str, prefix: str) -> dict[str, Tensor]:
    """What `get` gives at a path and below it, in full or relative to the layer; all of it for "".

    Raises:
        TypeError: no str.
        ValueError: there is no such path, or what is there has no tensors yet.
    """
    if not isinstance(prefix, str):
        raise TypeError(f"{method}: got {prefix!r:.80} for prefix, want a str")
    found = get(layer, method)
    for path in (prefix, join(layer._layer_node.path, prefix)) if prefix else ():
        inside = join(path, "")
        made = {name: one for name, one in found.items() if join(name, "").startswith(inside)}
        there = [one for one in below(layer) if one._layer_node.path == path]
        if made or any(not uninitialised(one) for one in there):
            return made
        if there:
            raise ValueError(
                f"{method}: got {path!r}, which has nothing yet; {not_called(there[0])}"
            )
    if prefix:
        paths = sorted(one._layer_node.path for one in below(layer) if one is not layer)
        raise ValueError(f"{method}: got {prefix!r}, want one of {', '.join(paths or found):.800}")
    return found


def states_of(layer: Layer, seen: set[int]) -> Iterator[Tensor]:
    """What `get_states` returns, in this order, but looked for only as far as it is asked for: the
    names take a walk through the whole model. `seen` are the layers that have been looked at."""
    if id(layer) in seen:
        return
    seen.add(id(layer))
    found, states = list(named_members(layer)), layer._layer_node.states
    for name, one in found:
        if isinstance(one, Tensor) and (is_parameter(one) or name in states):
            yield one
    for child in [*(one for _, one in found if not isinstance(one, Tensor)), *alive(layer)]:
        yield from states_of(child, seen)


def held(layer: Layer) -> list[Tensor]:
    """What `get_states` returns, and the other tensors that the layer and those below it hold: in
    attributes, containers of up to 1,000 items, caches of keys and values, objects of the program.
    Those that share memory with another, or pass a gradient on, are left out: copies would not.
    """
    states = {id(one): one for one in layer.get_states().values()}
    open_ = [value for one in below(layer) for _, value in one._watched()]
    others, seen = dict[int, Tensor](), set[int]()
    while open_:
        value = open_.pop()
        if isinstance(value, Tensor) and not isinstance(value, Placeholder):
            others[id(value)] = value
        elif id(value) not in seen and (found := _inside(value)):
            seen.add(id(value))
            open_ += found
    blocks = Counter(one.block_id for one in (others | states).values())
    alone = (one for key, one in others.items() if key not in states and blocks[one.block_id] == 1)
    return [*states.values(), *(one for one in alone if not has_history(one))]


def _inside(value: Any) -> list[Any]:
    """What a container, a cache or an object of the program holds."""
    if isinstance(value, CONTAINERS):
        items = value.values() if isinstance(value, dict) else value
        return list(items) if len(value) <= LONGEST else []
    kind = type(value)
    is_open = is_program(module_of(kind)) and not hasattr(kind, "_watched")
    if not (is_open or isinstance(value, KeyValueCache)):
        return []
    return [*own_attributes(value).values(), *(one for _, one in in_slots(value))]


def put(layer: Layer, method: str, reader: str, values: Mapping[str, Any]) -> None:
    """Implements `set_params` or `set_states`; `reader` is the getter of the same tensors. All
    values are checked and converted before the first is written."""
    with _collection(layer) as (call, new):
        if new:
            values = mapping(values, method)
            targets = getattr(layer, reader)()
            names = match(values, targets, call.tree.paths[id(layer)])
            if values and not names and uninitialised(layer):
                name = type(layer).__name__
                raise ValueError(f"{method}: {name} has no tensors until its first call")
            matched = {target: (targets[target], values[name]) for name, target in names.items()}
            waiting = _waiting(layer, method, {k: v for k, v in values.items() if k not in names})
            unknown = [str(name) for name in values if name not in names and name not in waiting]
            _check_unknown(layer, method, unknown, len(unknown) == len(values), targets)
            values = {**values, **staged(method, matched)}
            layer._layer_node.pending.update(waiting)
        own = _own(layer, reader, call.tree.names)
        with autograd.no_grad():
            for name, tensor in own.items():
                if name in values:
                    tensor.copy_from(values[name])
        for child in call.children(layer):
            if child._makes_tensors():
                put(child, method, reader, values)
            else:
                getattr(child, method)(values)


def _check_unknown(
    layer: Layer, method: str, names: list[str], is_all: bool, targets: Mapping[str, Tensor]
) -> None:
    """Warns once of names that are no target's, nor a state's that `set_params` leaves out.

    Raises:
        ValueError: they are all that was given, and there are targets.
    """
    if not names or not targets or now.has_told_names:
        return
    if is_all:
        rename = "; for a file of other names, load_states(path, rename=...)"
        raise ValueError(
            f"{method}: got {_listed(names)}, want names as {_listed(targets)}{rename}"
        )
    known = get(layer, "get_states") if method == "set_params" else {}
    others = [name for name in names if not match([name], known, layer._layer_node.path)]
    if others and not layer._layer_node.path:  # all of a model's are often passed to each layer
        told = f"{method}: leaves out {_listed(others)}"
        once((method, told), f"{told}, which {type(layer).__name__} does not have")


def _listed(names: Iterable[str]) -> str:
    """The first of some names."""
    found = list(names)
    return ", ".join([*found[:4], "..."] if len(found) > 4 else found)


def _waiting(layer: Layer, method: str, others: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of those values that are for tensors yet to be made."""
    inside = tuple(join(one._layer_node.path, "") for one in uninitialised(layer) if others)
    path, made = layer._layer_node.path, {}
    for name, value in others.items():
        if str(name).startswith(inside) or join(path, str(name)).startswith(inside):
            _check_array(method, name, value)
            made[name] = value.clone() if isinstance(value, Tensor) else np.array(value)
    return made


def _check_array(method: str, name: str, value: Any) -> None:
    if not isinstance(value, (Tensor, np.ndarray)):
        raise TypeError(f"{method}: got {kind_of(value)} for {name!r}, want an array")


def staged(
    method: str, values: Mapping[str, tuple[Tensor, Any]], others: Iterable[Tensor] = ()
) -> dict[str, Any]:
    """Prepares values, given with their tensors by name, so that writing them cannot fail:
    checked, converted, and copied if these tensors, or the `others`, overwrite them meanwhile.
    Also allocates the tensors, unless there is memory enough to leave that to the first write.

    Raises:
        ShapeError, TypeError: naming the tensor.
    """
    targets = [to for to, _ in values.values() if not isinstance(to, Placeholder)]
    written: dict[int, list[Tensor]] = {}
    for to in (*targets, *others):
        written.setdefault(to.block_id, []).append(to)
    made = {}
    for name, (to, value) in values.items():
        _check_array(method, name, value)
        if tuple(value.shape) != to.shape:
            raise ShapeError(
                f"{method}: got shape {tuple(value.shape)} for {name!r}, want {to.shape}"
            )
        made[name] = to.fitting(value, f"{method}: {name!r}", written)
    is_scarce = _is_scarce(targets)
    for to in targets:
        to.make_room(allocates=is_scarce)
    return made


def _is_scarce(targets: list[Tensor]) -> bool:
    """Whether the memory that tensors do not have yet may be too much: more than half of what is
    available."""
    waiting = [to for to in targets if not to.is_allocated]
    needed = sum(to.nbytes for to in waiting)
    return bool(waiting) and 2 * needed > waiting[0].device.available()


def match(given: Iterable[str], targets: Mapping[str, Tensor], path: str) -> dict[str, str]:
    """For each given name that is a target's, in full or relative to `path`, the full name.

    Raises:
        ValueError: two names refer to the same target.
    """
    full = {name: name if name in targets else join(path, str(name)) for name in given}
    found = {name: target for name, target in full.items() if target in targets}
    if len(set(found.values())) < len(found):
        names = sorted(name for name, target in found.items() if name != target)
        raise ValueError(f"got {names[0]!r} and {found[names[0]]!r}, which name the same tensor")
    return found


def own_params(layer: Layer) -> dict[str, Tensor]:
    """The parameters of the layer itself, by their names in it."""
    found = named_members(layer)
    return {name: one for name, one in found if isinstance(one, Tensor) and is_parameter(one)}


def below(layer: Layer) -> list[Layer]:
    """The layer and all below it."""
    call = Collection(layer)
    path = call.tree.paths[id(layer)]
    inside = join(path, "")
    paths = call.tree.paths
    return [one for one in call.tree.layers if one is layer or paths[id(one)].startswith(inside)]


def uninitialised(layer: Layer) -> list[Layer]:
    """The layers, this one or below, whose tensors have yet to be made."""
    return [one for one in below(layer) if one._makes_tensors()]


def not_called(layer: Layer) -> str:
    """What errors say of the layers, this one or below, whose tensors have yet to be made; "" if
    there are none."""
    names = ", ".join(sorted({type(one).__name__ for one in uninitialised(layer)}))
    return f"{names}: parameters are created by the first call; call the model" if names else ""


def settle(layer: Layer) -> None:
    """Names the tensors that a layer has made, assigns them to memory accounts, and writes the
    values that were loaded before.

    Raises:
        CheckpointError: one of these values does not fit. Then none is written, and all of them
            stay pending.
    """
    claimed: dict[str, tuple[Tensor, Any]] = {}
    claims: list[tuple[dict[str, Any], str]] = []
    for name, member in named_members(layer):
        if isinstance(member, Tensor):
            full = join(layer._layer_node.path, name)
            rename(member, full)
            member.set_account("parameters" if is_parameter(member) else "states")
            for node, key in _claims(full, owners(layer)):
                claims.append((node.pending, key))
                if not _is_skipped(full, member.shape, node, key):
                    claimed[full] = (member, node.pending[key])
    try:
        values = staged("load_states", claimed)
    except (TypeError, ValueError) as error:
        raise CheckpointError(str(error)) from error
    for name, (member, _) in claimed.items():
        member.copy_from(values[name])
    for pending, key in claims:
        del pending[key]


def _is_skipped(full: str, shape: tuple[int, ...], node: Node, key: str) -> bool:
    """Whether a pending value is left out as its shape differs; warns if so."""
    got = tuple(node.pending[key].shape)
    if not node.skips_misfits or got == shape:
        return False
    warn_user(f"load: skipped {full!r}: got shape {got}, the model's is {shape}", UserWarning)
    return True


def _claims(full: str, holders: list[Layer]) -> Iterator[tuple[Node, str]]:
    """Where values are pending for a tensor, and under which name; the outermost holder's last."""
    for owner in holders:
        pending = owner._layer_node.pending
        relative = full.removeprefix(join(owner._layer_node.path, ""))
        name = full if full in pending else relative
        if name in pending:
            yield owner._layer_node, name
