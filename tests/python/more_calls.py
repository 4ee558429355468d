"""Valid arguments of further functions and layers, as in `test_wrong_calls`."""

from singa_rs import layer
from wrong_calls import just, of

T, INTS = of(2, 3), of(3, dtype="int32")
PLACES = of(2, 3, dtype="int32")
IMAGE = of(1, 4, 4, 4)
GOOD = {
    **{name: [T, just(1)] for name in ("tensor_split", "array_split", "vsplit", "hsplit")},
    "dsplit": [IMAGE, just(2)],
    "select": [T, just(0), just(1)],
    "diag_embed": [T],
    "cartesian_prod": [of(3), of(2)],
    "combinations": [of(3)],
    "append": [T, T],
    "delete": [T, just([1])],
    "unfold": [IMAGE, just(2)],
    "fold": [of(1, 4, 9), just((4, 4)), just(2)],
    "channel_shuffle": [IMAGE, just(2)],
    "pixel_shuffle": [IMAGE, just(2)],
    "pixel_unshuffle": [IMAGE, just(2)],
    "local_response_norm": [IMAGE, just(3)],
    "embedding_bag": [PLACES, of(4, 2)],
    "scatter": [T, just(0), PLACES, T],
    "scatter_reduce": [T, just(0), PLACES, T, just("sum")],
    "put_along_axis": [T, PLACES, T],
    "index_put": [T, just(([0],)), just(1.0)],
    "masked_scatter": [T, of(2, 3, dtype="bool"), T],
    **{name: [T, just(0.5)] for name in ("nanquantile", "nanpercentile", "float_power", "ldexp")},
    "kthvalue": [T, just(1)],
    "isin": [T, of(3)],
    "digitize": [T, of(3)],
    "correlate": [of(3), of(2)],
    "addmv": [of(2), T, of(3)],
    "addr": [T, of(2), of(3)],
    "addbmm": [T, of(1, 2, 3), of(1, 3, 3)],
    "matrix_power": [of(3, 3), just(2)],
    "multi_dot": [lambda: [T(), of(3, 2)()]],
    "slice_scatter": [T, T],
    "select_scatter": [T, of(3), just(0), just(1)],
    "unravel_index": [INTS, just((2, 3))],
    "ravel_multi_index": [lambda: [[0, 1], [1, 2]], just((2, 3))],
    "partition": [T, just(1)],
    "argpartition": [T, just(1)],
    "polyval": [of(3), T],
    "row_stack": [lambda: [T(), T()]],
    **{f"clamp_{end}": [T, just(0.5)] for end in ("min", "max")},
    "randint_like": [T, just(3)],
    **{
        f"{name}{axes}d": [of(1, 4, *(4,) * axes), *more(axes)]
        for axes in (1, 2, 3)
        for name, more in {
            "conv": lambda axes: [of(2, 4, *(3,) * axes)],
            "conv_transpose": lambda axes: [of(4, 2, *(3,) * axes)],
            "max_pool": lambda axes: [just(2)],
            "avg_pool": lambda axes: [just(2)],
            "max_unpool": lambda axes: [of(1, 4, *(4,) * axes, dtype="int32"), just(2)],
            "adaptive_avg_pool": lambda axes: [just(2)],
            "adaptive_max_pool": lambda axes: [just(2)],
        }.items()
        if (name, axes) != ("conv", 2)
    },
    "multi_margin_loss": [T, of(2, dtype="int32")],
    "multilabel_margin_loss": [T, PLACES],
    "gaussian_nll_loss": [T, T, T],
    "take_along_dim": [T, PLACES],
    "repeat_interleave": [T, just(2)],
    "movedim": [T, just(0), just(1)],
    "swapdims": [T, just(0), just(1)],
    "permute": [T, just((1, 0))],
    "expand_dims": [T, just(0)],
    "concat": [lambda: [T(), T()]],
    "logspace": [just(0), just(1)],
    "geomspace": [just(1), just(2)],
    "tri": [just(3)],
    "tril_indices": [just(3)],
    "triu_indices": [just(3)],
    "empty": [just((2,))],
}
#: Layers that compute nothing of their own.
LISTS = ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
NEEDS = {name: (1,) for name in layer.__all__ if "Pad" in name}
NEEDS |= {
    "Threshold": (0.5, 1.0),
    "Unfold": (2,),
    "Fold": ((4, 4), 2),
    "Unflatten": (1, (3, 1)),
    "ChannelShuffle": (2,),
    "LocalResponseNorm": (3,),
    "Bilinear": (2,),
    "EmbeddingBag": (4, 3),
}
