"""`Module.tap`: reading a value inside a step."""

from __future__ import annotations

from typing import Any

from .layer.base import Layer
from .layer.check import flag
from .layer.collect import below
from .layer.tree import join
from .record import Tap, Taps
from .tensor import Tensor


class Tappable(Layer):
    """A module's part that deals with taps."""

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

        What is tapped outlives its step, as a result does; all else keeps its lifetime. A step
        recorded with other taps is another graph, and without any it is as if there never were
        one.

        Args:
            what: the path of a layer below this module, or the layer: what its last call in a
                step answers. A parameter, or its name: its gradient. Within a step, a tensor that
                the step has made.
            name: that of a tensor's tap; the tensor's own by default.
            value: whether the value itself is kept.
            grad: whether its gradient is kept. It is None where backward does not come by.

        Raises:
            ValueError: there is no such layer or parameter (before a first call, those that it
                would make are not known), a tensor has no name, or nothing is to be kept.
            TypeError: what is no name, layer or tensor.
        """
        if name is not None and not isinstance(name, str):
            raise TypeError(f"tap: got {name!r} for the name, want a str")
        value, grad = flag(value, "tap: value"), flag(grad, "tap: grad")
        if not (value or grad):
            raise ValueError("tap: got value=False and grad=False, want one of them at least")
        if isinstance(what, Tensor) and not what.stores_grad:
            known = name or what._name
            if known is None:
                raise ValueError(f"tap: got {what!r} without a name, want tap(tensor, name)")
            return self._taps.at(what, known, value, grad)
        path, found = self._tapped(what)
        if isinstance(found, Tensor):
            return self._taps.of_parameter(found, path)
        return self._taps.of_layer(found._node, path, value, grad)

    @property
    def taps(self) -> dict[str, Tap]:
        """The taps of this module, by name."""
        return dict(self._taps.by_name)

    def _tapped(self, what: Any) -> tuple[str, Layer | Tensor]:
        """The name and the layer or parameter that is meant."""
        if not isinstance(what, (str, Layer, Tensor)):
            raise TypeError(f"tap: got {type(what).__name__}, want a name, a Layer or a Tensor")
        inside = join(self._node.path, "")
        named: dict[str, Any] = {one._node.path.removeprefix(inside): one for one in below(self)}
        named |= {name.removeprefix(inside): one for name, one in self.get_params().items()}
        for name, one in named.items():
            if one is what or name == what:
                return name, one
        names = ", ".join(sorted(filter(None, named)))
        raise ValueError(f"tap: got {what!r}, want one of {names}")
