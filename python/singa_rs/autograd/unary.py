"""Functions of one tensor, element by element: rule, class and function from one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _core
from .._core import DTypeError, float32
from ..errors import called
from ..tensor import Tensor
from ..tensor.numbers import real
from . import ops
from .mode import mode
from .precision import in_precision
from .rule import Rule, function
from .table import of_tensor, public

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
            if x.dtype.is_storage:
                raise
            return self.op(ops.cast(x, float32))

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        """Saves the input or the output."""
        if self.saves is not None:
            self.save(xs[0] if self.saves == "x" else ys[0])

    def origins(self) -> list[str]:
        """The input or the output."""
        return [] if self.saves is None else [f"{self.saves}0"]

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
    if x.dtype.is_float or x.dtype.is_storage:
        cls.op(x)  # raises the same error again
    return cls()(_as_float(x))[0]


def _as_float(x: Tensor) -> Tensor:
    made = ops.cast(x, float32)
    made.requires_grad = x.requires_grad
    return made


class _Row(NamedTuple):
    """What a function is made of: its class, its docstring, the engine's name for it, which is the
    function's unless it is given, whether `tensor` has it, too, its operator, and its derivative,
    by what the gradient saves; None where it is 0."""

    kind: str
    doc: str
    f: str = ""
    tensor: bool = False
    operator: str = ""
    #: As in `in_precision`.
    precision: str = ""
    slope: Callable[..., Any] | None = None


def _gelu_slope(x: Tensor) -> Tensor:
    density = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
    return ((x * math.sqrt(0.5)).erf() + 1) * 0.5 + x * density


def _silu_slope(x: Tensor) -> Tensor:
    y = x.sigmoid()
    return y * (1 + x * (1 - y))


class Elementwise:
    """The table: each row becomes a class and a function of `autograd`, and a method of tensors
    unless its name is private."""

    abs = _Row(
        "Abs",
        "Absolute values (ONNX Abs); the gradient at 0 is 0.",
        tensor=True,
        operator="__abs__",
        slope=lambda x: x.sign(),
    )
    acos = _Row(
        "Acos",
        "Inverse cosines (ONNX Acos).",
        precision="wide",
        slope=lambda x: -(((1 - x) * (1 + x)) ** -0.5),
    )
    acosh = _Row(
        "Acosh",
        "Inverse hyperbolic cosines (ONNX Acosh).",
        slope=lambda x: (x - 1) ** -0.5 * (x + 1) ** -0.5,
    )
    asin = _Row(
        "Asin",
        "Inverse sines (ONNX Asin).",
        precision="wide",
        slope=lambda x: ((1 - x) * (1 + x)) ** -0.5,
    )
    asinh = _Row(
        "Asinh", "Inverse hyperbolic sines (ONNX Asinh).", slope=lambda x: (x * x + 1) ** -0.5
    )
    atan = _Row("Atan", "Inverse tangents (ONNX Atan).", slope=lambda x: (x * x + 1).reciprocal())
    atanh = _Row(
        "Atanh",
        "Inverse hyperbolic tangents (ONNX Atanh).",
        slope=lambda x: ((1 - x) * (1 + x)).reciprocal(),
    )
    ceil = _Row("Ceil", "Rounds up (ONNX Ceil); the gradient is 0.", tensor=True)
    cos = _Row("Cos", "Cosines (ONNX Cos).", slope=lambda x: -x.sin())
    cosh = _Row(
        "Cosh", "Hyperbolic cosines (ONNX Cosh).", precision="wide", slope=lambda x: x.sinh()
    )
    erf = _Row(
        "Erf",
        "The error function (ONNX Erf).",
        slope=lambda x: (-x * x).exp() * (2 / math.sqrt(math.pi)),
    )
    exp = _Row("Exp", "Exponentials (ONNX Exp).", tensor=True, precision="wide", slope=lambda y: y)
    expm1 = _Row(
        "Expm1",
        "`exp(x) - 1`, accurate near 0 (NumPy expm1).",
        precision="wide",
        slope=lambda x: x.exp(),
    )
    floor = _Row("Floor", "Rounds down (ONNX Floor); the gradient is 0.")
    gelu = _Row(
        "GELU", "`x * Phi(x)` with the exact normal distribution (ONNX Gelu).", slope=_gelu_slope
    )
    log = _Row(
        "Log",
        "Natural logarithms (ONNX Log).",
        tensor=True,
        precision="wide",
        slope=lambda x: x.reciprocal(),
    )
    _not = _Row("Not", "Whether the element is zero, bool (ONNX Not).", "not")
    negative = _Row("Negative", "`-x` (ONNX Neg).", "neg", operator="__neg__", slope=lambda: -1.0)
    relu = _Row(
        "ReLU",
        "`max(x, 0)` (ONNX Relu); NaN stays NaN.",
        slope=lambda y: 1 - ops.cast(y <= 0, y.dtype),
    )
    reciprocal = _Row(
        "Reciprocal", "`1 / x` (ONNX Reciprocal).", precision="wide", slope=lambda y: -y * y
    )
    round = _Row("Round", "Rounds half away from zero (SINGA Round); the gradient is 0.")
    rounde = _Row("Rounde", "Rounds half to even (ONNX Round); the gradient is 0.")
    silu = _Row("SiLU", "`x * sigmoid(x)` (ONNX Swish).", slope=_silu_slope)
    sigmoid = _Row(
        "Sigmoid", "`1 / (1 + exp(-x))` (ONNX Sigmoid).", tensor=True, slope=lambda y: y * (1 - y)
    )
    sign = _Row("Sign", "-1, 0 or 1 (ONNX Sign); the gradient is 0.", tensor=True)
    sin = _Row("Sin", "Sines (ONNX Sin).", slope=lambda x: x.cos())
    sinh = _Row("Sinh", "Hyperbolic sines (ONNX Sinh).", precision="wide", slope=lambda x: x.cosh())
    softplus = _Row(
        "SoftPlus",
        "`log(1 + exp(x))` without overflow (ONNX Softplus).",
        precision="wide",
        slope=lambda y: -(-y).expm1(),
    )
    softsign = _Row(
        "SoftSign", "`x / (1 + |x|)` (ONNX Softsign).", slope=lambda x: (x.abs() + 1) ** -2.0
    )
    sqrt = _Row("Sqrt", "Square roots (ONNX Sqrt).", tensor=True, slope=lambda y: 0.5 / y)
    square = _Row("Square", "`x * x` (SINGA square).", tensor=True, slope=lambda x: x * 2)
    tan = _Row("Tan", "Tangents (ONNX Tan).", precision="wide", slope=lambda y: y * y + 1)
    tanh = _Row(
        "Tanh", "Hyperbolic tangents (ONNX Tanh).", tensor=True, slope=lambda y: (1 - y) * (1 + y)
    )


FUNCTIONS: dict[str, Function] = {}
#: By the engine's names: the functions, and their derivatives.
BY_ENGINE: dict[str, tuple[Function, Callable[..., Any] | None]] = {}


def _enter(name: str, row: _Row) -> None:
    """Makes what a row describes, and enters it into the table of public names."""
    cls = _make_class(row.kind, row.f or name, row.doc)
    function = _make_function(cls, name, row.doc)
    if row.precision:
        function = in_precision(function, row.precision)
    FUNCTIONS[name] = function
    BY_ENGINE[row.f or name] = function, row.slope
    methods = row.operator if name.startswith("_") else f"{name} {row.operator}"
    public(cls, methods=methods, quiet=True)(function)
    if row.tensor:

        def of_t(t: Tensor) -> Tensor:
            return getattr(t, name)()

        of_tensor(of_t, name, row.doc)


for _name, _row in list(vars(Elementwise).items()):
    if isinstance(_row, _Row):
        _enter(_name, _row)


class _Parametrised(Unary):
    """A function with parameters, which are attributes of the instance."""

    tag: str

    def slope(self, saved: Tensor) -> Tensor:
        """The derivative, by what the gradient saves."""
        raise NotImplementedError

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


def _chosen(condition: Tensor, one: Any, other: Any, like: Tensor) -> Tensor:
    """One or the other, numbers or tensors, in the dtype of `like`."""
    flags = ops.cast(condition, like.dtype)
    return flags * one + (1 - flags) * other


class LeakyRelu(_Parametrised):
    """`x` where it is positive, else `a * x` (ONNX LeakyRelu)."""

    tag = "leakyrelu"

    def __init__(self, a: float = 0.01) -> None:
        self._prepare(a=a)

    def slope(self, saved: Tensor) -> Tensor:
        return _chosen(saved > 0, 1.0, self.a, saved)


class Elu(_Parametrised):
    """`x` where it is positive, else `alpha * (exp(x) - 1)` (ONNX Elu)."""

    tag = "elu"

    def __init__(self, alpha: float = 1.0) -> None:
        self._prepare(alpha=alpha)

    def slope(self, saved: Tensor) -> Tensor:
        below = saved + self.alpha if self.saves == "y" else saved.exp() * self.alpha
        return _chosen(saved > 0, 1.0, below, saved)


class SeLU(_Parametrised):
    """`gamma * x` where it is positive, else `gamma * alpha * (exp(x) - 1)` (ONNX Selu)."""

    tag = "selu"

    def __init__(self, alpha: float = 1.67326, gamma: float = 1.0507) -> None:
        self._prepare(alpha=alpha, gamma=gamma)

    def slope(self, saved: Tensor) -> Tensor:
        rate = self.gamma * self.alpha
        below = saved + rate if self.saves == "y" else saved.exp() * rate
        return _chosen(saved > 0, self.gamma, below, saved)


class HardSigmoid(_Parametrised):
    """`min(max(alpha * x + gamma, 0), 1)` (ONNX HardSigmoid); no gradient at both ends."""

    tag = "hardsigmoid"

    def __init__(self, alpha: float = 0.2, gamma: float = 0.5) -> None:
        self._prepare(alpha=alpha, gamma=gamma)

    def slope(self, saved: Tensor) -> Tensor:
        return _chosen((saved > 0) & (saved < 1), self.alpha, 0.0, saved)


class Clip(_Parametrised):
    """`min(max(x, min), max)`; a bound that is None does not bind (ONNX Clip)."""

    tag = "clip"

    def __init__(self, min: float | None = None, max: float | None = None) -> None:
        self._prepare(min=min, max=max)

    def slope(self, saved: Tensor) -> Tensor:
        low, high = (-math.inf if self.min is None else self.min, self.max)
        is_inside = (saved >= low) & (saved <= (math.inf if high is None else high))
        return _chosen(is_inside, 1.0, 0.0, saved)


#: By the engine's names.
PARAMETRISED = {rule.tag: rule for rule in (LeakyRelu, Elu, SeLU, HardSigmoid, Clip)}
for _tag, _rule in PARAMETRISED.items():
    function(_rule, _tag, methods=_tag)
