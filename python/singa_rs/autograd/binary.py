"""Arithmetic on two operands with NumPy's broadcasting, and comparisons: one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from .._core import bool_, float32, float64
from ..errors import FOREIGN, called, reraise
from ..shown import misgiven
from ..tensor import Tensor, as_tensor
from ..tensor.arrays import operand
from ..tensor.creation import device_of
from ..tensor.dtypes import promote
from ..tensor.numbers import as_number
from . import ops
from .casting import cast
from .mode import mode
from .ops import Grads, Tensors
from .precision import in_precision
from .rule import Rule
from .scalar import to_divisor, with_number
from .table import public
from .tape import Source, edge

Function = Callable[[Any, Any], Tensor]


class Binary(Rule):
    """`f(a, b)` of two tensors; operands of other types are converted first."""

    f: str
    op: Any
    #: What the gradient needs of the operands a and b and the output y, by these letters.
    saves = ""
    #: The gradients of the operands before they are summed, as methods.
    to_a: Callable[[Any, Tensor], Tensor]
    to_b: Callable[[Any, Tensor], Tensor]
    #: The shapes of the operands, if one was broadcast.
    shapes: tuple[Any, Any] | None = None

    def __call__(self, *xs: Any) -> tuple[Tensor, ...]:
        """Runs the operation; returns the output in a tuple."""
        a, b = xs
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
            return (compute(type(self), a, b),)
        return super().__call__(*_converted(type(self), a, b))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The function of every pair of elements."""
        return self.op(a, b)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        """Notes the shapes if one is broadcast, and saves what the gradient needs."""
        self.shapes = ops.shapes_if_broadcast(xs, ys[0])
        if self.saves:
            self.saved = _SAVE[self.saves](*xs, *ys)

    def origins(self) -> list[str]:
        """The operands and the output, by the letters of `saves`."""
        return [{"a": "x0", "b": "x1", "y": "y0"}[letter] for letter in self.saves]

    def gradients(self, dys: Tensors, wanted: Any) -> Grads:
        """Each operand's gradient, summed over the axes that it was broadcast along."""
        (dy,), (a, b) = dys, self.shapes or (None, None)
        return (
            ops.reduce_to(self.to_a(dy), a) if wanted[0] else None,
            ops.reduce_to(self.to_b(dy), b) if wanted[1] else None,
        )


class Comparison(Binary):
    """A truth value for each pair. An integer and a float are compared as float64."""

    differentiable = False


#: Saves the named operands and output. Functions of their own, as every operation calls one.
_SAVE: dict[str, Callable[[Tensor, Tensor, Tensor], tuple[Any, ...]] | None] = {
    "": None,
    "ab": lambda a, b, y: (a.saved(), b.saved()),
    "by": lambda a, b, y: (b.saved(), y.saved()),
    "aby": lambda a, b, y: (a.saved(), b.saved(), y.saved()),
}


def _same(node: Binary, dy: Tensor) -> Tensor:
    return dy


def _to_base(node: Binary, dy: Tensor) -> Tensor:
    a, b = node.load(0), node.load(1)
    made = ops.mul(dy, ops.mul(b, ops.op("binary", f="pow")(a, ops.scalar_op("sub", 1)(b))))
    zero = ops.scalar_op("eq", 0)(b)  # a ** 0 is 1 for every a, also where a ** -1 is inf
    return ops.where(zero, ops.full((), 0, dy), made)


def _to_exponent(node: Binary, dy: Tensor) -> Tensor:
    a, b, y = node.load(0), node.load(1), node.load(2)
    # 0 ** b is constant for b > 0 and has no slope at 0, but falls from infinity below it.
    zero = ops.op("binary", f="and")(ops.scalar_op("eq", 0)(a), ops.scalar_op("ge", 0)(b))
    log = ops.where(zero, ops.full((), 0, a), ops.op("unary", f="log")(a))
    return ops.mul(dy, ops.mul(y, log))


def _unless_lost(mine: int, lost: str) -> Callable[[Binary, Tensor], Tensor]:
    """The gradient of operand `mine` of an extreme; equal operands share it, and each has all of it
    beside NaN, which the result then is."""

    def share(node: Binary, dy: Tensor) -> Tensor:
        own, other, none = node.load(mine), node.load(1 - mine), ops.full((), 0, dy)
        kept = ops.where(ops.op("binary", f="eq")(own, other), ops.scale(dy, 0.5), dy)
        return ops.where(ops.op("binary", f=lost)(own, other), none, kept)

    return share


