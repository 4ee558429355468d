"""NumPy references of the building blocks of networks, written for clarity."""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def softmax(x, axis, log=False):
    """Bridle 1990; its logarithm without overflow."""
    shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    result = shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
    return result if log else np.exp(result)


def cross_entropy(x, target):
    """Mean over rows of -sum(weight * log_softmax); each row's maximum; log-sum-exp minus it."""
    highest = np.max(x, axis=1)
    rest = np.log(np.sum(np.exp(x - highest[:, None]), axis=1))
    if target.size == x.shape[0]:
        weights = np.eye(x.shape[1])[target.reshape(-1).astype(int)]
    else:
        weights = target / target.sum(axis=1, keepdims=True)
    rows = np.sum(weights * ((highest + rest)[:, None] - x), axis=1)
    return np.array([rows.mean()]), np.stack([highest, rest], axis=1)


def windows(x, kernel, stride, dilation=None):
    """All windows of a padded array (N, C, *spatial): (N, C, *places, *kernel)."""
    axes, dilation = range(2, x.ndim), dilation or (1,) * len(kernel)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = sliding_window_view(x, reach, axis=tuple(axes))
    return view[(slice(None),) * 2 + tuple(slice(None, None, n) for n in (*stride, *dilation))]


def padded(x, padding, value=0.0):
    """`padding` is all before the axes, then all after them."""
    rank = x.ndim - 2
    ends = zip(padding[:rank], padding[rank:], strict=True)
    return np.pad(x, ((0, 0), (0, 0), *ends), constant_values=value)


