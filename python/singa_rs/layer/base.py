"""Layer: lazily created parameters and states, found by name."""

from __future__ import annotations

import inspect
import sys
import weakref
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, overload

from .. import elsewhere
from ..errors import FOREIGN, DTypeError, check_flags
from ..notices import warn_user
from ..record import NOTHING, note_change, slots
from ..tensor import Tensor
from . import check, collect, text, tree
from .calls import reraise, wrap, wrap_forward, wrap_initialize
from .node import Node, now
from .tree import SEPARATOR, join, members, rename

if TYPE_CHECKING:
    from typing_extensions import Self

    from .typed import Forwards, Given, P, R


class _LayerType(ABCMeta):
    """Notes which layer's constructor makes a layer, and changes to attributes of the class. As an
    `ABCMeta` it lets programs' classes have abstract methods."""

    #: Between the parts of a name (SINGA Layer.sep). Here, so that a layer may be called so, too.
    sep = SEPARATOR
    #: That recordings need not compare the attributes of the class.
    _notes_changes = True

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any
    ) -> Any:
        # Else a class that is made by a call of `type` would be one of the module `abc`.
        namespace = {"__module__": sys._getframe(1).f_globals.get("__name__"), **namespace}
        return super().__new__(mcls, name, bases, namespace, **kwargs)

    if not TYPE_CHECKING:  # to type checkers a layer is what its constructor makes

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            layer = cls.__new__(cls, *args, **kwargs)
            if now.constructing:
                now.constructing[-1]._layer_node.unnamed.append(weakref.ref(layer))
            now.constructing.append(layer)
            try:
                check_flags(cls.__name__, cls.__init__, (layer, *args), kwargs)
                layer.__init__(*args, **kwargs)
            except FOREIGN as error:
                reraise(layer, cls.__init__, args, kwargs, error)
            finally:
                now.constructing.pop()
            return layer

    @property
    def __signature__(cls) -> inspect.Signature:
        """The constructor's, which `inspect` would not look for behind `__call__`."""
        made = inspect.signature(cls.__init__)
        return made.replace(parameters=list(made.parameters.values())[1:])

    def __setattr__(cls, name: str, value: Any) -> None:
        if cls.__dict__.get(name, cls) is not value:
            note_change()
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        note_change()
        super().__delattr__(name)


