"""Forward and backward through the graph of a net, layer by layer."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import GraphError
from ...record import is_recording
from ...tensor import Tensor
from ..layer import Layer
from ..proto.model_pb2 import is_training, kTrain
from .structure import Structure

#: What `backward` tells of each layer: the names, values and gradients of its parameters, and the
#: gradients of layers' inputs so far.
Told = tuple[list[str], list[Tensor], list[Tensor], dict[str, Any]]


class Passes(Structure):
    """The part of a net that runs its layers by hand."""

    _unwatched = Structure._unwatched | {"_fed"}
    #: How many tensors each layer was given in the last `forward`, which no later step reads.
    _fed: dict[str, int] | None = None

    def forward(
        self, flag: Any, x: Any, output: Sequence[str] = (), freeze: str | None = None
    ) -> Any:
        """Runs all layers.

        Args:
            flag: True or `kTrain` in training, False or `kEval` in evaluation.
            x: a tensor, or a tensor or a list of them by the name of each layer that reads what the
                net is given. A layer gets these before the outputs of others.
            output: names of layers whose output is returned besides.
            freeze: a layer's name; those before it run in evaluation, and have no gradients.

        Returns:
            The output that no layer reads; if there are several, or `output` has names, a
            dictionary by layer.

        Raises:
            ValueError: a name that no layer has.
            GraphError: a layer gets no input, or x is one tensor while several layers need one.
            ShapeError: a tensor that does not fit, by the layer's name.
        """
        training, wanted = is_training(flag, "forward: flag"), self._names(output, "output")
        fed = self._data(x)
        frozen = freeze is not None
        if frozen:
            self._layer(freeze, "forward: freeze")
        self._fed = {name: len(given) for name, given in fed.items()}
        outputs: dict[str, list[Tensor | None]] = {}
        found: dict[str, Any] = {}
        for layer in self.ordered_layers:
            frozen = frozen and layer.name != freeze
            inputs = fed.pop(layer.name, []) + self._read(layer.name, outputs)
            made = layer.forward(training and not frozen, _one(inputs))
            self._show(layer, made)
            outputs[layer.name] = list(made) if isinstance(made, (list, tuple)) else [made]
            if layer.name in wanted:
                found[layer.name] = made
            del inputs, made  # so that what no layer keeps is free for the next one
        found.update(self._unread(outputs))
        return next(iter(found.values())) if len(found) == 1 else found

    def _names(self, names: Any, argument: str) -> set[str]:
        if isinstance(names, str):
            raise TypeError(f"{argument}: got {names!r}, want a list of layers' names")
        return {self._layer(name, argument) for name in names}

    def _data(self, x: Any) -> dict[str, list[Tensor]]:
        """What each layer is given, by name."""
        starts = [name for name, sources in self._sources.items() if not sources]
        if not self.layers:
            raise GraphError("forward: the net has no layers")
        if isinstance(x, dict):
            named = {self._layer(name, "forward: x"): one for name, one in x.items()}
            given = {n: list(t) if isinstance(t, (list, tuple)) else [t] for n, t in named.items()}
        else:
            if not isinstance(x, Tensor):
                raise TypeError(f"forward: got {type(x).__name__}, want a Tensor or a dictionary")
            given = {starts[0]: [x]}
        missing = [name for name in starts if not given.get(name)]
        if missing:
            raise GraphError(f"forward: x has no tensor for {', '.join(missing)}; give it by name")
        return given

    def _read(self, name: str, outputs: dict[str, list[Tensor | None]]) -> list[Tensor]:
        """The outputs of others that a layer reads, which nothing else does."""
        found = []
        for source in self._sources[name]:
            made = outputs[source.layer]
            if source.output >= len(made):
                got = f"{source.layer} returned {len(made)} tensors"
                raise GraphError(f"forward: {got}, and {name} reads the one after")
            found.append(made[source.output])
            made[source.output] = None
        return found  # type: ignore[return-value]

    def _unread(self, outputs: dict[str, list[Tensor | None]]) -> dict[str, Any]:
        """The outputs that no layer has read."""
        left = {name: [t for t in made if t is not None] for name, made in outputs.items()}
        return {name: _one(made) for name, made in left.items() if made}

    def _show(self, layer: Layer, made: Any) -> None:
        """Prints the mean absolute values of a layer's output if `net.verbose` is set."""
        if not sys.modules[__package__].verbose or is_recording():
            return
        sources = "+".join(one.layer for one in self._sources[layer.name])
        found = made if isinstance(made, (list, tuple)) else [made]
        values = " ".join(f"{one.l1():f}" for one in found if isinstance(one, Tensor))
        print(f"{sources}-->{layer.name}: {values}")

    # ---- backward --------------------------------------------------------------------------------

    def backward(
        self, dy: Any, output: Sequence[str] = (), freeze: str | None = None
    ) -> Iterator[Told]:
        """Runs all layers backward, after a `forward` in training.

        A generator that goes on to the next layer when it is asked to, so that gradients may be
        applied and let go layer by layer. What a layer kept is released when it is through.

        Args:
            dy: the gradient of the net's output, or by layer's name, a tensor or a list of one for
                each output that no layer reads.
            output: names of layers the gradients of whose inputs are told.
            freeze: the last layer to run; those before it have no gradients.

        Yields:
            For each layer, the last one first: the names, values and gradients of its parameters,
            in order, and a dictionary of the gradients of layers' inputs, of those in `output` so
            far. Averages have gradients without elements.

        Raises:
            ValueError: a name that no layer has.
            GraphError: a layer whose output has no gradient, or that kept nothing in `forward`.
            ShapeError: a gradient that does not fit, by the layer's name.
        """
        wanted = self._names(output, "output")
        if freeze is not None:
            self._layer(freeze, "backward: freeze")
        seeds = self._seeds(dy)
        if self._fed is None:
            raise GraphError("backward: call forward in training first")
        return Backward(self, seeds, wanted, freeze).run()

    def _seeds(self, dy: Any) -> dict[str, list[Tensor]]:
        """The gradients that are given, by layer."""
        if isinstance(dy, dict):
            named = {self._layer(name, "backward: dy"): one for name, one in dy.items()}
            return {n: list(t) if isinstance(t, (list, tuple)) else [t] for n, t in named.items()}
        if not isinstance(dy, Tensor):
            raise TypeError(f"backward: got {type(dy).__name__}, want a Tensor or a dictionary")
        ends = [
            one.name for one in self.layers if self._taken[one.name] < len(self._shapes[one.name])
        ]
        if len(ends) != 1:
            raise GraphError(f"backward: dy: the outputs are of {', '.join(ends)}; give it by name")
        return {ends[0]: [dy]}