def _to_modulus(node: Binary, dy: Tensor) -> Tensor:
    whole = ops.op("binary", f="floor_divide")(node.load(0), node.load(1))
    return ops.neg(ops.mul(dy, whole))


class Row(NamedTuple):
    """What a function is made of: its documentation, its operator, its name in `tensor` if it is
    there, its gradients (none without them), what these need, and the engine's name for it, which
    is the function's unless it is given."""

    doc: str
    operator: str = ""
    tensor: str = ""
    saves: str = ""
    to_a: Callable[[Any, Tensor], Tensor] | None = None
    to_b: Callable[[Any, Tensor], Tensor] | None = None
    f: str = ""


#: Python's names of the operators in the table.
ARITHMETIC = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"
}  # fmt: skip
COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
BITWISE = {"&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift"}

#: The table: each row becomes a class and a function of `autograd`, by these names, and what its
#: operator and its name in `tensor` say.
ROWS = {
    ("Add", "add"): Row("`a + b` (ONNX Add).", "+", "add", "", _same, _same),
    ("Sub", "sub"): Row("`a - b` (ONNX Sub).", "-", "sub", "", _same, lambda node, dy: ops.neg(dy)),
    ("Mul", "mul"): Row(
        "`a * b` (ONNX Mul).",
        "*",
        "eltwise_mult",
        "ab",
        lambda node, dy: ops.mul(dy, node.load(1)),
        lambda node, dy: ops.mul(dy, node.load(0)),
    ),
    ("Div", "div"): Row(
        "`a / b` (ONNX Div); integers are divided as float32.",
        "/",
        "div",
        "by",
        lambda node, dy: ops.div(dy, node.load(0)),
        to_divisor,
    ),
    ("Pow", "pow"): Row("`a ** b` (ONNX Pow).", "**", "", "aby", _to_base, _to_exponent),
    ("Maximum", "maximum"): Row(
        "The larger of each pair; NaN wins (NumPy maximum). Equal ones share the gradient.",
        saves="ab",
        to_a=_unless_lost(0, "lt"),
        to_b=_unless_lost(1, "lt"),
    ),
    ("Minimum", "minimum"): Row(
        "The smaller of each pair; NaN wins (NumPy minimum). Equal ones share the gradient.",
        saves="ab",
        to_a=_unless_lost(0, "gt"),
        to_b=_unless_lost(1, "gt"),
    ),
    ("Remainder", "remainder"): Row(
        "`a - floor(a / b) * b`, with the sign of `b` (NumPy remainder).",
        "%",
        "",
        "ab",
        _same,
        _to_modulus,
    ),
    ("FloorDivide", "floor_divide"): Row(
        "`floor(a / b)` (NumPy floor_divide); it has no gradient.", "//"
    ),
    ("Less", "less"): Row("`a < b`, bool (ONNX Less).", "<", "lt", f="lt"),
    ("LessEqual", "less_equal"): Row("`a <= b`, bool (ONNX LessOrEqual).", "<=", "le", f="le"),
    ("Greater", "greater"): Row("`a > b`, bool (ONNX Greater).", ">", "gt", f="gt"),
    ("GreaterEqual", "greater_equal"): Row(
        "`a >= b`, bool (ONNX GreaterOrEqual).", ">=", "ge", f="ge"
    ),
    ("Equal", "equal"): Row("`a == b`, bool (ONNX Equal).", "==", "eq", f="eq"),
    ("NotEqual", "not_equal"): Row("`a != b`, bool (NumPy not_equal).", "!=", "", f="ne"),
    ("And", "_and"): Row("Whether both are non-zero, bool (ONNX And).", f="and"),
    ("Or", "_or"): Row("Whether one is non-zero, bool (ONNX Or).", f="or"),
    ("Xor", "_xor"): Row("Whether exactly one is non-zero, bool (ONNX Xor).", f="xor"),
    ("BitwiseAnd", "bitwise_and"): Row(
        "The bits that both integers have; of bools, whether both hold (ONNX BitwiseAnd).", "&"
    ),
    ("BitwiseOr", "bitwise_or"): Row(
        "The bits that one of two integers has; of bools, whether one holds (ONNX BitwiseOr).", "|"
    ),
    ("BitwiseXor", "bitwise_xor"): Row(
        "The bits that exactly one integer has; of bools, whether one holds (ONNX BitwiseXor).", "^"
    ),
    ("LeftShift", "left_shift"): Row(
        "The bits of `a` moved up by `b` (NumPy left_shift): beyond their number none is left.",
        "<<",
    ),
    ("RightShift", "right_shift"): Row(
        "The bits of `a` moved down by `b` (NumPy right_shift): beyond their number the sign is.",
        ">>",
    ),
}


