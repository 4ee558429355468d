"""What of a file fits a model: names that both have, with the same shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...errors import CheckpointError, DTypeError
from ...layer.base import Layer
from ...layer.collect import match, not_called, uninitialised
from ...layer.node import now

Shape = tuple[int, ...]


class Unfit(CheckpointError, DTypeError):
    """Values in a file that the model's dtypes cannot hold."""


class Rules(NamedTuple):
    """What of a file may differ from the model: nothing if `is_strict`; else names, and with
    `skips_misfits` shapes."""

    is_strict: bool = False
    skips_misfits: bool = False


class Fit:
    """How the tensors of a file are written into a model."""

    def __init__(
        self, op: str, path: str, model: Layer, shapes: Mapping[str, Shape], rules: Rules
    ) -> None:
        """`shapes`: of the tensors in the file, by name.

        Raises:
            CheckpointError: the file does not fit by these rules, or has nothing of the model's.
        """
        self._where, self._model, self._rules = f"{op}: {path}", model, rules
        self._states = model.get_states()
        self._is_whole = not uninitialised(model)
        try:
            found = match(shapes, self._states, model._layer_node.path)
        except ValueError as error:
            raise CheckpointError(f"{self._where}: {error}") from error
        misfits = {
            name: f"{name!r} has shape {shapes[name]}, the model's {self._states[full].shape}"
            for name, full in found.items()
            if shapes[name] != self._states[full].shape
        }
        #: For each name in the file that is the model's and has its shape, the name in the model.
        self.names = {name: full for name, full in found.items() if name not in misfits}
        #: The tensors that keep their values, as the file's have other shapes, by name.
        self.skipped = {found[name]: self._states[found[name]] for name in misfits}
        self._others = set(shapes) - set(found)
        #: What does not fit, though the rules allow it; empty if everything does.
        self.differences = self._checked(list(misfits.values()), set(found.values()))

    def _checked(self, misfits: list[str], matched: set[str]) -> str:
        strict = self._rules.is_strict
        if misfits and (strict or not self._rules.skips_misfits):
            raise CheckpointError(f"{self._where}: {'; '.join(misfits)}")
        if strict and not self._is_whole:
            raise CheckpointError(f"{self._where}: strict: {not_called(self._model)}")
        lists = self._lists(matched) if self._is_whole else []
        text = f"{self._where}: {'; '.join([*lists, *misfits])}"
        if lists and strict:
            raise CheckpointError(text)
        if lists and not matched:
            raise CheckpointError(f"{self._where}: no state of the model; {'; '.join(lists)}")
        return text if lists or misfits else ""

    def _lists(self, matched: set[str]) -> list[str]:
        named = {"file": self._others, "model": set(self._states) - matched}
        return [f"only in the {one}: {', '.join(sorted(n))}" for one, n in named.items() if n]

    def write(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Copies the file's values into the model; those of layers that have no tensors yet are
        kept for them. All are checked and converted before the first is written.

        Raises:
            Unfit: a value that the model's dtype cannot hold.
        """
        others = {name: arrays[name] for name in self._others}
        if self.names:
            values = {full: arrays[name] for name, full in self.names.items()}
            outer, now.has_told_names = now.has_told_names, True  # in `differences`
            try:
                self._model.set_states({**others, **values})
            except DTypeError as error:
                raise Unfit(f"{self._where}: {error}") from error
            finally:
                now.has_told_names = outer
        if not self._is_whole:
            node = self._model._layer_node
            node.pending = {name: np.array(one) for name, one in others.items()}
            node.skips_misfits = self._rules.skips_misfits
