"""A program from a seed."""

from __future__ import annotations

import re
from random import Random

from singa_rs import autograd

from . import catalogue, recipes, sessions, training, values
from .draw import HUGE, LARGE, SMALL, Draw
from .motifs import CLASSES, MOTIFS
from .program import Program
from .run import reset

#: How often each kind of entry is drawn.
WEIGHTS = {"function": 10, "method": 7, "operator": 10, "layer": 8, "operation": 1}
#: Entries that people use more often than the rest.
FAVOURITES = (
    "autograd.relu autograd.matmul autograd.softmax autograd.reshape autograd.transpose "
    "Tensor.__add__ Tensor.__mul__ Tensor.__sub__ Tensor.__getitem__ Tensor.__rmul__ Tensor.sum "
    "Tensor.__iadd__ Tensor.__imul__ Tensor.__setitem__ Tensor.reshape Tensor.transpose "
    "layer.Linear layer.Linear layer.BatchNorm2d layer.Conv2d layer.Dropout Tensor.mean "
    "Tensor.as_type Tensor.copy_from Tensor.expand autograd.split autograd.tanh autograd.gelu"
).split()


def _tables() -> dict[str, list[catalogue.Entry]]:
    found: dict[str, list[catalogue.Entry]] = {kind: [] for kind in WEIGHTS}
    for entry in catalogue.entries().values():
        found[entry.kind].append(entry)
    found["motif"] = [catalogue.Entry(f"motif {name}", "motif", (), ()) for name in MOTIFS]
    found["favourite"] = [catalogue.entries()[name] for name in FAVOURITES]
    return found


_TABLES: dict[str, list[catalogue.Entry]] = {}

_SHAPES = {
    "rows": lambda rng: (rng.randint(1, 8), rng.randint(1, 8)),
    "wide rows": lambda rng: (rng.choice([4, 16]), rng.choice([16, 33, 64])),
    "images": lambda rng: (rng.randint(1, 3), rng.choice([1, 2, 3, 4]), *[rng.randint(2, 5)] * 2),
    "sequences": lambda rng: (rng.randint(1, 3), rng.randint(2, 5), rng.choice([2, 4, 6])),
    "vectors": lambda rng: (rng.randint(1, 12),),
    "large rows": lambda rng: (rng.choice([64, 256]), rng.choice([64, 256, 300])),
    "long rows": lambda rng: (rng.choice([2, 20]), rng.choice([4096, 4097, 2048])),
    "large images": lambda rng: (
        rng.choice([4, 8]),
        rng.choice([4, 8]),
        *[rng.choice([16, 32])] * 2,
    ),
}
_RARE = 0.985


#: Attributes that every program may use, and has if it does.
_ATTRIBUTES = {
    "flag": "False",
    "kept": "None",
    "log": "[]",
    "table": "{'scale': 0.5, 'list': [1.0, 2.0], 'more': None}",
    "mse": "layer.MeanSquareError()",
    "xent": "layer.SoftMaxCrossEntropy()",
    "s0": "tensor.zeros(())",
}


def _without_unused(program: Program) -> Program:
    """The program without attributes, and classes, that it does not use."""
    parts = [line for part in program.PARTS if part != "init" for line in getattr(program, part)]
    text = "\n".join([*parts, program.result, program.answer])
    unused = {name for name in _ATTRIBUTES if not re.search(rf"\b(self|m)\.{name}\b", text)}
    program.init = [s for s in program.init if s.partition(" = ")[0][5:] not in unused]
    if not re.search(r"\b(Block|Cube|Third)\(", text + "\n".join(program.init)):
        program.classes = ""
    return program


class Unfit(Exception):
    """Nothing that was drawn is trainable."""


def generate(seed: int) -> Program:
    """The program of a seed: the first of a few attempts that runs to its end."""
    rng = Random(seed)
    for _ in range(4):
        try:
            return _attempt(rng, seed)
        except Unfit:
            continue
    return _empty(seed)


def _empty(seed: int) -> Program:
    session = ["see(m(x0, y0))"] * 4
    data = ["x0 = held(draw(1, (4, 3)))", "y0 = from_numpy(whole(2, (4,), 3))"]
    return Program(seed=seed, data=data, session=session, answer="out")


