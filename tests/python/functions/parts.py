"""Sections, diagonals, combinations, windows as columns, channels."""

import itertools

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table, plain

S = (3, 4, 6)
table = Table()


def embedded(x, offset=0, first=-2, second=-1):
    n = x.shape[-1] + abs(offset)
    made = np.zeros((*x.shape[:-1], n, n), x.dtype)
    at = np.arange(x.shape[-1])
    made[..., at + max(-offset, 0), at + max(offset, 0)] = x
    return np.moveaxis(made, (-2, -1), (first, second))


def windows(x, kernel, dilation, padding, stride):
    """The elements of all windows as columns, one loop for each element."""
    sides = [(0, 0), (0, 0), *zip(*np.split(np.array(padding), 2), strict=True)]
    x = np.pad(x, sides)
    counts = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(x.shape[2:], kernel, dilation, stride, strict=True)
    ]
    found = []
    for start in np.ndindex(*kernel):
        cuts = zip(start, dilation, counts, stride, strict=True)
        key = tuple(slice(i * d, i * d + (c - 1) * s + 1, s) for i, d, c, s in cuts)
        found.append(x[(..., *key)].reshape(*x.shape[:2], 1, int(np.prod(counts))))
    made = np.concatenate(found, 2)
    return made.reshape(len(x), x.shape[1] * len(found), made.shape[-1])


def folded(x, size, *how):
    """By the adjoint: what each column adds to, found with one element at a time."""
    n, channels = x.shape[0], x.shape[1] // int(np.prod(how[0]))
    places = np.arange(1, channels * int(np.prod(size)) + 1, dtype=float)
    columns = windows(places.reshape(1, channels, *size), *how)[0].astype(int)
    made = np.zeros((n, places.size + 1))
    for one, row in zip(made, x, strict=True):
        np.add.at(one, columns, row)
    return made[:, 1:].reshape(n, channels, *size)


CASES = {
    "tensor_split": (lambda t: t.tensor_split(4, -1), lambda x: np.array_split(x, 4, -1)),
    "tensor_split-at": (
        lambda t: t.tensor_split((1, 3, -1), 2),
        lambda x: np.array_split(x, (1, 3, -1), 2),
    ),
    "tensor_split-over": (
        lambda t: t.tensor_split((3, 2, 9), 2),
        lambda x: np.array_split(x, (3, 2, 9), 2),
    ),
    "tensor_split-more": (lambda t: t.tensor_split(5, 0), lambda x: np.array_split(x, 5, 0)),
    "array_split": (lambda t: autograd.array_split(t, 4), lambda x: np.array_split(x, 4)),
    "hsplit": (lambda t: t.hsplit(2), lambda x: np.hsplit(x, 2)),
    "vsplit": (lambda t: t.vsplit((1,)), lambda x: np.vsplit(x, (1,))),
    "dsplit": (lambda t: t.dsplit(3), lambda x: np.dsplit(x, 3)),
    "select": (lambda t: t.select(1, -2), lambda x: x[:, -2]),
    "diag_embed": (lambda t: t.diag_embed(), embedded),
    "diag_embed-above": (lambda t: t.diag_embed(2), lambda x: embedded(x, 2)),
    "diag_embed-axes": (
        lambda t: t.diag_embed(-1, 0, 2),
        lambda x: embedded(x, -1, 0, 2),
    ),
    "diag_embed-turned": (
        lambda t: autograd.diag_embed(t, 1, -1, 1),
        lambda x: embedded(x, 1, -1, 1),
    ),
    "diagflat": (lambda t: t[0].diagflat(-1), lambda x: np.diagflat(x[0], -1)),
    "channel_shuffle": (
        lambda t: autograd.channel_shuffle(t, 2),
        lambda x: x.reshape(3, 2, 2, 6).swapaxes(1, 2).reshape(x.shape),
    ),
    "append": (lambda t: autograd.append(t, t[0]), lambda x: np.append(x, x[0])),
    "append-axis": (
        lambda t: autograd.append(t, t[:, :1], -2),
        lambda x: np.append(x, x[:, :1], -2),
    ),
    "delete": (lambda t: autograd.delete(t, [1, -2], 2), lambda x: np.delete(x, [1, -2], 2)),
    "delete-slice": (
        lambda t: autograd.delete(t, slice(0, 50, 3)),
        lambda x: np.delete(x, slice(0, 50, 3)),
    ),
    "unfold-axis": (
        lambda t: t.unfold(2, 3, 2),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 2)[:, :, ::2],
    ),
    "unfold-first": (
        lambda t: t.unfold(0, 2),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0),
    ),
    "pad-wrap": (
        lambda t: autograd.pad(t, "wrap", [1, 0, 7, 0, 2, 9]),
        lambda x: np.pad(x, ((1, 0), (0, 2), (7, 9)), "wrap"),
    ),
    "pad-circular": (
        lambda t: autograd.pad(t, "circular", [0, 1, 2, 0, 0, 1]),
        lambda x: np.pad(x, ((0, 0), (1, 0), (2, 1)), "wrap"),
    ),
    "pad-symmetric": (
        lambda t: autograd.pad(t, "symmetric", [1, 0, 7, 0, 2, 9]),
        lambda x: np.pad(x, ((1, 0), (0, 2), (7, 9)), "symmetric"),
    ),
    "pad-replicate": (
        lambda t: autograd.pad(t, "replicate", [1, 0, 0, 0, 2, 3]),
        lambda x: np.pad(x, ((1, 0), (0, 2), (0, 3)), "edge"),
    ),
}
for _name, (_tensors, _arrays) in CASES.items():
    table.add(_name, _tensors, _arrays, S)
