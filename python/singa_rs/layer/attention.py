"""Attention, the layers of transformers, and positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import autograd
from ..errors import ShapeError
from ..tensor import Tensor
from . import activation as activations
from .base import Layer
from .cache import KeyValueCache
from .check import axes, below_one, count, flag, float_input, number
from .linear import Linear
from .norm import LayerNorm
from .shape import Dropout

if TYPE_CHECKING:
    from .typed import Activation, Given


class MultiHeadAttention(Layer):
    """Attention of several heads, each over a part of the features (Vaswani et al., 2017), batch
    first: linear layers `q_proj`, `k_proj`, `v_proj` and, over the heads side by side, `out_proj`.

    In masks True is where a query may attend to a key, as in `scaled_dot_product_attention`
    (PyTorch's MultiheadAttention means the opposite).
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kv_heads: int | None = None,
        rotary: bool = False,
    ) -> None:
        """`embed_dim`: the width of queries and results.

        Args:
            num_heads: a divisor of `embed_dim`.
            dropout: the share of attention weights that are dropped in training.
            bias: whether the linear layers have one.
            kv_heads: the heads of keys and values, a divisor of `num_heads`, which is the default.
            rotary: whether queries and keys are turned by their positions (`rotary_embedding`).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        name = "MultiHeadAttention"
        self.embed_dim = count(embed_dim, f"{name}: embed_dim")
        self.num_heads = count(num_heads, f"{name}: num_heads")
        self.head_dim, rest = divmod(self.embed_dim, self.num_heads)
        if rest:
            raise ValueError(f"{name}: num_heads: got {num_heads}, want a divisor of {embed_dim}")
        self.kv_heads = self.num_heads if kv_heads is None else count(kv_heads, f"{name}: kv_heads")
        if self.num_heads % self.kv_heads:
            raise ValueError(f"{name}: kv_heads: got {kv_heads}, want a divisor of {num_heads}")
        self.dropout = below_one(dropout, f"{name}: dropout")
        self.rotary, bias = flag(rotary, f"{name}: rotary"), flag(bias, f"{name}: bias")
        if self.rotary and self.head_dim % 2:
            raise ValueError(f"{name}: rotary: got heads of {self.head_dim}, want an even width")
        shared = self.kv_heads * self.head_dim
        self.q_proj = Linear(self.embed_dim, bias=bias)
        self.k_proj, self.v_proj = Linear(shared, bias=bias), Linear(shared, bias=bias)
        self.out_proj = Linear(self.embed_dim, bias=bias)

    def _heads(self, x: Tensor, heads: int) -> Tensor:
        """(N, L, heads * width) -> (N, heads, L, width)."""
        parts = autograd.reshape(x, (*x.shape[:2], heads, self.head_dim))
        return autograd.transpose(parts, (0, 2, 1, 3))

    def forward(
        self,
        query: Tensor,
        key: Given | None = None,
        value: Given | None = None,
        mask: Given | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """(N, L, E) -> (N, L, embed_dim); keys are (N, S, ...), by default the queries, and values
        (N, S, ...), by default the keys.

        With a `cache`, for self-attention alone, keys are those that it holds followed by those of
        the queries, which it then holds, too; a mask is for (N, num_heads, L, its capacity).

        Raises:
            ShapeError, DTypeError: tensors or a mask that do not fit.
            ValueError: a cache beside keys, or one that is full.
            GraphError: a cache where gradients are recorded.
        """
        if cache is not None and (key is not None or value is not None):
            raise ValueError("MultiHeadAttention: got a cache and keys, want one of them")
        key = query if key is None else key
        value = key if value is None else value
        for one in (query, key, value):
            float_input(one, "MultiHeadAttention")
            axes(one, "MultiHeadAttention", 3)
        q = self._heads(self.q_proj(query), self.num_heads)
        k = self._heads(self.k_proj(key), self.kv_heads)
        v = self._heads(self.v_proj(value), self.kv_heads)
        if cache is not None:
            y = self._cached(q, k, v, mask, is_causal, cache)
        else:
            if self.rotary:
                q, k = autograd.rotary_embedding(q), autograd.rotary_embedding(k)
            y = autograd.scaled_dot_product_attention(q, k, v, mask, is_causal, self.dropout)
        y = autograd.transpose(y, (0, 2, 1, 3))
        return self.out_proj(autograd.reshape(y, (*y.shape[:2], self.embed_dim)))

    def _cached(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        is_causal: bool,
        cache: KeyValueCache,
    ) -> Tensor:
        """Attention to the keys of a cache, with those of new tokens."""
        if self.rotary:
            q, k = (autograd.rotary_embedding(x, cache.position) for x in (q, k))
        cache.write(k, v)
        tokens = q.shape[2]
        where = {"start": cache.position} if is_causal else {"lengths": cache.position + tokens}
        y = autograd.scaled_dot_product_attention(
            q, cache.keys, cache.values, mask, is_causal, self.dropout, **where
        )
        cache.advance(tokens)
        return y


class _TransformerLayer(Layer):
    """What encoders and decoders share: each part is added to its input, with a normalisation
    after the sum, or before the part if `norm_first`."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "RELU",
        layer_norm_eps: float = 1e-5,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        """`d_model`: the width; `nhead`: the number of heads, a divisor of it.

        Args:
            dim_feedforward: the width between `linear1` and `linear2`.
            dropout: of attention weights, and of what each part adds.
            activation: a name such as "GELU", or a callable.
            layer_norm_eps: added to variances.
            norm_first: whether normalisation comes before each part (Xiong et al., 2020).
            bias: whether linear layers and normalisations have one.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        name = type(self).__name__
        width, heads = count(d_model, f"{name}: d_model"), count(nhead, f"{name}: nhead")
        between = count(dim_feedforward, f"{name}: dim_feedforward")
        if width % heads:
            raise ValueError(f"{name}: nhead: got {nhead}, want a divisor of {d_model}")
        self.activation = activations.get(activation, f"{name}: activation")
        self.norm_first, bias = flag(norm_first, f"{name}: norm_first"), flag(bias, f"{name}: bias")
        ratio = below_one(dropout, f"{name}: dropout")
        eps = number(layer_norm_eps, f"{name}: layer_norm_eps", 0.0)
        self.dropout = Dropout(ratio)
        self.linear1, self.linear2 = Linear(between, bias=bias), Linear(width, bias=bias)
        self.self_attn = MultiHeadAttention(width, heads, ratio, bias)
        self.norm1 = LayerNorm(width, eps, has_bias=bias)
        self.norm2 = LayerNorm(width, eps, has_bias=bias)
        self._add_parts(width, heads, ratio, bias, eps)

    def _add_parts(self, width: int, heads: int, ratio: float, bias: bool, eps: float) -> None:
        """Makes what only some layers have."""

    def _added(self, x: Tensor, norm: LayerNorm, part: Any) -> Tensor:
        """`x` and what a part makes of it, normalised."""
        if self.norm_first:
            return x + self.dropout(part(norm(x)))
        return norm(x + self.dropout(part(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        y = self.linear1(x)
        return self.linear2(self.dropout(y if self.activation is None else self.activation(y)))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a network of two linear layers (Vaswani et al., 2017; PyTorch
    TransformerEncoderLayer, batch first): parts `self_attn` with `norm1`, `linear1` and `linear2`
    with `norm2`. With `is_causal`, the block of a GPT."""

    def forward(
        self,
        src: Tensor,
        mask: Given | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """(N, L, d_model), with a mask and a cache as in `MultiHeadAttention`.

        Raises:
            ShapeError, DTypeError: a tensor or a mask that does not fit.
        """
        _check(self, src)
        given = {"mask": mask, "is_causal": is_causal, "cache": cache}

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, **given)

        return self._added(self._added(src, self.norm1, attend), self.norm2, self._feed_forward)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to an encoder's result, and a network of two linear layers
    (Vaswani et al., 2017; PyTorch TransformerDecoderLayer, batch first): parts `self_attn` with
    `norm1`, `cross_attn` with `norm2`, `linear1` and `linear2` with `norm3`."""

    def _add_parts(self, width: int, heads: int, ratio: float, bias: bool, eps: float) -> None:
        self.cross_attn = MultiHeadAttention(width, heads, ratio, bias)
        self.norm3 = LayerNorm(width, eps, has_bias=bias)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Given | None = None,
        memory_mask: Given | None = None,
        is_causal: bool = True,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """(N, L, d_model) and the encoder's (N, S, E), with masks, and a cache for `tgt`, as in
        `MultiHeadAttention`. `is_causal`: whether no position sees a later one of `tgt`.

        Raises:
            ShapeError, DTypeError: tensors or masks that do not fit.
        """
        _check(self, tgt, memory)
        given = {"mask": tgt_mask, "is_causal": is_causal, "cache": cache}

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, **given)

        def cross(x: Tensor) -> Tensor:
            return self.cross_attn(x, memory, mask=memory_mask)

        y = self._added(self._added(tgt, self.norm1, attend), self.norm2, cross)
        return self._added(y, self.norm3, self._feed_forward)


def _check(layer: _TransformerLayer, *xs: Any) -> None:
    name, width = type(layer).__name__, layer.self_attn.embed_dim
    for x in xs:
        float_input(x, name)
        axes(x, name, 3)
    if xs[0].shape[-1] != width:
        raise ShapeError(f"{name}: got shape {xs[0].shape}, want (N, L, {width})")


class SinusoidalPositions(Layer):
    """Adds sines and cosines of each position (Vaswani et al., 2017), then dropout."""

    def __init__(self, dropout: float = 0.0, base: float = 10000.0) -> None:
        """`dropout`: the share that is dropped in training; `base`: see `sinusoidal_positions`.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self.dropout = Dropout(below_one(dropout, "SinusoidalPositions: dropout"))
        self.base = number(base, "SinusoidalPositions: base", 1e-300)

    def forward(self, x: Tensor, offset: int | Given = 0) -> Tensor:
        """(..., L, E); `offset`: the position of the first row, as in `sinusoidal_positions`."""
        float_input(x, "SinusoidalPositions")
        return self.dropout(autograd.sinusoidal_positions(x, offset, self.base))


class RotaryPositions(Layer):
    """Turns pairs of features by each position (Su et al., 2021); see `rotary_embedding`."""

    def __init__(self, base: float = 10000.0, interleaved: bool = False) -> None:
        """`base` and `interleaved` as in `rotary_embedding`.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self.base = number(base, "RotaryPositions: base", 1e-300)
        self.interleaved = flag(interleaved, "RotaryPositions: interleaved")

    def forward(self, x: Tensor, positions: int | Given = 0) -> Tensor:
        """(..., L, E) with an even E; `positions`: that of the first row, or a tensor (..., L)."""
        float_input(x, "RotaryPositions")
        return autograd.rotary_embedding(x, positions, self.base, self.interleaved)
