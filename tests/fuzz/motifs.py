"""Idioms: several operations or layers that people write together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .recipes.registry import floating, image, matrix

if TYPE_CHECKING:
    from .draw import Draw

#: The most columns of a square weight; channels are an eighth at most.
WIDEST = 300
#: Classes that programs may use besides layers: a module in a module, operations of users.
CLASSES = '''

class Block(module.Module):
    """A module below the model, with a mode of its own once it is told."""

    def __init__(self, width):
        super().__init__()
        self.fc, self.drop = layer.Linear(width), layer.Dropout(0.3)

    def forward(self, x):
        return self.drop(self.fc(x))


class Cube(autograd.Operator):
    """An operation of a user, in NumPy."""

    host = True

    def infer(self, x):
        return [(x.shape, x.dtype)]

    def forward(self, x):
        self.x = x
        return x * x * x

    def backward(self, dy):
        return dy * 3 * self.x * self.x


class Third(autograd.Operator):
    """An operation of a user, in operations of tensors."""

    def forward(self, x):
        return x / 3

    def backward(self, dy):
        return dy / 3
'''


def _layers(d: Draw, *texts: str) -> list[str]:
    names = []
    for text in texts:
        names.append(f"self.l{len(d.program.init)}")
        d.define(f"{names[-1]} = {text}")
    return names


def _again(d: Draw) -> str | None:
    """A layer that exists already, called again."""
    layers = [line.split(" = ")[0] for line in d.program.init if " = layer." in line]
    layers = [name for name in layers if name.startswith("self.l")]
    return f"{d.rng.choice(layers)}({d.any()})" if layers else None


def _dense(d: Draw) -> str | None:
    x = matrix(d)
    if x is None:
        return None
    how = d.rng.choice(["", ", activation='RELU'", ", bias=False"])
    fc, norm = _layers(d, f"layer.Linear({d.width()}{how})", "layer.BatchNorm2d()")
    return d.rng.choice(
        [
            f"autograd.relu({norm}({fc}({x})))",
            f"{norm}({fc}({x}))",
            f"autograd.gelu({fc}({x}))",
            f"autograd.tanh({fc}({x})) * 0.5",
        ]
    )


def _residual(d: Draw) -> str | None:
    x = matrix(d)
    if x is None or not 0 < d.value(x).shape[1] <= WIDEST:
        return None
    (fc,) = _layers(d, f"layer.Linear({d.value(x).shape[1]})")
    return d.rng.choice([f"{x} + {fc}({x})", f"autograd.relu({fc}({x})) + {x}"])


def _convolution(d: Draw) -> str | None:
    x = image(d)
    if x is None:
        return None
    channels = d.value(x).shape[1]
    if channels > WIDEST // 8:
        return None
    conv, norm = _layers(d, f"layer.Conv2d({channels}, 3, padding=1)", "layer.BatchNorm2d()")
    return d.rng.choice(
        [
            f"autograd.relu({norm}({conv}({x})))",
            f"autograd.relu({norm}({conv}({x})) + {x})",
            f"{norm}({conv}({x}))",
            f"autograd.relu({conv}({x}))",
        ]
    )


def _attention(d: Draw) -> str | None:
    x = d.any(lambda x: x.rank == 3 and floating(x) and x.numel, 10)
    if x is None:
        return None
    scores = f"{x} @ {x}.transpose(0, 2, 1)"
    return f"autograd.softmax(({scores}) * 0.5, axis=-1) @ {x}"


def _likelihood(d: Draw) -> str | None:
    x = matrix(d)
    return x and f"autograd.log(autograd.softmax({x}))"


def _own(d: Draw) -> str | None:
    x = d.any(floating)
    return x and f"{d.rng.choice(['Cube', 'Third'])}()({x})[0]"


def _module(d: Draw) -> str | None:
    x = matrix(d)
    if x is None:
        return None
    name = f"self.b{len(d.program.init)}"
    d.define(f"{name} = Block({d.width()})")
    return f"{name}({x})"


def _recurrent(d: Draw) -> str | None:
    x = matrix(d)
    if x is None or not d.value(x).shape[1]:
        return None
    width = d.value(x).shape[1]
    w = d.parameter((width, width), -0.5, 0.5)
    return f"autograd.tanh(autograd.tanh({x} @ {w}) @ {w} + {x}) @ {w}"


def _updated(d: Draw) -> str | None:
    """A state that the step updates and uses."""
    x = d.any(lambda x: floating(x) and x.rank > 0 and x.numel)
    if x is None:
        return None
    name = f"self.q{len(d.program.init)}"
    d.define(f"{name} = held(draw({d.seed()}, {d.value(x).shape[-1:]}))")
    axes = tuple(range(d.value(x).rank - 1))
    line = f"{name} += {x}.detach().mean({axes}) * 0.1" if axes else f"{name} *= 0.9"
    return f"{x} + {name}" if d.write(line, d.program.forward) else None


def _memory(d: Draw) -> str | None:
    """A result of the previous step, kept in an attribute, with or without its history."""
    x = d.any(lambda x: floating(x) and x.dtype == d.value("x").dtype and x.numel)
    if x is None or len(d.worlds) > 1:
        return None
    name = f"self.q{len(d.program.init)}"
    d.define(f"{name} = held(draw({d.seed()}, {d.value(x).shape}))")
    before = name + d.rng.choice([".detach()", ".detach()", ".detach()", ""])
    d.program.is_plain = False
    line = f"{name} = autograd.tanh({x} + {before} * 0.5)"
    return f"{name} * 1.0" if d.write(line, d.program.forward) else None


def _container(d: Draw) -> str | None:
    """A factor or term from a container of the model."""
    x = d.any(floating)
    if x is None:
        return None
    return d.rng.choice(
        [
            f"{x} * self.table['scale']",
            f"{x} + self.table['list'][0]",
            f"{x} * len(self.table['list'])",
            f"{x} * (0.5 if 'more' in self.table else 2)",
        ]
    )


def _marked(d: Draw) -> str | None:
    """An attribute that the program sets on an argument, or a default."""
    a = d.any(floating)
    return None if a is None else f"{a} * getattr(x, 'tag', 1.5)"


MOTIFS = {
    "attribute of an argument": _marked,
    "container": _container,
    "memory": _memory,
    "a layer again": _again,
    "dense": _dense,
    "residual": _residual,
    "convolution": _convolution,
    "attention": _attention,
    "log of softmax": _likelihood,
    "operation of a user": _own,
    "module in a module": _module,
    "weight used again": _recurrent,
    "state": _updated,
}
