"""Layer: SINGA 1.x's layers, which have a name, know the shape of a sample, and go forward and
backward by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import autograd, device
from ...autograd.stretch import Stretch
from ...errors import GraphError, ShapeError
from ...layer.base import Layer as Base
from ...layer.check import count
from ...layer.parameters import parameter, state
from ...tensor import Tensor
from ..proto.model_pb2 import is_training
from .specs import ParamSpec

Shape = tuple[int, ...]
#: How a parameter begins and is trained, as `ParamSpec` takes it.
Specs = Mapping[str, Any] | None
#: A gradient, or one for each input.
Gradients = Tensor | list[Tensor] | None


class Layer(Base):
    """A layer of a `FeedForwardNet`.

    It is set up, which makes its parameters, by the shape of a sample: the input's shape without
    the batch; either from `input_sample_shape` or by the net. `forward(flag, x)` and
    `backward(flag, dy)` take and return one tensor, or a list if there are several; what `forward`
    keeps in training is for one `backward`.

    A subclass of a program overrides `setup`, `get_output_sample_shape`, `forward` and `backward`.
    """

    #: What `forward` keeps for `backward` is read by no later step, and specifications by none.
    _unwatched = Base._unwatched | {
        *("_stretch", "input_gradient", "param_specs"),
        *("_widths", "num_input", "_extent", "_state_shape", "_given"),  # of subclasses
    }
    _stretch: Stretch | None = None
    #: Whether `backward` computes the gradient of the input; a net wants none of its data.
    input_gradient = True

    def __init__(self, name: str) -> None:
        super().__init__()
        if not isinstance(name, str) or not name:
            raise TypeError(f"{type(self).__name__}: name: got {name!r}, want a string")
        self.name = name
        #: The specification of each parameter, in order.
        self.param_specs: list[ParamSpec] = []
        self.has_setup = False
        #: The attributes that hold the parameters, in the same order.
        self._held: list[str] = []

    def __getstate__(self) -> dict[str, Any]:
        """A copy does not keep the last `forward`."""
        return {key: value for key, value in self.__dict__.items() if key != "_stretch"}

    # ---- setting up ------------------------------------------------------------------------------

    def setup(self, in_shapes: Any) -> None:
        """Makes the parameters, unless they were made before.

        Args:
            in_shapes: the shape of an input's sample, or a list of one for each input.

        Raises:
            ShapeError: shapes that the layer cannot take; the message has the layer's name.
        """
        if not self.has_setup:
            self._in, self._out = self._shapes_of(in_shapes)
            self.has_setup = True

    def _shapes_of(self, in_shapes: Any) -> tuple[Any, Any]:
        """The checked shapes of samples of the inputs and of the outputs."""
        shape = sample_shape(in_shapes, self._where("input_sample_shape"))
        return shape, self._setup(shape)

    def _setup(self, shape: Shape) -> Shape:
        """Makes the parameters for one input; returns the shape of the output's sample."""
        return shape

    def _where(self, what: str) -> str:
        return f"{type(self).__name__} {self.name!r}: {what}"

    def _refuse(self, got: Any, want: str) -> ShapeError:
        return ShapeError(self._where(f"got {got}, want {want}"))

    def get_output_sample_shape(self) -> Any:
        """The shape of the output's sample, or a list of those of several outputs.

        Raises:
            GraphError: the layer has not been set up.
        """
        self._check_setup("get_output_sample_shape")
        return self._out

    def _check_setup(self, method: str) -> None:
        if not self.has_setup:
            raise GraphError(self._where(f"{method}: call setup, or add the layer to a net, first"))

    # ---- parameters ------------------------------------------------------------------------------

    def _specify(self, suffix: str, given: Specs, **default: Any) -> ParamSpec:
        """The specification of a parameter, named after the layer unless it has its own name."""
        specs = dict(default if given is None else given)
        specs.setdefault("name", f"{self.name}/{suffix}")
        made = ParamSpec(specs, self._where(f"{suffix} specs"))
        self.param_specs.append(made)
        return made

    def _make(self, attribute: str, spec: ParamSpec, shape: Shape) -> None:
        """Makes a parameter with the initial values of its specification."""
        like = Tensor((), device.get_default_device())
        fill = spec.filler
        made = parameter(shape, like, fill.fill, self._where(attribute))
        made.name = spec.name
        self._hold(attribute, made)

    def _specify_affine(self, use_bias: bool, weight: Specs, bias: Specs) -> None:
        """Specifies a weight and, if there is one, a bias."""
        self._specify("weight", weight, init="xavier")
        if use_bias:
            self._specify("bias", bias, init="constant")

    def _make_affine(self, use_bias: bool, shape: Shape, outputs: int) -> None:
        """Makes a weight of this shape and, if there is one, a bias."""
        self._make("W", self.param_specs[0], shape)
        if use_bias:
            self._make("b", self.param_specs[1], (outputs,))

    def _make_state(self, attribute: str, spec: ParamSpec, shape: Shape) -> None:
        """Makes a state that is saved with the parameters, but not trained."""
        made = state(shape, Tensor((), device.get_default_device()), spec.filler.value)
        made.name = spec.name
        self._hold(attribute, made)

    def _hold(self, attribute: str, made: Tensor) -> None:
        setattr(self, attribute, made)
        self._held.append(attribute)

    def param_names(self) -> list[str]:
        """The names of the parameters: that of the layer, a slash and what they are."""
        return [spec.name for spec in self.param_specs]

    def param_values(self) -> list[Tensor]:
        """The parameters: the tensors themselves, once the layer is set up."""
        return [getattr(self, name) for name in self._held]

    def to_device(self, to: device.Device) -> None:
        """Moves the parameters, in place."""
        for value in self.param_values():
            value.to_device(to)

    def as_type(self, dtype: Any) -> None:
        """Converts the parameters, in place."""
        for value in self.param_values():
            value.to_type(dtype)

    # ---- forward and backward --------------------------------------------------------------------

    def forward(self, flag: Any, x: Any) -> Any:
        """The output for a batch.

        Args:
            flag: True or `kTrain` in training, False or `kEval` in evaluation.
            x: a tensor, or a list of one for each input.

        Raises:
            ShapeError: a batch of other samples than the layer was set up for.
            GraphError: the layer has not been set up.
        """
        training = is_training(flag, self._where("flag"))
        self._check_setup("forward")
        xs = self._inputs(x)
        self._stretch = None  # so that its memory is free for this one
        with autograd._training_scope(training):
            if not training:
                return self._output(self._compute(*xs).detach())
            stretch = Stretch(f"{type(self).__name__} {self.name!r}")
            y = stretch.leave(self._compute(*[stretch.enter(one) for one in xs]))
        self._stretch = stretch
        return self._output(y)

    def _output(self, y: Tensor) -> Any:
        """What was computed as `forward` returns it."""
        return y

    def _compute(self, *xs: Tensor) -> Tensor:
        """The output, by operations with gradients."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def _inputs(self, x: Any) -> list[Tensor]:
        """The checked input, in a list."""
        found = x[0] if isinstance(x, (list, tuple)) and len(x) == 1 else x
        return [self._checked(found, self._in)]

    def _checked(self, x: Any, sample: Shape) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(self._where(f"forward: got {type(x).__name__}, want a Tensor"))
        if not self._fits(x.shape, sample):
            raise self._refuse(f"a batch of shape {x.shape}", f"(N, {_listed(sample)})")
        return x

    def _fits(self, shape: Shape, sample: Shape) -> bool:
        return shape[1:] == sample

    def backward(self, flag: Any, dy: Any) -> tuple[Gradients, list[Tensor]]:
        """The gradient of the input, or a list of those of several, and of each parameter.

        Args:
            flag: of no effect.
            dy: the gradient of the output of the last `forward`, which was in training.

        Raises:
            GraphError: there was no such `forward` since the last `backward`.
            ShapeError: a gradient of another shape than the output.
        """
        stretch, self._stretch = self._stretch, None
        if stretch is None:
            raise GraphError(self._where("backward: call forward in training first"))
        grads, found = stretch.backward(self._only(dy), self.param_values(), self.input_gradient)
        return self._told(grads), [_or_empty(grad) for grad in found]

    def _told(self, grads: list[Tensor | None]) -> Gradients:
        """The gradients of the inputs as `backward` returns them."""
        return grads[0]

    def _only(self, dy: Any) -> Tensor:
        found = dy[0] if isinstance(dy, (list, tuple)) and len(dy) == 1 else dy
        if not isinstance(found, Tensor):
            raise TypeError(self._where(f"backward: got {type(dy).__name__}, want a Tensor"))
        return found


def _or_empty(grad: Tensor | None) -> Tensor:
    """A gradient; one without elements for what is not trained."""
    return Tensor((0,), requires_grad=False) if grad is None else grad


def _listed(sample: Shape) -> str:
    return ", ".join(map(str, sample))


def sample_shape(given: Any, argument: str) -> Shape:
    """The shape of a sample.

    Raises:
        TypeError, ValueError: not a sequence of ints from 1.
    """
    if isinstance(given, (list, tuple)) and len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"{argument}: got {given!r}, want a tuple of ints")
    return tuple(count(extent, argument) for extent in given)


def sample_shapes(given: Any, argument: str) -> list[Shape]:
    """The shapes of samples of several inputs, or of one."""
    several = isinstance(given, (list, tuple)) and any(isinstance(s, (list, tuple)) for s in given)
    return [sample_shape(one, argument) for one in (given if several else [given])]
