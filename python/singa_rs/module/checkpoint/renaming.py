"""Names and layouts of other libraries' states, made those of a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ...tensor import Tensor
from .contents import Contents

Rename = Mapping[str, str | None] | Callable[[str], str | None] | Iterable[tuple[str, str | None]]
Transform = Mapping[str, Callable[[np.ndarray], Any]] | Callable[[str, np.ndarray], Any]


def renamed(op: str, path: str, found: Contents, rename: Rename | None) -> Contents:
    """Contents under other names; those that become None are left out.

    Raises:
        TypeError: `rename` is of another kind, or gives something else than a name.
        CheckpointError: two names become one.
    """
    if rename is None:
        return found
    kept = _kept(op, path, _renaming(op, rename), found.shapes)

    def read(known: Collection[str]) -> tuple[dict[str, np.ndarray], dict[str, Tensor]]:
        arrays, others = found.read([old for new, old in kept.items() if new in known])
        return {new: arrays[old] for new, old in kept.items()}, others

    return Contents({new: found.shapes[old] for new, old in kept.items()}, read)


def _kept(op: str, path: str, rename: Callable[[str], Any], names: Iterable[str]) -> dict[str, str]:
    """The old name for each new one."""
    kept: dict[str, str] = {}
    for old in names:
        new = rename(old)
        if new is None:
            continue
        if not isinstance(new, str):
            raise TypeError(f"{op}: rename: got {new!r:.80} for {old!r}, want a str or None")
        if new in kept:
            raise CheckpointError(f"{op}: {path}: rename: {kept[new]!r} and {old!r} become {new!r}")
        kept[new] = old
    return kept


def _renaming(op: str, rename: Rename) -> Callable[[str], Any]:
    """`rename` as a function."""
    if isinstance(rename, Mapping):
        return lambda name: rename.get(name, name)
    if callable(rename):
        return rename
    want = "a dictionary, a function, or a list of pairs of a pattern and what replaces it"
    try:
        patterns = [(re.compile(pattern), to) for pattern, to in rename]
        for pattern, to in patterns:
            pattern.sub("" if to is None else to, "")
    except (TypeError, ValueError, re.error) as error:
        raise TypeError(f"{op}: rename: got {rename!r:.80}, want {want}: {error}") from error

    def replaced(name: str) -> str | None:
        for pattern, to in patterns:
            if to is None and pattern.search(name):
                return None
            name = name if to is None else pattern.sub(to, name)
        return name

    return replaced


def transformed(op: str, found: Contents, transform: Transform | None) -> Contents:
    """Contents with other arrays, such as transposed ones. They are read to know their shapes.

    Raises:
        TypeError: `transform` is of another kind, or gives something else than an array.
    """
    if transform is None:
        return found
    if not isinstance(transform, Mapping) and not callable(transform):
        raise TypeError(f"{op}: transform: got {transform!r:.80}, want a function or a dictionary")
    arrays, others = found.read(())
    made = {name: _transformed(op, name, one, transform) for name, one in arrays.items()}
    return Contents({name: one.shape for name, one in made.items()}, lambda _: (made, others))


def _transformed(op: str, name: str, array: np.ndarray, transform: Transform) -> np.ndarray:
    if isinstance(transform, Mapping):
        made = transform[name](array) if name in transform else array
    else:
        made = transform(name, array)
    if not isinstance(made, np.ndarray):
        kind = type(made).__name__
        raise TypeError(f"{op}: transform: got {kind} for {name!r}, want a NumPy array")
    return made