def _make_class(kind: str, name: str, row: Row) -> type[Binary]:
    base = Comparison if row.f else Binary
    f = row.f or name
    body = {"f": f, "op": ops.op("binary", f=f), "saves": row.saves, "__doc__": row.doc}
    body |= {"differentiable": row.to_a is not None, "to_a": row.to_a, "to_b": row.to_b}
    return type(kind, (base,), {**body, "__module__": __package__})


def _make_function(cls: type[Binary]) -> Function:
    """The fast path of `cls()(a, b)[0]` for two tensors that the engine takes as they are."""
    op, new, save, is_flat = cls.op, object.__new__, _SAVE[cls.saves], not cls.differentiable
    counts = cls.f in ("add", "mul")  # of bools, for which the engine would return bools

    def function(a: Any, b: Any) -> Tensor:
        if type(a) is not Tensor or type(b) is not Tensor:
            return compute(cls, a, b)
        try:
            y = op(a, b)
        except TypeError:
            return compute(cls, a, b)
        if counts and y.dtype is bool_:
            return compute(cls, a, b)
        tape = mode.tape
        if is_flat or tape and not a.requires_grad and not b.requires_grad:
            y.requires_grad = False
            if tape is True:
                y._source = Source(new(cls), 0, (ref(a), ref(b)))
        elif tape:
            node = new(cls)
            shapes = (a.shape, b.shape)
            if shapes[0] != shapes[1]:
                node.shapes = shapes
            if save is not None:
                node.saved = save(a, b, y)
            node.edges = (edge(a), edge(b))
            y._creator = node
            if tape is not True:
                tape.note(node, (y,))
        return y

    return function


def compute(cls: type[Binary], a: Any, b: Any) -> Tensor:
    """`cls` of two operands, one of which may be a number or an array."""
    if cls.f in _OF_BOOLS and not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        to = device_of((a, b))  # True and False are bools, not integers
        a, b = (as_tensor(x, to) if isinstance(x, (bool, np.bool_)) else x for x in (a, b))
    try:
        if isinstance(a, Tensor):
            number = b if type(b) in (float, int) else as_number(b)
            if number is not None:
                return with_number(cls.f, a, number, False)
        elif isinstance(b, Tensor):
            number = as_number(a)
            if number is not None:
                return with_number(cls.f, b, number, True)
        return cls()(_operand(cls, a, b), _operand(cls, b, a))[0]
    except FOREIGN as error:
        reraise(cls.f, compute, (cls, a, b), {}, error)


def _operand(cls: type[Binary], x: Any, other: Any) -> Tensor:
    """`x` as a tensor; an array of floats takes the dtype of the other operand, if of floats."""
    if isinstance(x, Tensor):
        return x
    if not isinstance(x, (np.ndarray, list, tuple)) and as_number(x) is None:
        raise TypeError(f"{cls.f}: {misgiven(x, 'a Tensor, a number or an array')}")
    return operand(x, cls.f, (other,))


#: Functions that make bools of bools.
_OF_BOOLS = {"maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}


def _converted(cls: type[Binary], a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands in the dtype that they are computed in."""
    have, other = a.dtype, b.dtype
    if have == other == bool_ and cls.f in _OF_BOOLS:
        return a, b
    if issubclass(cls, Comparison):
        mixed = have.is_float != other.is_float
        want = have if have == other else float64 if mixed else promote(have, other)
    else:
        want = promote(have, other)
        want = float32 if cls.f == "div" and not want.is_float else want
    return cast(a, want), cast(b, want)


FUNCTIONS: dict[str, Function] = {}
CLASSES: dict[str, type[Binary]] = {}
for (_kind, _name), _row in ROWS.items():
    CLASSES[_kind] = _make_class(_kind, _name, _row)
    _doc = f"{_row.doc}\n\n    Numbers, arrays and other dtypes are converted first."
    _made = called(_make_function(CLASSES[_kind]), _name, _doc, __package__)
    FUNCTIONS[_name] = in_precision(_made, "wide") if _name == "pow" else _made
    public(CLASSES[_kind], quiet=True)(FUNCTIONS[_name])