class Backward:
    """One run of a net's layers backward."""

    def __init__(
        self,
        net: Passes,
        seeds: dict[str, list[Tensor]],
        wanted: set[str],
        freeze: str | None,
    ) -> None:
        self.net, self.seeds, self.wanted, self.freeze = net, seeds, wanted, freeze
        self.leads = self._leading()
        #: The gradients of outputs that have a reader which is through.
        self.grads: dict[tuple[str, int], Tensor] = {}
        #: Those of layers' inputs, as far as they are wanted.
        self.told: dict[str, Any] = {}

    def run(self) -> Iterator[Told]:
        """Layer by layer. Nothing of a layer is held here once it is told."""
        for layer in reversed(self.net.ordered_layers):
            if layer.name in self.leads:
                ready = [self._through(layer)]
            else:
                layer._stretch = None
                ready = [([], [], [], self.told)]
            yield ready.pop()
            if layer.name == self.freeze:
                return

    def _through(self, layer: Layer) -> Told:
        """Runs a layer, and hands the gradients of its inputs to those that it reads."""
        name, sources = layer.name, self.net._sources[layer.name]
        layer.input_gradient = name in self.wanted or any(s.layer in self.leads for s in sources)
        try:
            dx, of_parameters = layer.backward(kTrain, _one(self._gradients(name)))
        finally:
            layer.input_gradient = True
        dxs = list(dx) if isinstance(dx, (list, tuple)) else [dx]
        given = self.net._fed.get(name, 0)
        if len(dxs) != given + len(sources):
            raise GraphError(f"backward: {name} returned {len(dxs)} gradients of its inputs")
        if name in self.wanted:
            self.told[name] = dx
        for source, one in zip(sources, dxs[given:], strict=True):
            if source.layer in self.leads:
                self.grads[source] = one
        return layer.param_names(), layer.param_values(), of_parameters, self.told

    def _gradients(self, name: str) -> list[Tensor]:
        """The gradients of a layer's outputs: of those with a reader, and behind them the others.

        Raises:
            GraphError: there is none.
        """
        found = [self.grads.pop((name, output)) for output in range(self.net._taken[name])]
        found += self.seeds.pop(name, [])
        if not found:
            raise GraphError(f"backward: the output of {name} has no gradient; give it in dy")
        return found

    def _leading(self) -> set[str]:
        """The layers that gradients have to go through: those with parameters, those of which the
        input's gradient is wanted, and all behind them."""
        leads: set[str] = set()
        is_frozen = self.freeze is not None
        for layer in self.net.ordered_layers:
            is_frozen = is_frozen and layer.name != self.freeze
            own = layer.param_values() or layer.name in self.wanted
            behind = any(one.layer in leads for one in self.net._sources[layer.name])
            if not is_frozen and (own or behind):
                leads.add(layer.name)
        return leads


def _one(found: list[Any]) -> Any:
    """The only one of several, or all in a list."""
    return found[0] if len(found) == 1 else found