def _attempt(rng: Random, seed: int) -> Program:
    reset(1)
    program = Program(seed=seed, classes=CLASSES)
    program.dtype = rng.choices(values.FLOATS, [90, 2, 2, 6])[0]
    program.is_large = rng.random() > _RARE
    shapes = [s for s in _SHAPES if s.startswith(("large", "long")) == program.is_large]
    shape = _SHAPES[rng.choice(shapes)](rng)
    program.tags["large" if program.is_large else "small"] += 1
    d = Draw(rng, program, rng.choice([LARGE] * 9 + [HUGE]) if program.is_large else SMALL)
    d.guards = 0.15 if rng.random() < 0.1 else 0.0
    batches = _inputs(d, shape)
    autograd.training = True
    try:
        _forward(d)
        program.losses = training.losses(d)
        program.update = training.update(d) + training.kept(d)
    finally:
        autograd.training = False
    program.answer = rng.choice(["out, loss"] * 4 + ["loss"] * 2 + _answers(d))
    program.session = sessions.session(d, batches)
    return _without_unused(program)


def sandbox(seed: int) -> Draw:
    """A program with inputs alone, to which statements may be added."""
    rng = Random(seed)
    d = Draw(rng, Program(seed=seed, classes=CLASSES), SMALL)
    shapes = [s for s in _SHAPES if not s.startswith(("large", "long"))]
    _inputs(d, _SHAPES[rng.choice(shapes)](rng))
    return d


def _inputs(d: Draw, shape: tuple[int, ...]) -> int:
    """Draws the batches and the worlds; the number of batches."""
    rng, program = d.rng, d.program
    program.inputs = "x, z" if rng.random() < 0.12 else "x"
    changes = rng.random() < 0.12
    sizes = [shape[0], rng.choice([1, 2, 3, 5, shape[0] + 1]) if changes else shape[0]]
    program.tags["batch sizes"] += changes
    for i, size in enumerate(sizes):
        for name in program.inputs.split(", "):
            program.data.append(f"{name}{i} = held(draw({d.seed()}, {(size, *shape[1:])}))")
        program.data.append(f"y{i} = from_numpy(whole({d.seed()}, ({size},), {min(shape[-1], 3)}))")
    for i in range(2 if changes and sizes[0] != sizes[1] else 1):
        world = d.world()
        for line in program.data:
            exec(line, world)
        for name in [*program.inputs.split(", "), "y"]:
            world[name] = world[f"{name}{i}"]
            world[name].requires_grad = False  # only parameters cause recording
    d.pool += program.inputs.split(", ")
    for name, value in _ATTRIBUTES.items():
        d.define(f"self.{name} = {value}")
    return 2


def _forward(d: Draw) -> None:
    """Draws the statements of `forward`, and its result."""
    rng, program = d.rng, d.program
    if not _TABLES:
        _TABLES.update(_tables())
    count = rng.choice([3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 10, 12, 15, 25])
    if program.is_large:
        count = min(count, 10)
    kinds, weights = zip(*{**WEIGHTS, "motif": 5, "favourite": 14}.items(), strict=True)
    if program.is_large:  # rules for large tensors match motifs
        weights = (4, 3, 4, 2, 1, 20, 10)
    for _ in range(count):
        entry = rng.choice(_TABLES[rng.choices(kinds, weights)[0]])
        d.attempt(entry, program.forward, 3)
    _answer(d)


def _answer(d: Draw) -> None:
    """Chooses the result of `forward`: the last float tensor that depends on parameters."""
    candidates = [n for n in d.pool if n.startswith("v") and d.value(n).dtype.is_float]
    candidates = [n for n in candidates if d.value(n).numel and d.value(n).creator is not None]
    trained = [n for n in candidates if _is_trained(d.value(n))]
    name = (trained or candidates or ["x"])[-1]
    if not trained:
        shape = d.value(name).shape
        weight = d.parameter(shape[-1:])
        if not d.write(f"w = {name} * {weight}", d.program.forward):
            raise Unfit
        name = "w"
    if d.rng.random() < 0.5:
        picked = [n for n in candidates[:-1] if _is_trained(d.value(n))]
        if picked:
            other = d.rng.choice(picked)
            line = f"w2 = {name} + {other}.mean()"
            if d.write(line, d.program.forward):
                name = "w2"
    d.program.result = name
    for world in d.worlds:
        world["out"] = world[name]


def _answers(d: Draw) -> list[str]:
    """What a step may return besides its result and its loss."""
    made = [
        "{'loss': loss, 'out': out}",
        "[out, (loss, None)], self.n",
        "loss, x",
        "out, self.kept",
    ]
    made += ["out.detach(), loss", "out.reshape((-1,))[::2], loss", "loss, out * 1.0, out"]
    weights = [n for n in d.pool if n.startswith("self.p")]
    return [*made, f"loss, {d.rng.choice(weights)}"] if weights else made


def _is_trained(x: object) -> bool:
    return x._creator is not None and x.requires_grad  # type: ignore[attr-defined]


__all__ = ["catalogue", "generate", "recipes"]
