"""The graph of a net: its layers, which of them reads which output, and their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ... import device
from ...errors import ShapeError
from ...layer.base import Layer as Base
from ...layer.tree import hold
from ...record import note_change
from ...tensor import Tensor
from ..layer import Layer, ParamSpec
from ..layer.base import sample_shapes


class Source(NamedTuple):
    """An output of a layer that another one reads."""

    layer: str
    output: int


class Structure(Base):
    """The layers of a net, in the order in which they were added."""

    _unwatched = Base._unwatched | {"layers", "_named"}

    def __init__(self) -> None:
        super().__init__()
        self.layers: list[Layer] = []
        self._named: dict[str, Layer] = {}
        #: What each layer reads from others, in order, by its name.
        self._sources: dict[str, list[Source]] = {}
        #: The shapes of samples of each layer's outputs.
        self._shapes: dict[str, list[tuple[int, ...]]] = {}
        #: How many of these have a reader.
        self._taken: dict[str, int] = {}

    def _watched(self) -> Iterator[tuple[str, Any]]:
        """What a recorded step may read: the layers one by one, however many there are."""
        yield from super()._watched()
        yield "layers", ", ".join(layer.name for layer in self.layers)
        for layer in self.layers:
            yield layer.name, layer

    def add(self, lyr: Layer, src: Layer | Sequence[Layer] | None = None) -> Layer:
        """Adds a layer, and sets it up by the shapes of what it reads.

        Args:
            lyr: the layer.
            src: the layers whose outputs it reads, each the next one that has no reader yet; the
                layer added last by default. With `[]` it reads what the net is given.

        Returns:
            The layer.

        Raises:
            TypeError: not a layer of `compat.layer`.
            ValueError: a name that another layer has; a source that is not in the net, or whose
                outputs all have readers; a layer that reads nothing, without the shape of a sample.
            ShapeError: shapes that the layer cannot take.
        """
        self._check_new(lyr)
        sources = self._found(lyr, self._given(lyr, src))
        shapes = [self._shapes[one.layer][one.output] for one in sources]
        self._set_up(lyr, shapes)
        outputs = sample_shapes(lyr.get_output_sample_shape(), f"add: {lyr.name}")
        self.layers.append(lyr)
        hold(lyr, self)
        note_change()
        self._named[lyr.name] = lyr
        self._sources[lyr.name], self._shapes[lyr.name] = sources, outputs
        self._taken[lyr.name] = 0
        for one in sources:
            self._taken[one.layer] += 1
        return lyr

    def _check_new(self, lyr: Any) -> None:
        if not isinstance(lyr, Layer):
            kind = type(lyr)
            raise TypeError(
                f"add: got {kind.__module__}.{kind.__name__}, want a layer of compat.layer"
            )
        if lyr.name in self._sources:
            raise ValueError(f"add: got a second layer named {lyr.name!r}, want another name")

    def _given(self, lyr: Layer, src: Any) -> list[Layer]:
        if src is None:
            return self.layers[-1:]
        given = [src] if isinstance(src, Layer) else src
        if not isinstance(given, (list, tuple)) or not all(isinstance(s, Layer) for s in given):
            raise TypeError(f"add: {lyr.name}: got {src!r} for src, want a layer or a list of them")
        return list(given)

    def _found(self, lyr: Layer, given: list[Layer]) -> list[Source]:
        """The next output of each source that has no reader."""
        found: list[Source] = []
        for source in given:
            if self._named.get(source.name) is not source:
                raise ValueError(f"add: {lyr.name}: its source {source.name!r} is not in the net")
            here = sum(one.layer == source.name for one in found)
            output, all_ = self._taken[source.name] + here, len(self._shapes[source.name])
            if output >= all_:
                what = f"all {all_} outputs of {source.name!r}" if all_ > 1 else repr(source.name)
                raise ValueError(f"add: {lyr.name}: {what} already have a reader; add a Split")
            found.append(Source(source.name, output))
        return found

    @staticmethod
    def _set_up(lyr: Layer, shapes: list[tuple[int, ...]]) -> None:
        if lyr.has_setup:
            return
        if not shapes:
            raise ValueError(f"add: {lyr.name} reads nothing; give it input_sample_shape")
        lyr.setup(shapes[0] if len(shapes) == 1 else shapes)

    # ---- order -----------------------------------------------------------------------------------

    @property
    def src_of_layer(self) -> dict[str, list[Layer]]:
        """The layers that each layer reads from, by its name."""
        pairs = self._sources.items()
        return {name: [self._named[one.layer] for one in sources] for name, sources in pairs}

    @property
    def dst_of_layer(self) -> dict[str, list[Layer]]:
        """The layers that read from each layer, by its name."""
        found: dict[str, list[Layer]] = {layer.name: [] for layer in self.layers}
        for layer in self.layers:
            for source in self._sources[layer.name]:
                found[source.layer].append(layer)
        return found

    @property
    def out_sample_shape_of_layer(self) -> dict[str, list[tuple[int, ...]]]:
        """The shapes of samples of each layer's outputs, by its name."""
        return {name: list(shapes) for name, shapes in self._shapes.items()}

    @property
    def ordered_layers(self) -> list[Layer]:
        """The layers in the order in which they run: as they were added, each after those that it
        reads from."""
        return self.layers

    @staticmethod
    def topo_sort(
        layers: Sequence[Layer], src_of_layer: Mapping[str, Sequence[Layer]]
    ) -> list[Layer]:
        """The layers, each after those that it reads from, otherwise in the order given.

        Raises:
            ValueError: layers that read from each other in a circle, or from one not among them.
        """
        order: list[Layer] = []
        done: set[str] = set()
        left = list(layers)
        while left:
            ready = [one for one in left if all(s.name in done for s in src_of_layer[one.name])]
            if not ready:
                names = ", ".join(one.name for one in left)
                raise ValueError(f"topo_sort: {names} read from each other, or from another net")
            order.append(ready[0])
            done.add(ready[0].name)
            left.remove(ready[0])
        return order

    def _layer(self, name: Any, argument: str) -> str:
        """A layer's name."""
        if name not in self._sources:
            known = ", ".join(self._sources)
            raise ValueError(f"{argument}: got {name!r}, want one of the layers: {known}")
        return str(name)

    # ---- parameters ------------------------------------------------------------------------------

    def param_names(self) -> list[str]:
        """The names of all parameters, in the order of the layers."""
        return [name for layer in self.layers for name in layer.param_names()]

    def param_values(self) -> list[Tensor]:
        """The parameters, in the order of `param_names`: the tensors themselves."""
        return [value for layer in self.layers for value in layer.param_values()]

    def param_specs(self) -> list[ParamSpec]:
        """How each parameter begins and is trained, in the order of `param_names`."""
        return [spec for layer in self.layers for spec in layer.param_specs]

    def get_params(self) -> dict[str, Tensor]:
        """The parameters that are trained, by name."""
        return {name: value for name, value in self.get_states().items() if value.stores_grad}

    def get_states(self) -> dict[str, Tensor]:
        """All parameters, by name.

        Raises:
            ShapeError: two of them have one name.
        """
        names, values = self.param_names(), self.param_values()
        made = dict(zip(names, values, strict=True))
        if len(made) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ShapeError(f"get_states: two parameters are named {twice!r}")
        return made

    @property
    def device(self) -> device.Device:
        """Where the parameters are; the default device if there are none."""
        values = self.param_values()
        return values[0].device if values else device.get_default_device()

    def to_device(self, dev: device.Device) -> None:
        """Moves all parameters, in place."""
        for layer in self.layers:
            layer.to_device(dev)
