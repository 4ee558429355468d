"""Functions of one tensor, element by element: rule, class and function from one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from .. import _core
from .._core import DTypeError, float32
from ..errors import called
from ..tensor import Tensor
from ..tensor.numbers import real
from . import ops
from .mode import mode
from .rule import Rule, function

Function = Callable[[Tensor], Tensor]
#: The module in which the table's classes and functions are found.
PACKAGE = __package__


class Unary(Rule):
    """A function of one tensor. Each class defines `op`, `grad_op` and `saves`."""

    op: Any
    grad_op: Any
    #: What the gradient needs besides that of the output: "x", "y" or None.
    saves: str | None

    def forward(self, x: Tensor) -> Tensor:
        """The function of every element; integers become float32 if its values are not integers."""
        try:
            return self.op(x)
        except DTypeError:
            return self.op(ops.cast(x, float32))

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        """Saves the input or the output."""
        if self.saves is not None:
            self.save(xs[0] if self.saves == "x" else ys[0])

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`f'(x) * dy`."""
        if self.saves is None:
            return (self.grad_op(*dys),)
        return (self.grad_op(dys[0], self.load(0)),)


def _make_class(name: str, f: str, doc: str) -> type[Unary]:
    op, grad_op = ops.op("unary", f=f), ops.op("unary_grad", f=f)
    body = {"op": op, "grad_op": grad_op, "saves": _core.unary_saves(op), "__doc__": doc}
    return type(name, (Unary,), {**body, "__module__": PACKAGE})


def _make_function(cls: type[Unary], name: str, doc: str) -> Function:
    """The fast path of `cls()(x)[0]`: one call of the engine and one light node."""
    op, saves, new = cls.op, cls.saves, object.__new__

    def apply(x: Tensor) -> Tensor:
        try:
            y = op(x)
        except TypeError:
            return _unusual(cls, name, x)
        tape = mode.tape
        if tape:
            if x.requires_grad:
                node = new(cls)
                creator = x._creator
                node.edges = (x if creator is None else creator,)
                if saves is not None:
                    node.saved = ((x if saves == "x" else y).saved(),)
                y._creator = node
                if tape is not True:
                    tape.note(node, (y,))
            else:
                y.requires_grad = False
        return y

    return called(apply, name, doc, PACKAGE)


def _unusual(cls: type[Unary], name: str, x: Any) -> Tensor:
    """The slow path, for an input that the engine does not take as it is."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: got {type(x).__name__}, want a Tensor")
    if x.dtype.is_float:
        cls.op(x)  # raises the same error again
    return cls()(_as_float(x))[0]


def _as_float(x: Tensor) -> Tensor:
    made = ops.cast(x, float32)
    made.requires_grad = x.requires_grad
    return made


class _Row(NamedTuple):
    """What a function is made of: its class, its docstring, and the engine's name for it, which is
    the function's unless it is given."""

    kind: str
    doc: str
    f: str = ""


#: For type checkers, the function that takes the row's place.
_row: Callable[..., Function] = cast(Any, _Row)


class Elementwise:
    """The table: each row becomes a class and a function of `autograd`, and a method of tensors
    unless its name is private."""

    abs = _row("Abs", "Absolute values (ONNX Abs); the gradient at 0 is 0.")
    acos = _row("Acos", "Inverse cosines (ONNX Acos).")
    acosh = _row("Acosh", "Inverse hyperbolic cosines (ONNX Acosh).")
    asin = _row("Asin", "Inverse sines (ONNX Asin).")
    asinh = _row("Asinh", "Inverse hyperbolic sines (ONNX Asinh).")
    atan = _row("Atan", "Inverse tangents (ONNX Atan).")
    atanh = _row("Atanh", "Inverse hyperbolic tangents (ONNX Atanh).")
    ceil = _row("Ceil", "Rounds up (ONNX Ceil); the gradient is 0.")
    cos = _row("Cos", "Cosines (ONNX Cos).")
    cosh = _row("Cosh", "Hyperbolic cosines (ONNX Cosh).")
    erf = _row("Erf", "The error function (ONNX Erf).")
    exp = _row("Exp", "Exponentials (ONNX Exp).")
    expm1 = _row("Expm1", "`exp(x) - 1`, accurate near 0.")
    floor = _row("Floor", "Rounds down (ONNX Floor); the gradient is 0.")
    gelu = _row("GELU", "`x * Phi(x)` with the exact normal distribution (ONNX Gelu).")
    log = _row("Log", "Natural logarithms (ONNX Log).")
    _not = _row("Not", "Whether the element is zero, bool (ONNX Not).", "not")
    negative = _row("Negative", "`-x` (ONNX Neg).", "neg")
    relu = _row("ReLU", "`max(x, 0)` (ONNX Relu); NaN stays NaN.")
    reciprocal = _row("Reciprocal", "`1 / x` (ONNX Reciprocal).")
    round = _row("Round", "Rounds half away from zero (SINGA Round); the gradient is 0.")
    rounde = _row("Rounde", "Rounds half to even (ONNX Round); the gradient is 0.")
    silu = _row("SiLU", "`x * sigmoid(x)` (ONNX Swish).")
    sigmoid = _row("Sigmoid", "`1 / (1 + exp(-x))` (ONNX Sigmoid).")
    sign = _row("Sign", "-1, 0 or 1 (ONNX Sign); the gradient is 0.")
    sin = _row("Sin", "Sines (ONNX Sin).")
    sinh = _row("Sinh", "Hyperbolic sines (ONNX Sinh).")
    softplus = _row("SoftPlus", "`log(1 + exp(x))` without overflow (ONNX Softplus).")
    softsign = _row("SoftSign", "`x / (1 + |x|)` (ONNX Softsign).")
    sqrt = _row("Sqrt", "Square roots (ONNX Sqrt).")
    square = _row("Square", "`x * x` (SINGA square).")
    tan = _row("Tan", "Tangents (ONNX Tan).")
    tanh = _row("Tanh", "Hyperbolic tangents (ONNX Tanh).")


