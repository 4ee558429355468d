"""`Module.tap`: reading a value inside a step."""

from __future__ import annotations

from typing import Any

from ..layer.base import Layer
from ..layer.check import flag
from ..layer.collect import below
from ..layer.tree import join
from ..record import Tap, Taps
from ..tensor import Tensor


class Tappable(Layer):
    """The part of a module that handles taps."""

    _taps: Taps

    def tap(
        self,
        what: str | Layer | Tensor,
        name: str | None = None,
        *,
        value: bool = True,
        grad: bool = False,
    ) -> Tap:
        """Makes a value inside a step readable after each step, eager or replayed.

            with model.tap("conv1", grad=True) as tap:
                model(x, y)
                tap.value, tap.grad

        A tapped value outlives its step, as a result does; other values keep their lifetimes. Each
        set of taps has graphs of its own, and a removed tap leaves no trace in later steps.

        Args:
            what: the path of a layer below this module, or the layer: taps the result of its last
                call in a step. A parameter, or its name: taps its gradient. Within a step, a
                tensor that the step has made.
            name: the name of a tensor's tap; the tensor's own name by default.
            value: whether the value itself is kept.
            grad: whether its gradient is kept. It is None if backward does not reach the tensor.

        Raises:
            ValueError: there is no such layer or parameter (those that the first call creates are
                unknown before it), a tensor has no name, or nothing is to be kept.
            TypeError: not a name, layer or tensor.
        """
        if name is not None and not isinstance(name, str):
            raise TypeError(f"tap: got {name!r} for the name, want a str")
        value, grad = flag(value, "tap: value"), flag(grad, "tap: grad")
        if not (value or grad):
            raise ValueError("tap: got value=False and grad=False, want at least one of them")
        if isinstance(what, Tensor) and not what.stores_grad:
            known = name or what._name
            if known is None:
                raise ValueError(f"tap: got {what!r}, which has no name, want tap(tensor, name)")
            return self._taps.at(what, known, value, grad)
        path, found = self._tapped(what)
        if isinstance(found, Tensor):
            return self._taps.of_parameter(found, path)
        return self._taps.of_layer(found._layer_node, path, value, grad)

    @property
    def taps(self) -> dict[str, Tap]:
        """The taps of this module, by name."""
        return dict(self._taps.by_name)

    def _tapped(self, what: Any) -> tuple[str, Layer | Tensor]:
        """The name of a layer or parameter, and the layer or parameter itself."""
        if not isinstance(what, (str, Layer, Tensor)):
            raise TypeError(f"tap: got {type(what).__name__}, want a name, a Layer or a Tensor")
        inside = join(self._layer_node.path, "")
        named: dict[str, Any] = {
            one._layer_node.path.removeprefix(inside): one for one in below(self)
        }
        named |= {name.removeprefix(inside): one for name, one in self.get_params().items()}
        for name, one in named.items():
            if one is what or name == what:
                return name, one
        names = ", ".join(sorted(filter(None, named)))
        raise ValueError(f"tap: got {what!r}, want one of {names}")