def conv(x, w, b=None, *, stride, padding, dilation, groups):
    """Cross-correlation over any number of spatial axes, as ONNX Conv."""
    rank = x.ndim - 2
    view = windows(padded(x, padding), w.shape[2:], stride, dilation)
    places = view.shape[2 : 2 + rank]
    view = view.reshape(len(x), groups, x.shape[1] // groups, *view.shape[2:])
    kernels = w.reshape(groups, len(w) // groups, *w.shape[1:])
    to, window = "ijk"[:rank], "uvw"[:rank]
    y = np.einsum(f"ngc{to}{window},goc{window}->ngo{to}", view, kernels)
    y = y.reshape(len(x), len(w), *places)
    return y if b is None else y + b.reshape(-1, *(1,) * rank)


def conv_transpose(x, w, b=None, *, stride, padding, dilation, groups, output_padding):
    """Each element of x adds a scaled window to the result, which is then cropped."""
    rank, inputs, outputs = x.ndim - 2, x.shape[1] // groups, w.shape[1]
    size = [
        (n - 1) * stride[d] + (w.shape[2 + d] - 1) * dilation[d] + 1 + output_padding[d]
        for d, n in enumerate(x.shape[2:])
    ]
    y = np.zeros((len(x), groups, outputs, *size))
    parts = x.reshape(len(x), groups, inputs, *x.shape[2:])
    kernels = w.reshape(groups, inputs, *w.shape[1:])
    for tap in np.ndindex(*w.shape[2:]):
        places = tuple(
            slice(
                t * dilation[d], t * dilation[d] + (x.shape[2 + d] - 1) * stride[d] + 1, stride[d]
            )
            for d, t in enumerate(tap)
        )
        entry = kernels[(slice(None),) * 3 + tap]
        y[(slice(None),) * 3 + places] += np.einsum("ngc...,gco->ngo...", parts, entry)
    y = y.reshape(len(x), groups * outputs, *size)
    y = y[
        (slice(None),) * 2
        + tuple(slice(padding[d], n - padding[rank + d]) for d, n in enumerate(size))
    ]
    return y if b is None else y + b.reshape(-1, *(1,) * rank)


def pooled(x, value, *, kernel, stride, padding, dilation=None, ceil_mode=False):
    """The windows of a pooling, whose padding and what lies beyond it have a value each: `value`
    gives both."""
    inside, beyond = value
    x, rank, before = padded(x, padding, inside), x.ndim - 2, padding
    if ceil_mode:
        more = []
        for d, n in enumerate(x.shape[2:]):
            reach = (kernel[d] - 1) * (dilation or (1,) * rank)[d] + 1
            count = math.ceil((n - reach) / stride[d]) + 1
            if (count - 1) * stride[d] >= n - before[rank + d]:
                count -= 1
            more.append(max(0, (count - 1) * stride[d] + reach - n))
        x = padded(x, (*(0,) * rank, *more), beyond)
    return windows(x, kernel, stride, dilation)


def max_pool(x, **how):
    """The maxima, and their positions within the windows (the first NaN or maximum)."""
    view = pooled(x, (-np.inf, -np.inf), **how)
    flat = view.reshape(*view.shape[: x.ndim], math.prod(view.shape[x.ndim :]))
    index = np.argmax(flat, axis=-1)
    return np.take_along_axis(flat, index[..., None], -1)[..., 0], index


def avg_pool(x, *, count_include_pad, divisor=None, **how):
    """Means of the windows; padding counts only where asked, and what lies beyond it never."""
    axes = tuple(range(x.ndim, 2 * x.ndim - 2))
    total = pooled(x, (0.0, 0.0), **how).sum(axis=axes)
    ones = np.ones((1, 1, *x.shape[2:]))
    return total / (divisor or pooled(ones, (float(count_include_pad), 0.0), **how).sum(axis=axes))


def lp_pool(x, p, **how):
    """The norms of the windows."""
    view = pooled(np.abs(x), (0.0, 0.0), **how)
    flat = view.reshape(*view.shape[: x.ndim], math.prod(view.shape[x.ndim :]))
    return flat.max(-1) if np.isinf(p) else (flat**p).sum(-1) ** (1 / p)


def channels(x):
    """All axes but the second, and the shape that broadcasts a vector along it."""
    axes = tuple(i for i in range(x.ndim) if i != 1)
    return axes, tuple(-1 if i == 1 else 1 for i in range(x.ndim))


def statistics(x):
    """Mean and biased variance of each channel."""
    axes, _ = channels(x)
    return x.mean(axis=axes), x.var(axis=axes)


def batch_norm(x, scale, bias, *, eps, mean=None, var=None):
    """Ioffe and Szegedy 2015, with the batch's own statistics unless others are given."""
    _, shape = channels(x)
    own = statistics(x)
    mean, var = (own[0] if mean is None else mean), (own[1] if var is None else var)
    unit = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    return unit * scale.reshape(shape) + bias.reshape(shape)


def layer_norm(x, scale, bias=0.0, *, eps):
    """Ba, Kiros and Hinton 2016, over the last axes, which are those of `scale`."""
    axes = tuple(range(x.ndim - scale.ndim, x.ndim))
    mean, var = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * scale + bias


def layer_norm_grad(dy, x, scale, *, eps):
    """The gradients of `layer_norm` of a matrix with respect to x, scale and bias."""
    inverse = 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
    unit, scaled = (x - x.mean(axis=1, keepdims=True)) * inverse, dy * scale
    of_mean = scaled.mean(axis=1, keepdims=True)
    of_variance = unit * (scaled * unit).mean(axis=1, keepdims=True)
    return (scaled - of_mean - of_variance) * inverse, (dy * unit).sum(axis=0), dy.sum(axis=0)


def rms_norm(x, scale=1.0, *, eps):
    """Zhang and Sennrich 2019, over the last axis."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * scale


def rms_norm_grad(dy, x, scale, *, eps):
    """The gradients of `rms_norm` of a matrix with respect to x and scale."""
    inverse = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps)
    unit, scaled = x * inverse, dy * scale
    of_square = unit * (scaled * unit).mean(axis=1, keepdims=True)
    return (scaled - of_square) * inverse, (dy * unit).sum(axis=0)


def group_norm(x, groups, scale=None, bias=None, *, eps):
    """Wu and He 2018: (N, C, ...) in groups of channels."""
    parts = x.reshape(x.shape[0], groups, -1)
    mean, var = parts.mean(axis=2, keepdims=True), parts.var(axis=2, keepdims=True)
    y = ((parts - mean) / np.sqrt(var + eps)).reshape(x.shape)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    y = y if scale is None else y * scale.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def adaptive_pool(x, sizes, over):
    """PyTorch's windows over the last axes, each reduced by `over`."""
    y = np.empty((*x.shape[: -len(sizes)], *sizes))
    have = x.shape[-len(sizes) :]
    for place in np.ndindex(*sizes):
        ends = [
            (i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(place, have, sizes, strict=True)
        ]
        window = x[(..., *(slice(*e) for e in ends))]
        y[(..., *place)] = over(window, axis=tuple(range(-len(sizes), 0)))
    return y


def attention_sums(q, k, v, mask=None, is_causal=False, scale=None, lengths=None, start=None):
    """Vaswani et al. 2017, query by query, and the logarithms of the sums of the exponentials,
    infinite for a query without keys, which gets zeros."""
    if q.ndim > 2:
        group = q.shape[-3] // max(k.shape[-3], 1)
        k, v = (np.repeat(t, group, axis=-3) for t in (k, v))
    scores = (scale or 1 / np.sqrt(q.shape[-1])) * q @ np.swapaxes(k, -1, -2)
    queries, keys = np.ogrid[: scores.shape[-2], : scores.shape[-1]]
    beside = lambda n: np.reshape(n, (*np.shape(n), *(1,) * min(q.ndim, 3)))  # noqa: E731
    seen = np.ones(scores.shape, bool)
    if mask is not None:
        seen &= mask if mask.dtype == bool else mask != -np.inf
        scores = scores if mask.dtype == bool else scores + mask
    if lengths is not None:
        seen &= keys < beside(lengths)
    if is_causal:
        seen &= keys <= queries + beside(0 if start is None else start)
    scores = np.where(seen, scores, -np.inf)
    most = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isinf(most), 0, most))
    total = weights.sum(axis=-1, keepdims=True)
    total = np.where(seen.any(-1, keepdims=True), total, 1)
    log = np.where(seen.any(-1), (most + np.log(total))[..., 0], np.inf)
    return weights / total @ v, log


def attention(q, k, v, mask=None, is_causal=False, scale=None):
    """The result alone."""
    return attention_sums(q, k, v, mask, is_causal, scale)[0]


def positions(length, width, base=10000.0, first=0):
    """Angles of sinusoidal and rotary positions, (length, width / 2)."""
    places = np.arange(0, width, 2)
    return np.arange(first, first + length)[:, None] * base ** (-places / width)


def rotary(x, first=0, base=10000.0, interleaved=False):
    """Su et al. 2021, as products of complex numbers."""
    turn = np.exp(1j * positions(*x.shape[-2:], base, first))
    half = x.shape[-1] // 2
    if interleaved:
        z = (x[..., ::2] + 1j * x[..., 1::2]) * turn
        return np.stack([z.real, z.imag], -1).reshape(x.shape)
    z = (x[..., :half] + 1j * x[..., half:]) * turn
    return np.concatenate([z.real, z.imag], -1)