FUNCTIONS: dict[str, Function] = {}
CLASSES: dict[str, type[Unary]] = {}
for _name, _made in list(vars(Elementwise).items()):
    if isinstance(_made, _Row):
        CLASSES[_made.kind] = _make_class(_made.kind, _made.f or _name, _made.doc)
        FUNCTIONS[_name] = _make_function(CLASSES[_made.kind], _name, _made.doc)
        setattr(Elementwise, _name, FUNCTIONS[_name])
#: The names of the functions in the table.
TABLE = frozenset(FUNCTIONS)


class _Parametrised(Unary):
    """A function with parameters, which are attributes of the instance."""

    tag: str

    def __getstate__(self) -> dict[str, Any]:
        made = ("op", "grad_op", "saves")
        return {k: v for k, v in super().__getstate__().items() if k not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._prepare(**{k: v for k, v in state.items() if not k.startswith("_")})

    def _prepare(self, **params: float | None) -> None:
        numbers = tuple((k, _parameter(self.tag, k, v)) for k, v in params.items())
        self.__dict__.update(numbers)
        self.op = ops.unary_op("unary", self.tag, numbers)
        self.grad_op = ops.unary_op("unary_grad", self.tag, numbers)
        self.saves = _core.unary_saves(self.op)


def _parameter(tag: str, name: str, value: Any) -> float | None:
    """A parameter as a float, which must be exactly the number that was given."""
    made = None if value is None else real(value, f"{tag}: {name}")
    if isinstance(value, int) and made != value:
        raise ValueError(f"{tag}: {name}: got {value}, want a number that float64 holds")
    return made


class LeakyRelu(_Parametrised):
    """`x` where it is positive, else `a * x` (ONNX LeakyRelu)."""

    tag = "leakyrelu"

    def __init__(self, a: float = 0.01) -> None:
        self._prepare(a=a)


class Elu(_Parametrised):
    """`x` where it is positive, else `alpha * (exp(x) - 1)` (ONNX Elu)."""

    tag = "elu"

    def __init__(self, alpha: float = 1.0) -> None:
        self._prepare(alpha=alpha)


class SeLU(_Parametrised):
    """`gamma * x` where it is positive, else `gamma * alpha * (exp(x) - 1)` (ONNX Selu)."""

    tag = "selu"

    def __init__(self, alpha: float = 1.67326, gamma: float = 1.0507) -> None:
        self._prepare(alpha=alpha, gamma=gamma)


class HardSigmoid(_Parametrised):
    """`min(max(alpha * x + gamma, 0), 1)` (ONNX HardSigmoid); no gradient at both ends."""

    tag = "hardsigmoid"

    def __init__(self, alpha: float = 0.2, gamma: float = 0.5) -> None:
        self._prepare(alpha=alpha, gamma=gamma)


class Clip(_Parametrised):
    """`min(max(x, min), max)`; a bound that is None does not bind (ONNX Clip)."""

    tag = "clip"

    def __init__(self, min: float | None = None, max: float | None = None) -> None:
        self._prepare(min=min, max=max)


_PARAMETRISED = (LeakyRelu, Elu, SeLU, HardSigmoid, Clip)
CLASSES.update((rule.__name__, rule) for rule in _PARAMETRISED)
FUNCTIONS.update((rule.tag, function(rule, rule.tag)) for rule in _PARAMETRISED)
