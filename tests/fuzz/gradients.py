"""Compares gradients of a step with finite differences of its loss, in float64."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
from singa_rs import autograd

from .program import Program
from .run import code_of, fresh, reset, seed

#: Steps of the differences; where differences depend on the step, the loss is not smooth.
STEPS = (1e-4, 5e-5)
#: Lines that stop gradients on purpose, or make steps differ.
_CUTS = re.compile(
    r"self\.n %|no_grad|detach|\.data\b|\braw\b|from_raw|ret=|out=|copy_|set_value|gaussian|"
    r"uniform|bernoulli|as_?type|[cC]ast|half\(|random|average|Cube|self\.q"
)
#: Functions whose slopes are infinite at the ends of their domains, so that the chain rule
#: multiplies infinity by zero, and powers, whose exponents have no slope where bases are negative.
_STEEP = re.compile(r"\*\*|[pP]ow|[sS]qrt|[lL]og|[aA]cos|[aA]sin|[aA]tanh")
#: The number of elements tried per parameter.
ELEMENTS = 2


def variant(program: Program) -> Program:
    """The program in float64, whose step leaves gradients and updates nothing."""
    made = program.copy()
    made.dtype = "float64"
    made.update = ["self.grads = autograd.gradients(loss)"]
    made.answer = "loss"
    return made


def difference(program: Program) -> str | None:
    """The first gradient that differs, or None; "" where nothing could be compared."""
    lines = program.forward + program.losses
    is_steep = any(_STEEP.search(line) for line in lines)
    if any(_CUTS.search(line) for line in lines) or _writes_parameters(program):
        return ""
    reset(1)
    made = variant(program)
    names = fresh(made)
    try:
        exec(code_of(made), names)
        model = names["Net"]()
        arguments = [names[f"{name}0"] for name in (*made.inputs.split(", "), "y")]
        model.compile(arguments[:-1], use_graph=False)
        _loss(model, arguments)
        states = {name: one.to_numpy() for name, one in model.get_states().items()}
        return _compared(model, arguments, states, Random(program.seed), is_steep)
    except Exception:
        return ""
    finally:
        autograd.training = False


def _writes_parameters(program: Program) -> bool:
    """Whether a write may overwrite the shift of a parameter that a difference needs."""
    return any(" = " not in line or "self.p" in line.split(" = ")[0] for line in program.forward)


def _loss(model: Any, arguments: list[Any]) -> float:
    seed()
    given = [one.clone() for one in arguments]
    return float(model(*given).to_numpy().reshape(-1)[0])


def _compared(
    model: Any, arguments: list[Any], states: dict[str, Any], rng: Random, is_steep: bool
) -> str | None:
    compared = 0

    def loss_with(parameter: Any, value: np.ndarray) -> float:
        model.set_states(states)
        parameter.copy_from(value)
        return _loss(model, arguments)

    model.set_states(states)
    base = _loss(model, arguments)
    grads = {n: p for n, p in model.get_params().items() if p in model.grads}
    grads = {n: (p, model.grads[p].to_numpy()) for n, p in grads.items()}
    for name, (parameter, gradient) in grads.items():
        if parameter.dtype.name != "float64" or not gradient.size:
            continue
        for _ in range(ELEMENTS):
            place = rng.randrange(gradient.size)
            sides = [_sides(loss_with, parameter, states[name], place, h, base) for h in STEPS]
            if not _is_smooth(sides, base):
                continue
            compared += 1
            want, got = sum(sides[1]) / 2, gradient.reshape(-1)[place]
            if np.isnan(got) and is_steep:
                continue
            if not abs(want - got) <= 1e-3 * (abs(want) + abs(got)) + 1e-5 * max(abs(base), 1):
                return f"gradient of {name}, element {place}: {got}, by differences {want}"
    return None if compared else ""


def _sides(
    loss_with: Any, parameter: Any, value: np.ndarray, place: int, h: float, base: float
) -> list[float]:
    """The slopes to the right and to the left."""
    made = []
    for sign in (1, -1):
        moved = value.copy()
        moved.reshape(-1)[place] += sign * h
        made.append((loss_with(parameter, moved) - base) / (sign * h))
    return made


def _is_smooth(sides: list[list[float]], base: float) -> bool:
    """Whether both sides agree, the better the smaller the step is."""
    scale = max(abs(base), 1)
    if not np.isfinite(sides).all():
        return False
    (a, b), (c, d) = sides
    near = 1e-7 * scale / STEPS[1] * 1e-3 + 1e-7 * scale
    size = abs(c) + abs(d) + near
    is_even = abs(a + b - c - d) <= 2e-4 * size
    return bool(is_even and abs(c - d) <= 0.6 * abs(a - b) + near and abs(c - d) < 0.02 * size)
