"""Dense layers, and those that work element by element or row by row."""

from __future__ import annotations

import math
from typing import Any

from ... import autograd
from ...layer.check import below_one, count, flag, number, one_of
from ...tensor import Tensor
from .base import Layer, Shape, Specs


class Dense(Layer):
    """`x @ W + b` (SINGA 1.x Dense), with W (inputs, num_output) and b (num_output,)."""

    def __init__(
        self,
        name: str,
        num_output: int,
        use_bias: bool = True,
        W_specs: Specs = None,
        b_specs: Specs = None,
        W_transpose: bool = False,
        input_sample_shape: Any = None,
    ) -> None:
        """`num_output`: the outputs of each row.

        Args:
            use_bias: whether there is a bias.
            W_specs, b_specs: how the parameters begin and are trained (`ParamSpec`); Xavier's
                initial values for W and 0 for b by default.
            W_transpose: whether W is (num_output, inputs).
            input_sample_shape: (inputs,).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(name)
        self.num_output = count(num_output, self._where("num_output"))
        self.use_bias = flag(use_bias, self._where("use_bias"))
        self.W_transpose = flag(W_transpose, self._where("W_transpose"))
        self._specify_affine(self.use_bias, W_specs, b_specs)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _setup(self, shape: Shape) -> Shape:
        if len(shape) != 1:
            raise self._refuse(f"a sample of {shape}", "one axis; put a Flatten before it")
        size = (shape[0], self.num_output)
        self._make_affine(self.use_bias, size[::-1] if self.W_transpose else size, self.num_output)
        return (self.num_output,)

    def _compute(self, x: Tensor) -> Tensor:
        W = autograd.transpose(self.W, (1, 0)) if self.W_transpose else self.W
        y = autograd.matmul(x, W)
        return y + self.b if self.use_bias else y


class Activation(Layer):
    """A function of each element: "relu", "sigmoid" or "tanh" (SINGA 1.x Activation)."""

    _modes = ("relu", "sigmoid", "tanh")

    def __init__(self, name: str, mode: str = "relu", input_sample_shape: Any = None) -> None:
        """`mode`: the function.

        Raises:
            ValueError: another one.
        """
        super().__init__(name)
        self.mode = one_of(str(mode).lower(), self._where("mode"), self._modes)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _compute(self, x: Tensor) -> Tensor:
        return getattr(autograd, self.mode)(x)


class Dropout(Layer):
    """In training, elements set to zero with the probability `p` and the others scaled up by
    1 / (1 - p) (SINGA 1.x Dropout)."""

    def __init__(self, name: str, p: float = 0.5, input_sample_shape: Any = None) -> None:
        """`p`: from 0, below 1.

        Raises:
            TypeError, ValueError: another one.
        """
        super().__init__(name)
        self.p = below_one(p, self._where("p"))
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _compute(self, x: Tensor) -> Tensor:
        return autograd.dropout(x, self.p)


class _Rows(Layer):
    """A layer that takes the axes from `axis` of the batch on as one row."""

    def __init__(self, name: str, axis: int = 1, input_sample_shape: Any = None) -> None:
        """`axis`: the first axis of the batch that belongs to the rows.

        Raises:
            TypeError, ValueError: not an int from 0.
        """
        super().__init__(name)
        self.axis = count(axis, self._where("axis"), 0)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _row(self, shape: Shape) -> int:
        """The elements of a row in samples of this shape."""
        if self.axis > len(shape):
            raise self._refuse(f"a sample of {shape}", f"at least {self.axis} axes")
        return math.prod(shape[max(self.axis - 1, 0) :])

    def _rows(self, x: Tensor) -> Tensor:
        if self.axis == 0:
            return autograd.reshape(x, (x.numel,))
        columns = self._row(self._in)
        return autograd.reshape(x, (x.numel // columns, columns))


class Flatten(_Rows):
    """The batch as a matrix: axes before `axis` are its rows, the others its columns; one axis if
    it is 0 (SINGA 1.x Flatten)."""

    def _setup(self, shape: Shape) -> Shape:
        return (self._row(shape),) if self.axis else (1,)

    def _compute(self, x: Tensor) -> Tensor:
        return self._rows(x)


class Softmax(_Rows):
    """Softmax of each row (SINGA 1.x Softmax)."""

    def _setup(self, shape: Shape) -> Shape:
        self._row(shape)
        return shape

    def _compute(self, x: Tensor) -> Tensor:
        return autograd.reshape(autograd.softmax(self._rows(x), -1), x.shape)


class L2Norm(Layer):
    """Each sample divided by its Euclidean norm: `x / sqrt(sum(x * x) + epsilon)` (SINGA 1.x
    L2Norm)."""

    def __init__(self, name: str, input_sample_shape: Any = None, epsilon: float = 1e-8) -> None:
        """`epsilon`: at least 0.

        Raises:
            TypeError, ValueError: another one.
        """
        super().__init__(name)
        self.epsilon = number(epsilon, self._where("epsilon"), 0.0)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _compute(self, x: Tensor) -> Tensor:
        over = tuple(range(1, x.rank))
        total = autograd.reduce_sum(x * x, list(over), 1)
        return x / autograd.sqrt(total + self.epsilon)
