"""Operations of this package: how they compute, what backward needs, and their gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from ..compat.raw import raw_if
from ..errors import called
from ..tensor import Tensor
from ..tensor.arrays import operands
from .mode import mode
from .ops import Tensors
from .precision import rounded_once
from .table import public
from .tape import Operator, alive, record, stale

if TYPE_CHECKING:
    from ..tensor.takers import TensorLike

_P = ParamSpec("_P")
_PACKAGE = f"{__name__.partition('.')[0]}."


def _is_ours(method: Any) -> bool:
    return str(getattr(method, "__module__", "")).startswith(_PACKAGE)


class Rule(Operator):
    """An operation of this package: `forward` computes, `keep` saves what backward needs, and
    `gradients` computes the gradients. All three call the engine directly, bypassing the tape."""

    lasts = True
    #: What `keep` saves: the inputs, "xs", the outputs, "ys", or one of them, "x0", "y0", ...;
    #: attributes that `forward` has set.
    keeps: tuple[str, ...] = ()
    #: Those of them through which no gradient flows, such as targets and indices.
    constants: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A class with a `forward` or `backward` of a program's is one of the program's."""
        super().__init_subclass__(**kwargs)
        forward, backward = (_is_ours(method) for method in (cls.forward, cls.backward))
        cls.differentiable = cls.differentiable or not backward
        if (forward and backward) or cls.__call__ is Operator.__call__:
            return
        cls._ruled, cls.gradients, keep = cls.gradients, Operator.gradients, cls.keep
        cls.__call__ = Operator.__call__

        def keep_found(self: Rule, xs: Tensors, ys: Tensors) -> None:
            with suppress(LookupError, TypeError, ValueError):  # of a `forward` without `super()`
                keep(self, xs, ys)

        cls.keep = keep_found

    def forward(self, *xs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The outputs."""
        raise NotImplementedError

    def keep(self, xs: Tensors, ys: Tensors) -> None:
        """Saves what `gradients` needs."""
        given, found = {"xs": xs, "ys": ys}, []
        for name in self.keeps:
            if name in given:
                found += given[name]
            elif name[1:].isdecimal():
                found.append(given[f"{name[0]}s"][int(name[1:])])
            else:
                value = self.__dict__.pop(name)
                found += value if isinstance(value, (tuple, list)) else (value,)
        if found:
            self.save(*found)

    def origins(self) -> Sequence[str]:
        """What each saved tensor is: an input, "x0", "x1", ...; an output, "y0", "y1", ...;
        without a gradient, "constant"; another that `forward` made, ""."""
        found = []
        for name in self.keeps:
            if name in ("xs", "ys"):
                count = len(self.edges if name == "xs" else self.metas or (None,))
                found += [f"{name[0]}{i}" for i in range(count)]
            else:
                made = "constant" if name in self.constants else ""
                found.append(name if name[1:].isdecimal() else made)
        return found

    def __call__(self, *xs: TensorLike) -> Tensors:
        """Runs the operation; returns the outputs, always as a tuple."""
        node = self if self.edges is None else self._again()
        try:
            made = node.forward(*xs)
            ys = made if type(made) is tuple else (made,)
            if mode.tape:
                record(node, xs, ys)
            return ys
        except (TypeError, AttributeError):
            given = operands(xs, type(self).__name__)
            if given is xs:
                raise
        return self(*given)

    def backward(self, *dys: Tensor) -> Any:
        """The gradients of all inputs, when called by hand: one, or a tuple in their order; raw
        tensors if `dys` are."""
        alive(self)
        made = raw_if(self._ruled(dys, (True,) * len(self.edges)), dys)
        return made[0] if len(made) == 1 else made

    def _ruled(self, dys: Tensors, wanted: Sequence[bool]) -> Any:
        """The gradients by this package's rule."""
        return self.gradients(dys, wanted)

    def gradients_again(self, dys: Tensors, wanted: Sequence[bool]) -> Any:
        """As `gradients`, where these are to be differentiated: by operations whose gradients are
        right, too."""
        return self.gradients(dys, wanted)

    def save(self, *tensors: Tensor | None) -> None:
        """Keeps views of these tensors, and notes the versions of their memory."""
        self.saved = tuple([None if t is None else t.saved() for t in tensors])

    def load(self, i: int) -> Tensor:
        """Saved tensor `i`.

        Raises:
            GraphError: its memory was written since.
        """
        tensor = self.saved[i].load()
        if tensor is None:
            raise stale(self, self.saved[i].shape)
        return tensor


class KeepsShape(Rule):
    """An operation whose gradient needs its input's shape."""

    shape: tuple[int, ...]

    def keep(self, xs: Tensors, ys: Tensors) -> None:
        super().keep(xs, ys)
        self.shape = xs[0].shape


class Opaque(Rule):
    """An operation through which no gradient flows."""

    differentiable = False


def function(
    rule: Callable[_P, Rule],
    name: str,
    convert: Callable[[Tensor], Tensor] | None = None,
    methods: str = "",
    precision: str = "",
    once: bool = False,
) -> Callable[Concatenate[Tensor, _P], Tensor]:
    """The public function `rule(...)(x)[0]` of a tensor, with the rule's parameters and
    documentation, the methods it is, and its precision as in `public`. `convert` is applied to the
    tensor first. `once`: a rule of several operations, as in `rounded_once`."""

    def call(x: Tensor, *args: _P.args, **kwargs: _P.kwargs) -> Tensor:
        return rule(*args, **kwargs)(x if convert is None else convert(x))[0]

    x = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Tensor")
    given = inspect.signature(rule).parameters.values()
    call.__signature__ = inspect.Signature([x, *given], return_annotation="Tensor")
    made = called(rounded_once(call) if once else call, name, rule.__doc__, __package__)
    return public(rule, methods=methods, precision=precision)(made)
