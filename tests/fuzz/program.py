"""A program as data: the lines of a model and of a session with it, and the file they make."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, fields, replace

#: Imports and helpers of every program.
PREAMBLE = '''\
import os

import numpy as np
from singa_rs import autograd, device, layer, module, opt, tensor
from singa_rs.tensor import Tensor

DTYPE = {dtype!r}
on_gpu = "SINGA_RS_DEVICE" in os.environ
dev = device.create_cuda_gpu() if on_gpu else device.get_default_device()


def from_numpy(array, dtype=None):
    """A tensor of the device that programs run on."""
    return tensor.from_numpy(array, dev, dtype)


def draw(seed, shape, low=-1.0, high=1.0):
    """An array of random numbers."""
    made = np.random.default_rng(seed).uniform(low, high, shape)
    return made.astype(DTYPE if DTYPE in ("float16", "float64") else "float32")


def whole(seed, shape, high, low=0):
    """An array of random int32."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


def held(array, dtype=None):
    """A tensor of the program's dtype."""
    return from_numpy(array, dtype=dtype or (DTYPE if array.dtype.kind == "f" else None))


def parameter(array, dtype=None):
    """A tensor that is trained."""
    made = held(array, dtype)
    made.stores_grad = True
    return made
'''

#: The end of a program's file, which runs it in both ways and prints what differs.
TRAILER = '''

def run(**how):
    """What a session shows, with arguments that no other session has written."""
    arguments()
    dev.set_seed(0)
    seen = []

    def see(*values, keep=True):
        for one in values:
            if isinstance(one, Tensor):
                seen.append((one, one.to_numpy()))
            elif isinstance(one, (tuple, list)):
                see(*one)
            elif isinstance(one, dict):
                see(*one.values())

    try:
        session(see, **how)
    except Exception as error:
        seen.append((None, f"{{type(error).__name__}}: {{error}}"))
    return seen


def text(value):
    return value if isinstance(value, str) else value.tolist()


if __name__ == "__main__":
    eager, graph = run(use_graph=False), run({how})
    for i, ((_, a), (_, b)) in enumerate(zip(eager, graph)):
        equal = str(a).split(":")[0] == str(b).split(":")[0] if isinstance(a, str) or isinstance(
            b, str) else a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        print(i, "equal" if equal else f"DIFFERENT: eager {{text(a)}}, graph {{text(b)}}")
    if len(eager) != len(graph):
        print(f"DIFFERENT: eager shows {{len(eager)}} values, graph {{len(graph)}}")
'''


#: Functions that jump, and those of integers or bools.
_ROUGH = re.compile(
    r"ceil|floor|round|sign\b|Sign\b|arg|[<>]|==|!=|//|%|where|int|bool|Not|And|Or\(|Xor|"
    r"[Ee]qual|[Ll]ess|[Gg]reater|[lg][te]\(|_or|_xor|Remainder|remainder|random|onehot",
    re.IGNORECASE,
)


@dataclass
class Program:
    """The parts of a program; lines are Python, indented only within blocks."""

    seed: int = 0
    dtype: str = "float32"
    #: Statements before the class: arrays and tensors that are passed to calls.
    data: list[str] = field(default_factory=list)
    init: list[str] = field(default_factory=list)
    forward: list[str] = field(default_factory=list)
    #: The result of `forward`.
    result: str = "x"
    #: Of `train_one_batch`: up to the loss, and from the gradients on.
    losses: list[str] = field(default_factory=list)
    update: list[str] = field(default_factory=list)
    answer: str = "out, loss"
    session: list[str] = field(default_factory=list)
    #: How the model is compiled: names of arguments of `forward`.
    inputs: str = "x"
    #: What was drawn, for coverage.
    tags: Counter = field(default_factory=Counter)
    #: Classes besides the model, if it uses any.
    classes: str = ""
    #: Whether a step does the same each time, so that it may be recorded by hand.
    is_plain: bool = True
    #: Whether results of several threads may differ within rounding.
    is_large: bool = False

    #: The parts that are lists of lines.
    PARTS = ("data", "init", "forward", "losses", "update", "session")

    def copy(self) -> Program:
        """A copy with lists of its own."""
        return replace(
            self,
            **{f.name: list(getattr(self, f.name)) for f in fields(self) if f.name in self.PARTS},
        )

    def lines(self) -> int:
        """The number of lines."""
        return sum(len(getattr(self, part)) for part in self.PARTS)

    def source(self) -> str:
        """The source text that is executed."""
        data = "\n".join(self.data)
        return f"{data}\n\n\n{self._model()}"

    def _model(self) -> str:
        """The model, and the session with it."""
        indented = {part: _block(getattr(self, part), 8) for part in ("init", "forward")}
        train = _block(self.losses + self.update, 8)
        session = _block(self.session, 4)
        return f"""\
class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
{indented["init"]}
    def forward(self, {self.inputs}):
{indented["forward"]}        return {self.result}

    def train_one_batch(self, {self.inputs}, y):
        self.n += 1
        out = self.forward({self.inputs})
{train}        return {self.answer}


def session(see, **how):
    m = Net()
    m.compile([{", ".join(name + "0" for name in self.inputs.split(", "))}], **how)
{session}"""

    def is_rough(self) -> bool:
        """Whether rounding may decide between results that are far apart."""
        return any(_ROUGH.search(line) for line in self.forward + self.losses)

    def amplifies(self) -> bool:
        """Whether training amplifies rounding: gradients are divided by their magnitude, or are
        sums of so many elements that steps of the usual size are too long."""
        text = "\n".join(self.init + self.update + self.session)
        divides = "norm = " in text or any(f"opt.{n}" in text for n in ("Ada", "RMS"))
        return divides or self.is_large

    def preamble(self) -> str:
        """Imports and helpers."""
        return PREAMBLE.format(dtype=self.dtype) + self.classes

    def file(self, says: str, how: str = "use_graph=True") -> str:
        """A file that runs by itself, eagerly and as a graph, and prints what differs."""
        names = re.findall(r"(?m)^(\w+) = ", "\n".join(self.data))
        made = _block([f"global {', '.join(names)}"] * bool(names) + self.data, 4)
        data = f'def arguments():\n    """Makes the arguments of calls."""\n{made}'
        trailer = TRAILER.format(how=how)
        return f'"""{says}"""\n{self.preamble()}\n\n{data}\n\n{self._model()}{trailer}'


def _block(lines: list[str], indent: int) -> str:
    return "".join(" " * indent + line + "\n" for line in lines)