table.add("diag", lambda t: t.diag(1), lambda x: np.diag(x, 1), (5,), empty=((0,),))
table.add("diag-matrix", lambda t: t.diag(-1), lambda x: np.diag(x, -1), (4, 3))
table.add("delete-bools", lambda t: autograd.delete(t, FLAGS, 0), lambda x: x[~FLAGS], (4, 3))
FLAGS = np.array([True, False, False, True])


def product(*xs):
    return np.array(list(itertools.product(*xs)))


table.add("cartesian_prod", autograd.cartesian_prod, product, (3,), (2,), (2,))
table.add("cartesian_prod-one", autograd.cartesian_prod, lambda x: x, (3,))
for _again in (False, True):
    _choose = itertools.combinations_with_replacement if _again else itertools.combinations
    table.add(
        f"combinations-{_again}",
        lambda t, again=_again: t.combinations(3, again),
        lambda x, choose=_choose: np.array(list(choose(x, 3))),
        (5,),
    )
table.add("combinations-none", lambda t: t.combinations(), lambda x: np.zeros((0, 2)), (1,))

GEOMETRY = {
    "plain": ((2, 3, 5, 4), (2, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
    "strided": ((1, 2, 7, 6), (3, 2), (1, 2), (1, 0, 2, 1), (2, 3)),
    "dilated": ((2, 1, 6, 7), (2, 3), (3, 2), (0, 1, 0, 1), (1, 2)),
    "line": ((2, 3, 8), (3,), (2,), (1, 2), (2,)),
    "volume": ((1, 2, 4, 3, 4), (2, 2, 3), (1, 1, 1), (0, 1, 0, 0, 0, 1), (2, 1, 1)),
}
for _name, (_shape, *_how) in GEOMETRY.items():
    table.add(
        f"unfold-{_name}",
        lambda x, how=_how: autograd.unfold(x, *how),
        lambda x, how=_how: windows(x, *how),
        _shape,
    )
    _columns = windows(np.zeros(_shape), *_how).shape
    table.add(
        f"fold-{_name}",
        lambda x, size=_shape[2:], how=_how: autograd.fold(x, size, *how),
        lambda x, size=_shape[2:], how=_how: folded(x, size, *how),
        _columns,
    )
table.add(
    "unfold-none",
    lambda x: autograd.unfold(x, 2),
    lambda x: windows(x, (2, 2), (1, 1), (0,) * 4, (1, 1)),
    (1, 1, 3, 3),
    empty=((0, 2, 3, 3),),
)


def shuffled(x, r):
    *rest, c, h, w = x.shape
    made = x.reshape(*rest, c // r**2, r, r, h, w)
    k = len(rest)
    made = made.transpose(*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return made.reshape(*rest, c // r**2, h * r, w * r)


table.add(
    "pixel_shuffle", lambda x: autograd.pixel_shuffle(x, 2), lambda x: shuffled(x, 2), (2, 8, 3, 2)
)
table.add(
    "pixel_shuffle-one", lambda x: autograd.pixel_shuffle(x, 3), lambda x: shuffled(x, 3), (9, 2, 2)
)
table.add(
    "pixel_unshuffle",
    lambda x: autograd.pixel_unshuffle(autograd.pixel_shuffle(x, 2), 2),
    lambda x: x,
    (2, 3, 4, 2, 3),
)


def response(x, size, alpha, beta, k):
    made = np.zeros_like(x)
    for c in range(x.shape[1]):
        low, high = max(c - size // 2, 0), c + (size - 1) // 2 + 1
        made[:, c] = (x[:, low:high] ** 2).sum(1) * alpha / size
    return x / (made + k) ** beta


for _size in (1, 3, 4):
    table.add(
        f"local_response_norm-{_size}",
        lambda x, n=_size: autograd.local_response_norm(x, n, 0.5, 0.6, 1.5),
        lambda x, n=_size: response(x, n, 0.5, 0.6, 1.5),
        (2, 5, 3, 2),
        empty=((2, 5, 0),),
    )

BAG = np.array([[2, 0, -1], [1, 1, 3]])
FLAT, STARTS = np.array([2, 0, 3, 1, 1, 3, -4]), np.array([0, 3, 3, 6])
FACTORS = np.linspace(0.5, 2, 7)
REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max}


def bags(w, mode, padding=None, factors=None):
    ends, made = [*STARTS[1:], len(FLAT)], []
    factors = np.ones(len(FLAT)) if factors is None else factors
    for a, b in zip(STARTS, ends, strict=True):
        kept = [i for i in range(a, b) if padding is None or FLAT[i] % 4 != padding]
        rows = w[FLAT[kept]] * factors[kept][:, None]
        made.append(REDUCE[mode](rows, 0) if len(rows) else np.zeros(w.shape[1]))
    return np.stack(made)


for _mode in REDUCE:
    table.add(
        f"embedding_bag-{_mode}",
        lambda w, mode=_mode: autograd.embedding_bag(plain(BAG), w, mode=mode),
        lambda w, mode=_mode: REDUCE[mode](w[BAG], 1),
        (4, 3),
        step=1e-5,
    )
    for _padding in (None, 0):
        table.add(
            f"embedding_bag-{_mode}-{_padding}",
            lambda w, mode=_mode, p=_padding: autograd.embedding_bag(
                FLAT, w, STARTS, mode, padding_idx=p
            ),
            lambda w, mode=_mode, p=_padding: bags(w, mode, p),
            (4, 3),
            step=1e-5,
        )
table.add(
    "embedding_bag-weights",
    lambda w, f: autograd.embedding_bag(FLAT, w, STARTS, "sum", f),
    lambda w, f: bags(w, "sum", None, f),
    (4, 3),
    (7,),
)
table.add(
    "embedding_bag-padding",
    lambda w: autograd.embedding_bag(BAG, w, padding_idx=-1),
    lambda w: np.stack([w[[2, 0]].mean(0), w[[1, 1]].mean(0)]),
    (4, 3),
)

LEAST = plain([[-np.inf], [2.0]], "float64")
INTS = np.arange(24).reshape(1, 2, 3, 4).astype(np.int32)
EXACT = {
    "unfold-int": (
        lambda: autograd.unfold(plain(INTS, "int32"), 2),
        lambda: windows(INTS, (2, 2), (1, 1), (0,) * 4, (1, 1)),
    ),
    "fold-int": (
        lambda: autograd.fold(plain(np.ones((1, 4, 6)), "int64"), (3, 4), 2),
        lambda: folded(np.ones((1, 4, 6)), (3, 4), (2, 2), (1, 1), (0,) * 4, (1, 1)).astype(int),
    ),
    "diag_embed-bool": (
        lambda: plain([True, False, True], "bool").diag_embed(),
        lambda: np.diag([True, False, True]),
    ),
    "diag_embed-nan": (
        lambda: plain([np.nan, np.inf], "float64").diag_embed(1),
        lambda: np.array([[0, np.nan, 0], [0, 0, np.inf], [0, 0, 0]]),
    ),
    "embedding_bag-infinite": (
        lambda: [
            autograd.embedding_bag([0, 1, 0], LEAST, [0, 1, 1], "max"),
            autograd.embedding_bag([[0, 1], [1, 1]], LEAST, mode="max", padding_idx=1),
        ],
        lambda: [np.array([[-np.inf], [0.0], [2.0]]), np.array([[-np.inf], [0.0]])],
    ),
    "embedding_bag-empty": (
        lambda: autograd.embedding_bag(plain(np.zeros((2, 0))), Tensor((3, 2)), mode="max"),
        lambda: np.zeros((2, 2), np.float32),
    ),
}


def of(*shape):
    return Tensor(shape or S)


IMAGE = (1, 2, 4, 4)
REFUSED = {
    "tensor_split: got 0": (ValueError, lambda: of().tensor_split(0)),
    "hsplit: got 3 parts": (ShapeError, lambda: of().hsplit(3)),
    "vsplit: got shape": (ShapeError, lambda: of(3).vsplit(3)),
    "dsplit: got shape": (ShapeError, lambda: of(3, 3).dsplit(3)),
    "select: got index 4": (ValueError, lambda: of().select(1, 4)),
    "diag_embed: got shape": (ShapeError, lambda: Tensor(()).diag_embed()),
    "diag_embed: got axes": (ValueError, lambda: of(3).diag_embed(0, 1, 1)),
    "diag: got shape": (ShapeError, lambda: of().diag()),
    "cartesian_prod: got shapes": (ShapeError, lambda: autograd.cartesian_prod(of(2, 2))),
    "combinations: got shape": (ShapeError, lambda: of().combinations()),
    "combinations: got r -1": (ValueError, lambda: of(3).combinations(-1)),
    "delete: got a Tensor": (TypeError, lambda: autograd.delete(of(), plain([1]), 0)),
    "delete: index 7": (ValueError, lambda: autograd.delete(of(), [7], 0)),
    "unfold: got shape": (ShapeError, lambda: autograd.unfold(of(2, 3), 2)),
    "unfold: got windows": (ShapeError, lambda: autograd.unfold(of(*IMAGE), 5)),
    "unfold: got kernel_size 0": (ValueError, lambda: autograd.unfold(of(*IMAGE), 0)),
    "unfold: got padding -1": (ValueError, lambda: autograd.unfold(of(*IMAGE), 2, padding=-1)),
    "unfold: got size 7": (ValueError, lambda: of().unfold(2, 7)),
    "fold: got shape": (ShapeError, lambda: autograd.fold(of(1, 8, 8), (4, 4), 2)),
    "fold: got output_size": (ValueError, lambda: autograd.fold(of(1, 8, 9), (1, 2, 3, 4), 2)),
    "channel_shuffle: got shape": (ShapeError, lambda: autograd.channel_shuffle(of(), 3)),
    "channel_shuffle: got 0": (ValueError, lambda: autograd.channel_shuffle(of(), 0)),
    "pixel_shuffle: got shape": (ShapeError, lambda: autograd.pixel_shuffle(of(4, 4), 2)),
    "pixel_unshuffle: got factor 0": (ValueError, lambda: autograd.pixel_unshuffle(of(), 0)),
    "local_response_norm: got shape": (
        ShapeError,
        lambda: autograd.local_response_norm(of(2, 3), 2),
    ),
    "local_response_norm: got size 0": (
        ValueError,
        lambda: autograd.local_response_norm(of(*IMAGE), 0),
    ),
    "alpha_dropout: got ratio 1": (ValueError, lambda: autograd.alpha_dropout(of(), 1)),
    "feature_alpha_dropout: got shape": (
        ShapeError,
        lambda: autograd.feature_alpha_dropout(of(3), 0.5),
    ),
    "feature_dropout: ratio": (ValueError, lambda: autograd.feature_dropout(of(), -0.5)),
    "embedding_bag: got mode": (
        ValueError,
        lambda: autograd.embedding_bag(BAG, of(4, 3), mode="x"),
    ),
    "embedding_bag: got indices": (ShapeError, lambda: autograd.embedding_bag(FLAT, of(4, 3))),
    "embedding_bag: got weights and": (
        ValueError,
        lambda: autograd.embedding_bag(BAG, of(4, 3), per_sample_weights=of(2, 3)),
    ),
    "embedding_bag: got weights of": (
        ShapeError,
        lambda: autograd.embedding_bag(BAG, of(4, 3), mode="sum", per_sample_weights=of(3, 2)),
    ),
    "embedding_bag: got padding_idx 4": (
        ValueError,
        lambda: autograd.embedding_bag(BAG, of(4, 3), padding_idx=4),
    ),
    "embedding_bag: got offsets": (
        ShapeError,
        lambda: autograd.embedding_bag(FLAT, of(4, 3), [[0]]),
    ),
    "pad: got mode 'mirror'": (ValueError, lambda: autograd.pad(of(3), "mirror", [1, 1])),
}
