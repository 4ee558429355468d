"""Functions of one tensor, element by element: rule, class and function from one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._core import DTypeError, float32
from ..errors import called
from ..shown import misgiven
from ..tensor import Tensor
from ..tensor.arrays import operand
from ..tensor.takers import ARRAYS
from . import ops
from .mode import mode
from .precision import in_precision
from .rule import Rule
from .table import of_tensor, public

if TYPE_CHECKING:
    from ..tensor.takers import TensorLike

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

    def apply(x: TensorLike) -> Tensor:
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
    if isinstance(x, ARRAYS):
        return FUNCTIONS[name](operand(x, name))
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {misgiven(x)}")
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
    by what the gradient saves; None where that is constant in pieces."""

    kind: str
    doc: str
    f: str = ""
    tensor: bool = False
    operator: str = ""
    #: As in `in_precision`.
    precision: str = ""
    slope: Callable[..., Any] | None = None


#: The standard normal density at 0.
_DENSITY = 1 / math.sqrt(2 * math.pi)
#: Beyond this slopes are 0 or 1, and infinities must not be multiplied by zeros.
_FAR = 1e4


def _gelu_slope(x: Tensor) -> Tensor:
    x = x.clip(-_FAR, _FAR)
    density = (x * x * -0.5).exp() * _DENSITY
    return ((x * math.sqrt(0.5)).erf() + 1) * 0.5 + x * density


def _silu_slope(x: Tensor) -> Tensor:
    x = x.clip(-_FAR, _FAR)
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
        slope=lambda x: (x.abs() - 1) ** -0.5 * (x.abs() + 1) ** -0.5,
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
    erfc = _Row(
        "Erfc",
        "`1 - erf(x)`, accurate where it is small, too (PyTorch erfc).",
        slope=lambda x: (-x * x).exp() * (-2 / math.sqrt(math.pi)),
    )
    erfinv = _Row(
        "Erfinv",
        "The inverse of the error function (PyTorch erfinv); NaN beyond -1 and 1.",
        precision="wide",
        slope=lambda y: (y * y).exp() * (math.sqrt(math.pi) / 2),
    )
    exp = _Row("Exp", "Exponentials (ONNX Exp).", tensor=True, precision="wide", slope=lambda y: y)
    digamma = _Row(
        "Digamma",
        "The derivative of `lgamma` (PyTorch digamma); NaN at negative integers.",
        precision="wide",
        slope=lambda x: x.polygamma(1),
    )
    exp2 = _Row(
        "Exp2",
        "`2 ** x` (NumPy exp2).",
        precision="wide",
        slope=lambda y: y * math.log(2),
    )
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
    lgamma = _Row(
        "Lgamma",
        "The logarithm of the size of the gamma function (PyTorch lgamma); infinite at 0 and at "
        "negative integers.",
        precision="wide",
        slope=lambda x: x.digamma(),
    )
    log = _Row(
        "Log",
        "Natural logarithms (ONNX Log).",
        tensor=True,
        precision="wide",
        slope=lambda x: x.reciprocal(),
    )
    log10 = _Row(
        "Log10",
        "Logarithms of base 10, exact for its powers (NumPy log10).",
        precision="wide",
        slope=lambda x: (x * math.log(10)).reciprocal(),
    )
    log1p = _Row(
        "Log1p",
        "`log(1 + x)`, accurate near 0 (NumPy log1p).",
        precision="wide",
        slope=lambda x: (x + 1).reciprocal(),
    )
    log2 = _Row(
        "Log2",
        "Logarithms of base 2, exact for its powers (NumPy log2).",
        precision="wide",
        slope=lambda x: (x * math.log(2)).reciprocal(),
    )
    log_ndtr = _Row(
        "LogNdtr",
        "The logarithm of the standard normal distribution function (PyTorch special.log_ndtr), "
        "accurate in both tails.",
        precision="wide",
        slope=lambda x: (x * x * -0.5 - x.log_ndtr()).exp() * _DENSITY,
    )
    ndtr = _Row(
        "Ndtr",
        "The standard normal distribution function (PyTorch special.ndtr), accurate where it is "
        "small, too.",
        slope=lambda x: (x * x * -0.5).exp() * _DENSITY,
    )
    ndtri = _Row(
        "Ndtri",
        "The inverse of the standard normal distribution function (PyTorch special.ndtri); NaN "
        "beyond 0 and 1.",
        precision="wide",
        slope=lambda y: (y * y * 0.5).exp() / _DENSITY,
    )
    _not = _Row("Not", "Whether the element is zero, bool (ONNX Not).", "not")
    negative = _Row("Negative", "`-x` (ONNX Neg).", "neg", operator="__neg__", slope=lambda: -1.0)
    relu = _Row("ReLU", "`max(x, 0)` (ONNX Relu); NaN stays NaN.")
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
