"""Draws statements: each is tried at once, so that shapes, dtypes and values are known."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
from singa_rs import autograd, layer, module
from singa_rs.tensor import Tensor

from . import recipes
from .catalogue import Entry
from .program import Program
from .run import fresh, is_finite

#: Limits on the elements of a result: of a small program, of a large one.
SMALL, LARGE, HUGE = 600, 1 << 18, 1 << 21
#: The limit on the elements of a weight.
WEIGHT = 1 << 17


def code_of(line: str) -> Any:
    """The compiled statement."""
    return compile(line, "drawn", "exec")


#: On what statements depend that are not run in each step.
CONDITIONS = ("self.n % 2", "self.n % 3 == 1", "self.n > 4", "self.flag", "autograd.training")


class _Self(module.Module):
    """A stand-in for the model while its statements are tried."""


class Draw:
    """A program under construction, and the values of its statements."""

    def __init__(self, rng: Random, program: Program, most: int) -> None:
        self.rng, self.program, self.most = rng, program, most
        #: Values by name: for one batch size, and possibly for a second one.
        self.worlds: list[dict[str, Any]] = []
        self.count = 0
        self.seeds = 0
        #: Names of tensors that statements may use, the latest last.
        self.pool: list[str] = []
        #: The probability that a statement is executed in some steps only.
        self.guards = 0.0
        self.me = _Self()
        self.me.n = 1

    def world(self) -> dict[str, Any]:
        """A new namespace in which statements are tried."""
        names = fresh(self.program)
        names["self"] = self.me
        self.worlds.append(names)
        return names

    # ---- helpers for recipes ---------------------------------------------------------------------

    def seed(self) -> int:
        """A new seed for an array."""
        self.seeds += 1
        return self.seeds

    def value(self, text: str) -> Any:
        """The value of an expression in the first world."""
        names = self.worlds[0]
        return names[text] if text in names else eval(text, names)

    def any(self, want: Any = None, tries: int = 6) -> str | None:
        """The name of a tensor that fits, later ones rather than earlier ones."""
        pool = self.pool
        for _ in range(tries):
            place = max(self.rng.randrange(len(pool)), self.rng.randrange(len(pool)))
            name = pool[place]
            if want is None or want(self.value(name)):
                return name
        return None

    def parameter(self, shape: tuple[int, ...], low: float = -1, high: float = 1) -> str:
        """A new parameter, or an existing one of that shape."""
        if math.prod(shape) > WEIGHT:
            raise ValueError("a weight that costs too much")
        fits = [n for n in self.pool if n.startswith("self.p") and self.value(n).shape == shape]
        if fits and self.rng.random() < 0.3:
            return self.rng.choice(fits)
        name = f"self.p{len(self.program.init)}"
        dtype = (
            self.rng.choice(["float16", "bfloat16", "float64"]) if self.rng.random() < 0.05 else ""
        )
        array = f"draw({self.seed()}, {tuple(shape)!r}, {low}, {high})"
        if not dtype and self.rng.random() < 0.08:
            line = f"{name} = held({array})"  # a state
        else:
            line = f"{name} = parameter({array}{', ' + repr(dtype) if dtype else ''})"
        self.define(line)
        if name not in self.pool:
            self.pool.insert(0, name)
        return name

    def define(self, line: str) -> None:
        """Adds a statement to the constructor."""
        exec(code_of(line), self.worlds[0])
        self.program.init.append(line)

    def try_all(self, entries: list[Entry]) -> list[Entry]:
        """Draws a statement for each entry; those for which that failed."""
        return [one for one in entries if not self.attempt(one, self.program.forward)]

    # ---- statements ------------------------------------------------------------------------------

    def attempt(self, entry: Entry, into: list[str], most: int = 5) -> bool:
        """Draws arguments for an entry until its statement runs."""
        for _ in range(most):
            before = len(self.program.init), len(self.pool), list(self.pool)
            try:
                drawn = recipes.statement(self, entry)
                if drawn is not None and self._take(*drawn, into):
                    self.program.tags[entry.name] += 1
                    return True
            except Exception:  # arguments that do not fit: others are drawn
                pass
            del self.program.init[before[0] :]
            self.pool[:] = before[2]
        return False

    def _take(self, line: str, made: str | None, into: list[str]) -> bool:
        """Whether a statement ran and its result, if any, is usable."""
        code = code_of(line)
        for names in self.worlds:
            exec(code, names)
        for names in self.worlds:
            if made is not None and not self._is_fit(names[made]):
                return False
        into.append(line)
        if made is not None:
            if self.rng.random() < self.guards:
                into[-1] = self._guarded(line, made)
            elif self.rng.random() < 0.01 and isinstance(self.value(made), Tensor):
                into[-1] = f"with autograd.no_grad(): {line}"
                self.program.tags["without gradients"] += 1
            for name in self._spread(made, into):
                self._enter(name)
        return True

    def _guarded(self, line: str, made: str) -> str:
        """Makes a statement conditional on the step, if a tensor can take its result's place."""
        value, text = self.value(made), line.partition(" = ")[2]
        if not isinstance(value, Tensor):
            return line
        fits = [n for n in self.pool if self._is_like(n, value)]
        if not fits:
            return line
        self.program.is_plain = False
        self.program.tags["control flow by step"] += 1
        condition = self.rng.choice(CONDITIONS)
        return f"{made} = {text} if {condition} else {self.rng.choice(fits)}"

    def _is_like(self, name: str, value: Tensor) -> bool:
        other = self.value(name)
        return other.shape == value.shape and other.dtype == value.dtype

    def _spread(self, made: str, into: list[str]) -> list[str]:
        """Gives each tensor of a result that is a tuple a name of its own."""
        if isinstance(self.value(made), Tensor):
            return [made]
        names = [f"{made}_{i}" for i in range(len(self.value(made)))]
        line = f"{', '.join(names)}{',' if len(names) == 1 else ''} = {made}"
        for world in self.worlds:
            exec(code_of(line), world)
        into[-1] = into[-1].replace(f"{made} =", line.split(" = ")[0] + " =", 1)
        return names

    def _enter(self, name: str) -> None:
        self.pool.append(name)
        self.program.tags["dtype " + self.value(name).dtype.name] += 1

    def _is_fit(self, value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return bool(value) and all(map(self._is_fit, value))
        if not isinstance(value, Tensor) or value.numel > self.most:
            return False
        if value.numel == 0:
            return self.rng.random() < 0.1
        if value.numel > 10_000:
            return True
        array = value.to_numpy()
        if is_finite(array) and (array.dtype.kind != "f" or np.abs(array).max() < 1e4):
            return True
        return self.rng.random() < 0.03

    def width(self) -> int:
        """The number of columns of a new weight."""
        if self.program.is_large:
            return self.rng.choice([4, 64, 256])
        return self.rng.randint(1, 8)

    def name(self) -> str:
        """A new name."""
        self.count += 1
        return f"v{self.count}"

    def write(self, line: str, into: list[str]) -> bool:
        """Tries a statement without a new result."""
        try:
            return self._take(line, None, into)
        except Exception:
            return False


def model_layers(entry: Entry) -> Any:
    """The class of a layer."""
    return getattr(layer, entry.name.partition(".")[2])


__all__ = ["LARGE", "SMALL", "Draw", "autograd", "code_of", "model_layers"]