class Layer(metaclass=_LayerType):
    """A part of a model with parameters and states of its own, or other layers.

    `forward` computes; `initialize`, which gets the same arguments, creates tensors when their
    shapes are first seen: once, before the first forward, without recording gradients. It may
    also be called by hand, repeatedly if needed. Both get tensors where a call gives NumPy arrays,
    as `from_numpy` makes them, unless the parameter is declared as something else.

    Parameters are the tensor attributes with `stores_grad`, or with False in its place; states are
    these and the tensor attributes assigned outside `forward`. Layers below this one are found in
    attributes, in lists, tuples and dictionaries held by attributes, and, if only a closure holds
    them, by having been created in the constructor or called in `forward`. Names are paths in the
    outermost layer (`blk1.conv.W`, `blocks.0.W`, `Conv2d_0.W`); a lone layer's are bare (`W`).
    `name` is a layer's own path, or its class where it has none, unless it assigns something else.
    """

    _is_layer = True
    #: Set by `__new__`.
    _layer_node: Node
    _initialized: bool
    #: The attributes that a subclass keeps in slots.
    _slots: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._slots = tuple(slots(cls))
        wrap(cls, "initialize", wrap_initialize, Layer.initialize)
        wrap(cls, "forward", wrap_forward, Layer.forward)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """A layer that may be given attributes before `Layer.__init__` is called."""
        layer = super().__new__(cls)
        object.__setattr__(layer, "_layer_node", Node())
        if args or kwargs:
            layer._layer_node.arguments = text.arguments(args, kwargs)
        object.__setattr__(layer, "_initialized", False)
        return layer

    def __repr__(self) -> str:
        """The layer and those below it, with their arguments, and the shapes of their tensors."""
        try:
            return text.tree(self)
        except Exception:  # in the middle of a change; debuggers show layers there, too
            return object.__repr__(self)

    def __init__(self) -> None:
        """Does nothing: `__new__` prepares the layer."""

    @property
    def __signature__(self) -> inspect.Signature:
        """That of `forward`, which a call is passed on to."""
        return inspect.signature(self.forward)

    @overload
    def __call__(self: Forwards[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    # The same for arrays, which stand for the tensors that `forward` declares.
    @overload
    def __call__(
        self: Forwards[Concatenate[Any, P], R], x: Given, /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    def __call__(self: Forwards[[Any, Any], R], x: Given, y: Given, /) -> R: ...
    @overload
    def __call__(self: Forwards[[Any, Any, Any], R], x: Given, y: Given, z: Given, /) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls `forward`."""
        return self.forward(*args, **kwargs)

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        """Makes parameters and states. Gets the arguments of the first `forward`."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the layer's result."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(self, x)")

    def register_layers(self, *layers: Layer | Mapping[str, Layer]) -> None:
        """Names layers `<ClassName>_<index>` by their place among the arguments, or, given one
        mapping, by its keys.

        Raises:
            TypeError: a value that is not a layer.
            ValueError: a name that another layer has.
        """
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            named = dict(layers[0])
        else:
            named = {f"{type(one).__name__}_{i}": one for i, one in enumerate(layers)}  # type: ignore[misc]
        for name, child in named.items():
            self._check_registered(name, child)
        note_change()
        for name, child in named.items():
            self._layer_node.registered[name] = child
            tree.hold(child, self)

    def _check_registered(self, name: str, child: Any) -> None:
        if not isinstance(child, Layer):
            raise TypeError(f"register_layers: got {child!r} for {name!r}, want a Layer")
        if self._layer_node.registered.get(name, child) is not child:
            raise ValueError(f"register_layers: the name {name!r} belongs to another layer")

    if not TYPE_CHECKING:  # so that checkers refuse attributes that no class declares

        def __getattr__(self, name: str) -> Any:
            registered = (
                self.__dict__["_layer_node"].registered if "_layer_node" in self.__dict__ else {}
            )
            if name in registered:
                return registered[name]
            if name == "name" and not hasattr(type(self), name):  # else a slot, or it has failed
                return tree.name_of(self)
            if name == "sep":
                return SEPARATOR
            hint = elsewhere.of_layer(name, hasattr(type(self), "compile"))
            raise elsewhere.lacking(self, name, hint)

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get(name, self) is not value:  # `+=` assigns the same object again
            note_change()
            self._check_stays(name, value)
        node = self._layer_node
        is_moved = isinstance(value, Tensor) and self._moves(name, value)
        self._let_go(name)
        if name in node.registered and isinstance(value, Layer):
            node.registered[name] = value
        else:
            node.registered.pop(name, None)
            object.__setattr__(self, name, value)
        if isinstance(value, Tensor):
            if not is_moved or id(value) not in tree.Tree(tree.root_of(self)).names:
                rename(value, join(node.path, name))
            if not any(layer is self for layer in now.running):
                node.states.add(name)
        elif isinstance(value, (Layer, list, tuple, dict)):
            for _, member in members(name, value):
                if isinstance(member, Layer):
                    tree.hold(member, self)

    def __delattr__(self, name: str) -> None:
        note_change()
        self._let_go(name)
        if self._layer_node.registered.pop(name, None) is None:
            object.__delattr__(self, name)
        if not any(layer is self for layer in now.running):  # as in setting one
            self._layer_node.states.discard(name)

    def _moves(self, name: str, value: Tensor) -> bool:
        """Whether parameters of the model may have other names once a tensor is an attribute: it
        has a place already, or takes that of another, which has a second one."""
        old, path = self.__dict__.get(name), join(self._layer_node.path, name)
        if now.constructing or not value.stores_grad or old is value:
            return False
        is_tied = isinstance(old, Tensor) and "_is_tied" in old.__dict__
        return is_tied or value.__dict__.get("_path_name", path) != path

    def _check_stays(self, name: str, value: Any) -> None:
        """Warns of a plain tensor in the place of a parameter, which would be trained no more."""
        old = self.__dict__.get(name)
        is_parameter = isinstance(old, Tensor) and old.stores_grad
        if is_parameter and isinstance(value, Tensor) and not (value.stores_grad or now.running):
            warn_user(
                f"{type(self).__name__}.{name}: a tensor that stores no gradient takes the place "
                f"of a parameter, so it is not trained; want {name}.copy_from(...), or a tensor "
                "whose stores_grad is True"
            )

    def _let_go(self, name: str) -> None:
        """The layers held under a name lose their place, until they are called again."""
        held = self._layer_node.registered.get(name, self.__dict__.get(name))
        if isinstance(held, (Layer, list, tuple, dict)):
            for _, member in members(name, held):
                if isinstance(member, Layer):
                    tree.let_go(member, self)

    #: Attributes that recordings do not inspect, as others imply them.
    _unwatched = frozenset({"_layer_node"})

    def _watched(self) -> Iterator[tuple[str, Any]]:
        """What a recorded step may read: attributes, and the layers that none of them holds."""
        unwatched = self._unwatched
        for name, value in self.__dict__.items():
            if name not in unwatched:
                yield name, value
        if registered := self._layer_node.registered:
            yield from registered.items()
            yield "(order)", " ".join(registered)
        for index, child in enumerate(tree.alive(self)):
            yield f"{type(child).__name__}#{index}", child
        if self._slots:
            yield from self._in_slots()
        if self._layer_node.taps:
            yield "(taps)", tuple(self._layer_node.taps)

    def _in_slots(self) -> list[tuple[str, Any]]:
        found = [(name, getattr(self, name, NOTHING)) for name in self._slots]
        return [(name, value) for name, value in found if value is not NOTHING]

    def _remember(self) -> Callable[[bool], None]:
        """Returns a function that restores the attributes. Given True, it leaves a layer that was
        initialised meanwhile as its `initialize` left it."""
        attributes, node = dict(self.__dict__), self._layer_node
        kept = self._in_slots() if self._slots else ()
        remembered = node.remembered()
        node.made = None

        def restore(keep_state: bool) -> None:
            made, node.made = node.made, None
            for name, value in kept:
                object.__setattr__(self, name, value)
            if keep_state and made is not None:
                self.__dict__.clear()
                self.__dict__.update(made)
                return
            initialized = self._initialized
            self.__dict__.clear()
            self.__dict__.update(attributes)
            node.registered = remembered["registered"]
            if not keep_state:
                node.__dict__.update(remembered)
            elif not self._makes_tensors():
                self.__dict__["_initialized"] = initialized

        return restore

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        """A copy with tensors and layers of its own.

        Raises:
            TypeError: an attribute is a function that closes over a layer: Python does not copy
                functions, so the copy would compute with this layer's parameters.
        """
        for name, value in self.__dict__.items():
            if tree.closes_over_layers(value):
                raise TypeError(
                    f"deepcopy: {type(self).__name__}.{name} is a function that closes over "
                    "layers, which Python does not copy; create another model and use set_states"
                )
        made = memo[id(self)] = Layer.__new__(type(self))
        made.__dict__.update((name, deepcopy(one, memo)) for name, one in self.__dict__.items())
        tree.hold_members(made)
        return made

    def __copy__(self) -> Layer:
        """Another layer with the same tensors and layers."""
        made = Layer.__new__(type(self))
        own = {name: copy(self.__dict__[name]) for name in self._own if name in self.__dict__}
        made.__dict__.update({**self.__dict__, **own})
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores a pickled layer."""
        self.__dict__.update(state)
        tree.hold_members(self)

    #: Attributes that no two layers share.
    _own = frozenset({"_layer_node"})

    def _makes_tensors(self) -> bool:
        """Whether `initialize` has yet to run, and is not just Layer's own."""
        return not self._initialized and type(self).initialize is not Layer.initialize

    def get_params(self, prefix: str = "") -> dict[str, Tensor]:
        """The parameters of this layer and those below, by name: the tensors themselves.

        Args:
            prefix: a path, in full or relative to this layer: those alone that are at it or below.

        Raises:
            TypeError: `prefix` is no str.
            ValueError: there is no such path, or what is there has not been called yet.
        """
        return collect.at(self, "get_params", prefix)

    def get_states(self, prefix: str = "") -> dict[str, Tensor]:
        """As `get_params`: parameters and states (running averages)."""
        return collect.at(self, "get_states", prefix)

    def set_params(self, parameters: Mapping[str, Any]) -> None:
        """Copies tensors or arrays into the parameters with exactly these names, full or
        relative to this layer. Those for layers that have not been called are kept for their
        first call; other names are left out, with a warning.

        Raises:
            ShapeError, TypeError: naming the parameter, before anything is written.
            ValueError: none of the names is known.
        """
        collect.put(self, "set_params", "get_params", parameters)

    def set_states(self, states: Mapping[str, Any]) -> None:
        """As `set_params`, for parameters and states."""
        collect.put(self, "set_states", "get_states", states)

    device_check = check.device_check

    def dtype_check(self, *tensors: Tensor) -> None:
        """Casts tensors, in place, to the dtype of the first.

        Raises:
            DTypeError: that would cast floats to integers.
        """
        check.tensors(tensors, "dtype_check")
        if not tensors:
            return
        want = tensors[0].dtype
        if not want.is_float and any(tensor.dtype.is_float for tensor in tensors):
            raise DTypeError(f"{type(self).__name__}: got dtype {want.name}, want a float dtype")
        for tensor in tensors[1:]:
            if tensor.dtype != want:
                tensor.to_type(want)
