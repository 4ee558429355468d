"""Calls of functions with PyTorch's keywords, and what NumPy gives for them."""

import numpy as np

RNG = np.random.default_rng(5)
#: Distinct values, among them no zeros.
A = RNG.permutation(np.linspace(-2, 2, 24)).reshape(2, 3, 4)
B, ONE, LONG = A[::-1] * 0.5, A[:, :1], A[:, [0, 2]]
ROWS, TOP = np.array([2, 0]), np.argsort(A, 1)[:, :2]
HOLES = np.where(np.abs(A) < 0.3, np.nan, A)
LABELS = RNG.integers(0, 3, (2, 4))


# ---- what NumPy has under another name -----------------------------------------------------------


def softmax(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def length(x, axis, p=2):
    return (np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p)


def changed(x, change):
    made = x.copy()
    change(made)
    return made


def put(x, key, values):
    return changed(x, lambda made: made.__setitem__(key, values))


def added(x, axis, indices, values):
    key = (slice(None),) * axis + (indices,)
    return changed(x, lambda made: np.add.at(made, key, values))


def scattered(x, indices, values, join=None):
    at = list(np.indices(indices.shape))
    at[1] = indices
    if join is None:
        return put(x, tuple(at), values)
    return changed(x, lambda made: join.at(made, tuple(at), values))


def embedded(x):
    made = np.zeros((*x.shape, x.shape[-1]))
    made[..., np.arange(4), np.arange(4)] = x
    return made.transpose(0, 3, 1, 2)


def positions(x, find):
    """Of the running extremes along axis 1, whose function `find` is."""
    return np.stack([find(x[:, : i + 1], 1) for i in range(x.shape[1])], 1)


def likelihood(x):
    chosen = np.take_along_axis(x, LABELS[:, None], 1)
    return -chosen.mean(keepdims=True).reshape(1)


# ---- the table -----------------------------------------------------------------------------------

#: By function: what it is called with, PyTorch's keywords, and what NumPy gives.
CASES = {
    "add_bias": ((A[0], A[0, 0]), {"dim": 0}, A[0] + A[0, 0]),
    "all": ((A,), {"dim": 1, "keepdim": True}, (A != 0).all(1, keepdims=True)),
    "amax": ((A,), {"dim": (0, 2), "keepdim": True}, A.max((0, 2), keepdims=True)),
    "amin": ((A,), {"dim": (0, 2)}, A.min((0, 2))),
    "aminmax": ((A,), {"dim": 1, "keepdim": True}, [A.min(1)[:, None], A.max(1)[:, None]]),
    "any": ((A,), {"dim": (0, 1)}, (A != 0).any((0, 1))),
    "append": ((A, B), {"dim": 1}, np.append(A, B, 1)),
    "argmax": ((A,), {"dim": 1, "keepdim": True}, A.argmax(1)[:, None]),
    "argmin": ((A,), {"dim": -1}, A.argmin(-1)),
    "argpartition": ((A, 1), {"dim": 1}, np.argsort(A, 1)),
    "argsort": ((A,), {"dim": 1, "descending": True}, np.argsort(-A, 1)),
    "array_split": ((A, 2), {"dim": 1}, np.array_split(A, 2, 1)),
    "average": ((A,), {"dim": 1, "keepdim": True}, A.mean(1, keepdims=True)),
    "cat": (([A, B],), {"dim": 1}, np.concatenate([A, B], 1)),
    "chunk": ((A, 2), {"dim": -1}, np.split(A, 2, -1)),
    "concat": (([A, B],), {"dim": -1}, np.concatenate([A, B], -1)),
    "concatenate": (([A, B],), {"dim": 2}, np.concatenate([A, B], 2)),
    "cosine_similarity": (
        (A, B), {"dim": 2}, (A * B).sum(2) / (length(A, 2) * length(B, 2))[..., 0]
    ),
    "count_nonzero": ((A,), {"dim": 0, "keepdim": True}, np.count_nonzero(A, 0, keepdims=True)),
    "cov": ((A[0],), {"correction": 0}, np.cov(A[0], ddof=0)),
    "cross": ((A, B), {"dim": 1}, np.cross(A, B, axis=1)),
    "cummax": ((A,), {"dim": 1}, [np.maximum.accumulate(A, 1), positions(A, np.argmax)]),
    "cummin": ((A,), {"dim": 1}, [np.minimum.accumulate(A, 1), positions(A, np.argmin)]),
    "cumprod": ((A,), {"dim": 0}, A.cumprod(0)),
    "cumsum": ((A,), {"dim": 0}, A.cumsum(0)),
    "cumulative_trapezoid": ((A,), {"dim": 1}, np.cumsum((A[:, 1:] + A[:, :-1]) / 2, 1)),
    "delete": ((A, 1), {"dim": 1}, np.delete(A, 1, 1)),
    "diag_embed": ((A,), {"dim1": 1, "dim2": -1}, embedded(A)),
    "diagonal": ((A,), {"dim1": 0, "dim2": 2}, A.diagonal(0, 0, 2)),
    "diff": ((A,), {"n": 2, "dim": 1}, np.diff(A, 2, 1)),
    "expand_dims": ((A,), {"dim": 1}, A[:, None]),
    "flip": ((A,), {"dims": (0, 1)}, A[::-1, ::-1]),
    "glu": ((A,), {"dim": -1}, A[..., :2] / (1 + np.exp(-A[..., 2:]))),
    "index_add": (
        (A,), {"dim": 1, "index": ROWS, "source": LONG}, added(A, 1, ROWS, LONG)
    ),
    "index_copy": (
        (A,), {"dim": 1, "index": ROWS, "source": LONG}, put(A, np.s_[:, ROWS], LONG)
    ),
    "index_fill": ((A,), {"dim": 1, "index": ROWS, "value": 7}, put(A, np.s_[:, ROWS], 7)),
    "index_select": ((A,), {"dim": 1, "index": ROWS}, A[:, ROWS]),
    "kthvalue": (
        (A, 2), {"dim": 1, "keepdim": True}, [np.sort(A, 1)[:, [1]], np.argsort(A, 1)[:, [1]]]
    ),
    "interpolate": (
        (A,), {"scale_factor": 2, "mode": "linear", "align_corners": True},
        np.apply_along_axis(lambda row: np.interp(np.linspace(0, 3, 8), range(4), row), 2, A),
    ),
    "layer_norm": (
        (A,), {"dim": -1, "eps": 0.0}, (A - A.mean(-1)[..., None]) / A.std(-1)[..., None]
    ),
    "log_softmax": ((A,), {"dim": 0}, np.log(softmax(A, 0))),
    "logcumsumexp": ((A,), {"dim": 1}, np.log(np.cumsum(np.exp(A), 1))),
    "logsumexp": ((A,), {"dim": (0, 1)}, np.log(np.exp(A).sum((0, 1)))),
    "max": ((A,), {"dim": 1}, [A.max(1), A.argmax(1)]),
    "mean": ((A,), {"dim": (0, 2)}, A.mean((0, 2))),
    "min": ((A,), {"dim": -1, "keepdim": True}, [A.min(-1)[..., None], A.argmin(-1)[..., None]]),
    "mode": ((A,), {"dim": 1}, [A.min(1), A.argmin(1)]),
    "nanargmax": ((HOLES,), {"dim": 1, "keepdim": True}, np.nanargmax(HOLES, 1)[:, None]),
    "nanargmin": ((HOLES,), {"dim": 1}, np.nanargmin(HOLES, 1)),
    "nancumprod": ((HOLES,), {"dim": 1}, np.nancumprod(HOLES, 1)),
    "nancumsum": ((HOLES,), {"dim": 1}, np.nancumsum(HOLES, 1)),
    "nanmax": ((HOLES,), {"dim": 1}, np.nanmax(HOLES, 1)),
    "nanmean": ((HOLES,), {"dim": 1, "keepdim": True}, np.nanmean(HOLES, 1, keepdims=True)),
    "nanmin": ((HOLES,), {"dim": 1}, np.nanmin(HOLES, 1)),
    "nanpercentile": ((HOLES, 30), {"dim": 1}, np.nanpercentile(HOLES, 30, 1)),
    "nanprod": ((HOLES,), {"dim": 1}, np.nanprod(HOLES, 1)),
    "nanquantile": (
        (HOLES, 0.3), {"dim": 1, "interpolation": "lower"},
        np.nanquantile(HOLES, 0.3, 1, method="lower"),
    ),
    "nanstd": ((HOLES,), {"dim": 1, "keepdim": True}, np.nanstd(HOLES, 1, keepdims=True)),
    "nansum": ((HOLES,), {"dim": 1}, np.nansum(HOLES, 1)),
    "nanvar": ((HOLES,), {"dim": (0, 2)}, np.nanvar(HOLES, (0, 2))),
    "narrow": ((A,), {"dim": 1, "start": 1, "length": 2}, A[:, 1:3]),
    "nll_loss": ((A, LABELS), {"dim": 1}, likelihood(A)),
    "norm": ((A,), {"p": 3, "dim": 1, "keepdim": True}, length(A, 1, 3)),
    "normalize": ((A,), {"p": 2.0, "dim": 2}, A / length(A, 2)),
    "one_hot": ((LABELS, 3), {"dim": 1}, np.eye(3, dtype=int)[LABELS].transpose(0, 2, 1)),
    "onehot": ((), {"dim": 1, "indices": LABELS, "depth": 3}, np.eye(3)[LABELS].transpose(0, 2, 1)),
    "pairwise_distance": ((A, B), {"keepdim": True, "eps": 0.0}, length(A - B, -1)),
    "partition": ((A, 1), {"dim": 1}, np.sort(A, 1)),
    "percentile": ((A, 30), {"dim": 1}, np.percentile(A, 30, 1)),
    "permute": ((A,), {"dims": (2, 0, 1)}, A.transpose(2, 0, 1)),
    "prod": ((A,), {"dim": (0, 1)}, A.prod((0, 1))),
    "ptp": ((A,), {"dim": 1, "keepdim": True}, np.ptp(A, 1, keepdims=True)),
    "put_along_axis": ((A, TOP, LONG), {"dim": 1}, scattered(A, TOP, LONG)),
    "quantile": (
        (A, 0.3), {"dim": 1, "keepdim": True, "interpolation": "higher"},
        np.quantile(A, 0.3, 1, keepdims=True, method="higher"),
    ),
    "reduce_max": ((A,), {"dim": 1, "keepdim": False}, A.max(1)),
    "reduce_mean": ((A,), {"dim": (0, 1), "keepdim": False}, A.mean((0, 1))),
    "reduce_min": ((A,), {"dim": 1, "keepdim": False}, A.min(1)),
    "reduce_prod": ((A,), {"dim": 1, "keepdim": False}, A.prod(1)),
    "reduce_sum": ((A,), {"dim": 1, "keepdim": False}, A.sum(1)),
    "repeat": ((A, 2), {"dim": 1}, A.repeat(2, 1)),
    "repeat_interleave": ((A, 2), {"dim": 1}, A.repeat(2, 1)),
    "rms_norm": ((A,), {"dim": -1, "eps": 0.0}, A / np.sqrt((A * A).mean(-1, keepdims=True))),
    "roll": ((A,), {"shifts": (1, 2), "dims": (0, 2)}, np.roll(A, (1, 2), (0, 2))),
    "rot90": ((A,), {"k": 1, "dims": (1, 2)}, np.rot90(A, 1, (1, 2))),
    "scatter": ((A,), {"dim": 1, "index": TOP, "src": LONG}, scattered(A, TOP, LONG)),
    "scatter_add": (
        (A,), {"dim": 1, "index": TOP, "src": LONG}, scattered(A, TOP, LONG, np.add)
    ),
    "scatter_elements": ((A, TOP, LONG), {"dim": 1}, scattered(A, TOP, LONG)),
    "scatter_reduce": (
        (A,), {"dim": 1, "index": TOP, "src": LONG, "reduce": "amax"},
        scattered(A, TOP, LONG, np.maximum),
    ),
    "select": ((A,), {"dim": 1, "index": 2}, A[:, 2]),
    "select_scatter": ((A,), {"src": B[:, 0], "dim": 1, "index": 2}, put(A, np.s_[:, 2], B[:, 0])),
    "slice_scatter": ((A,), {"src": LONG, "dim": 1, "start": 1}, put(A, np.s_[:, 1:], LONG)),
    "softmax": ((A,), {"dim": 0}, softmax(A, 0)),
    "softmax_cross_entropy": ((A, LABELS), {"dim": 1}, likelihood(np.log(softmax(A, 1)))),
    "softmin": ((A,), {"dim": 1}, softmax(-A, 1)),
    "sort": ((A,), {"dim": 1, "descending": True}, [-np.sort(-A, 1), np.argsort(-A, 1)]),
    "squeeze": ((ONE,), {"dim": 1}, A[:, 0]),
    "stack": (([A, B],), {"dim": -1}, np.stack([A, B], -1)),
    "std": ((A,), {"dim": 0, "unbiased": False, "keepdim": True}, A.std(0, keepdims=True)),
    "std_mean": ((A,), {"dim": 1, "correction": 1}, [A.std(1, ddof=1), A.mean(1)]),
    "sum": ((A,), {"dim": 1, "keepdim": True}, A.sum(1, keepdims=True)),
    "swapaxes": ((A,), {"dim0": 0, "dim1": 2}, A.swapaxes(0, 2)),
    "swapdims": ((A,), {"dim0": 0, "dim1": -2}, A.swapaxes(0, -2)),
    "take": ((A,), {"index": ROWS, "dim": 1}, A.take(ROWS, 1)),
    "take_along_axis": ((A, TOP), {"dim": 1}, np.take_along_axis(A, TOP, 1)),
    "take_along_dim": ((A, TOP), {"dim": 1}, np.take_along_axis(A, TOP, 1)),
    "tensor_scatter": ((A, B[:, :1], ROWS[:1]), {"dim": 1}, put(A, np.s_[:, 2:], B[:, :1])),
    "tensor_split": ((A,), {"indices_or_sections": 3, "dim": 2}, np.array_split(A, 3, 2)),
    "tensordot": ((A, B), {"dims": ([1, 2], [1, 2])}, np.tensordot(A, B, ([1, 2], [1, 2]))),
    "topk": ((A, 2), {"dim": 1}, [-np.sort(-A, 1)[:, :2], np.argsort(-A, 1)[:, :2]]),
    "trapezoid": ((A,), {"dim": 1}, (A[:, 1:] + A[:, :-1]).sum(1) / 2),
    "unbind": ((A,), {"dim": 1}, [A[:, 0], A[:, 1], A[:, 2]]),
    "unflatten": ((A,), {"dim": 2, "sizes": (2, 2)}, A.reshape(2, 3, 2, 2)),
    "unfold": ((A,), {"dimension": 1, "size": 2, "step": 1}, np.stack([A[:, :2], A[:, 1:]], -1)),
    "unique": ((A[[0, 1, 0]],), {"dim": 0}, np.unique(A, axis=0)),
    "unsqueeze": ((A,), {"dim": 1}, A[:, None]),
    "var": ((A,), {"dim": (0, 1), "unbiased": True}, A.var((0, 1), ddof=1)),
    "var_mean": ((A,), {"dim": 1, "unbiased": False}, [A.var(1), A.mean(1)]),
}  # fmt: skip
