"""Models of sequences, written with plain operations: an LSTM that is unrolled step by step, and a
Transformer."""

from __future__ import annotations

from models import Trained
from singa_rs import autograd, layer, opt
from singa_rs.tensor import Tensor


class Lstm(Trained):
    """An LSTM (Hochreiter and Schmidhuber, 1997; forget gates after Gers et al., 2000) over
    (steps, batch, features), whose last state is classified."""

    def __init__(self, hidden: int, classes: int, optimizer: opt.Optimizer) -> None:
        super().__init__(optimizer)
        self.hidden, self.gates = hidden, layer.Linear(4 * hidden)
        self.out = layer.Linear(classes)

    def forward(self, x: Tensor) -> Tensor:
        h = c = Tensor((x.shape[1], self.hidden), x.device, x.dtype, requires_grad=False)
        for step in range(x.shape[0]):
            gates = self.gates(autograd.cat([x[step], h], 1))
            i, f, g, o = autograd.split(gates, 1, num_output=4)
            new = autograd.mul(autograd.sigmoid(i), autograd.tanh(g))
            c = autograd.add(autograd.mul(autograd.sigmoid(f), c), new)
            h = autograd.mul(autograd.sigmoid(o), autograd.tanh(c))
        return self.out(h)


class LayerNorm(layer.Layer):
    """Normalisation over the last axis (Ba et al., 2016)."""

    def initialize(self, x: Tensor) -> None:
        """Creates the scale and the bias."""
        self.scale, self.bias = (
            Tensor((x.shape[-1],), x.device, x.dtype, stores_grad=True) for _ in range(2)
        )
        self.scale.set_value(1.0)
        self.bias.set_value(0.0)

    def forward(self, x: Tensor) -> Tensor:
        """The result has the input's shape."""
        centred = autograd.sub(x, autograd.reduce_mean(x, axes=[-1], keepdims=1))
        variance = autograd.reduce_mean(autograd.mul(centred, centred), axes=[-1], keepdims=1)
        normal = autograd.div(centred, autograd.sqrt(variance + 1e-5))
        return autograd.add(autograd.mul(normal, self.scale), self.bias)


class Encoder(layer.Layer):
    """Attention and a perceptron, each after a normalisation and next to a shortcut (Xiong et al.,
    2020)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.norm1, self.norm2 = LayerNorm(), LayerNorm()
        self.joint, self.project = layer.Linear(3 * width), layer.Linear(width)
        self.wide, self.narrow = layer.Linear(4 * width), layer.Linear(width)

    def attend(self, x: Tensor) -> Tensor:
        """Scaled dot-product attention with several heads (Vaswani et al., 2017)."""
        batch, steps, _ = x.shape
        each = (batch, steps, self.heads, self.width // self.heads)
        parts = autograd.split(self.joint(x), 2, num_output=3)
        q, k, v = (autograd.transpose(autograd.reshape(p, each), (0, 2, 1, 3)) for p in parts)
        scores = autograd.matmul(q, autograd.transpose(k, (0, 1, 3, 2)))
        weights = autograd.softmax(scores * (each[-1] ** -0.5), 3)
        heads = autograd.transpose(autograd.matmul(weights, v), (0, 2, 1, 3))
        return self.project(autograd.reshape(heads, x.shape))

    def forward(self, x: Tensor) -> Tensor:
        """The result has the input's shape, (batch, steps, width)."""
        x = autograd.add(x, self.attend(self.norm1(x)))
        return autograd.add(x, self.narrow(autograd.gelu(self.wide(self.norm2(x)))))


class Transformer(Trained):
    """Encoders over (batch, steps, features); the mean of their outputs is classified."""

    def __init__(
        self, width: int, heads: int, depth: int, classes: int, optimizer: opt.Optimizer
    ) -> None:
        super().__init__(optimizer)
        self.embed = layer.Linear(width)
        self.encoders = [Encoder(width, heads) for _ in range(depth)]
        self.norm, self.out = LayerNorm(), layer.Linear(classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for encoder in self.encoders:
            x = encoder(x)
        return self.out(autograd.reduce_mean(self.norm(x), axes=[1], keepdims=0))
