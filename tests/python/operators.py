"""Writes docs/operators.md: what every function of `autograd` takes, whether it has a gradient, and
what ONNX and PyTorch call it.

    python tests/python/operators.py

Dtypes and gradients are found by calling the functions; other names are those that the first
paragraphs of docstrings cite, such as "(ONNX Gelu, PyTorch gelu)".
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
from cases import CASES, NO_GRADIENT
from cases.base import ALL, FLOATS, INTS
from singa_rs import _core, autograd
from singa_rs.autograd.table import FUNCTIONS
from singa_rs.errors import DTypeError, GraphError
from singa_rs.tensor import Tensor, from_numpy, is_tensor
from valid_calls import GOOD, IMAGE, T
from wrong_calls import just

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
#: Functions that are no operators: they drive backward, or compute with shapes.
NOT_OPERATORS = {"backward", "gradients", "axis_helper"}
#: A source that a docstring cites: another library's name, or a paper.
CITED = re.compile(r"\b(ONNX|PyTorch|NumPy|SINGA) ([A-Za-z_][\w.]*(?:, \dd)*)")
PAPER = re.compile(r"\([^()]*\b(?:1[89]|20)\d\d\b")
#: PyTorch's names of functions whose docstrings do not cite it: the same, or `name=other`.
PYTORCH = dict(
    (name, other or name)
    for name, _, other in (
        row.partition("=")
        for row in """
            abs acos acosh add all allclose any argmax argmin argsort argwhere asin asinh atan atanh
            atleast_1d atleast_2d atleast_3d bincount broadcast_to cat ceil celu clip column_stack
            conv2d copysign corrcoef cos cosh count_nonzero cov cumprod cumsum deg2rad diagonal diff
            div dropout dstack einsum elu embedding erf exp exp2 expand expm1 flatten flip fliplr
            flipud floor floor_divide fmax fmin fmod gelu gradient greater greater_equal group_norm
            hardsigmoid hardswish heaviside hstack hypot inner instance_norm isclose isfinite isinf
            isnan kron layer_norm less less_equal log log10 log1p log2 log_softmax logaddexp
            logaddexp2 logical_and logical_not logical_or logical_xor matmul max maximum mean
            meshgrid min minimum mish moveaxis mul nan_to_num nanmean nansum negative
            nonzero norm not_equal outer pad pow prelu rad2deg reciprocal relu remainder reshape
            rms_norm roll rot90 scaled_dot_product_attention searchsorted selu sigmoid sign signbit
            silu sin sinc sinh softmax softplus softsign split sqrt square squeeze stack std sub sum
            swapaxes take tan tanh tensordot tile trace trapezoid tril triu trunc unique unsqueeze
            vander var vdot vstack where _and=logical_and array_equal=equal
            back_broadcast=sum_to_size batchnorm_2d=batch_norm cast=to constant_of_shape=full
            cossim=cosine_similarity depth_to_space=pixel_shuffle equal=eq gather=index_select
            gelu_tanh=gelu gemm=addmm globalaveragepool=adaptive_avg_pool2d leakyrelu=leaky_relu
            _not=logical_not onehot=one_hot _or=logical_or pooling_2d=max_pool2d
            ranking_loss=margin_ranking_loss reduce_max=amax reduce_mean=mean reduce_min=amin
            reduce_prod=prod reduce_sum=sum repeat=repeat_interleave rounde=round
            scatter_elements=scatter space_to_depth=pixel_unshuffle transpose=permute
            upsample=interpolate _xor=logical_xor bitwise_and bitwise_not bitwise_or bitwise_xor
            left_shift=bitwise_left_shift right_shift=bitwise_right_shift
        """.split()
    )
)
#: The headings, and the files of `autograd` below each; other files have their own.
FAMILIES = {
    "Element by element": (
        "unary parametrised special binary math activations finite casting powers pairs"
    ),
    "Reductions and running sums": "reduce statistics scan",
    "Shape and order": "shape views arrange axes repeat ops",
    "Positions": "index along positions scattering",
    "Sorting and searching": "sorting searching",
    "Products": "matmul contract products",
    "Linear algebra": "factors systems",
    "Convolution, pooling, dropout": "nn adaptive",
    "Resampling": "resize grid",
    "Normalisation": "norm",
    "Attention": "attention",
    "Recurrent networks": "recurrent",
    "Losses": "loss classification divergence distance ctc",
}


def operators():
    """The functions by name."""
    plain = {name: one for name, one in FUNCTIONS.items() if not inspect.isclass(one)}
    return {name: plain[name] for name in sorted(plain) if name not in NOT_OPERATORS}


def home(function):
    """The file of `autograd` that a function stands in."""
    code = inspect.unwrap(function)
    stem = Path(code.__code__.co_filename).stem
    rule = inspect.getclosurevars(code).nonlocals.get("rule")
    return rule.__module__.rpartition(".")[2] if stem == "rule" else stem


def family(function):
    """The heading that a function stands under."""
    file = home(function)
    for heading, files in FAMILIES.items():
        if file in files.split():
            return heading
    doc = import_module(f"singa_rs.autograd.{file}").__doc__
    return re.split(r"[.:]", doc.replace("\n", " "))[0]


def cited(function):
    """The names that the first paragraph of a docstring cites, by library, and papers as such."""
    first = inspect.getdoc(function).split("\n\n")[0].replace("\n", " ")
    found = {}
    for library, name in CITED.findall(" ".join(re.findall(r"\(([^()]*)\)", first))):
        found.setdefault(library, []).append(name.rstrip("."))
    if PAPER.search(first) or "omposition of" in first:
        found["paper"] = []
    return found


#: Valid arguments, where those of `valid_calls` are another function's or leave a choice.
ARGUMENTS = GOOD | {"bernoulli": [T], "interpolate": [IMAGE, just(2)]}


def valid(function):
    """Valid arguments, by default tensors of float32."""
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind != p.KEYWORD_ONLY]
    makes = ARGUMENTS.get(function.__name__, ())
    makes = [*makes, *[lambda: Tensor((2, 3))] * (len(needed) - len(makes))]
    return [make() for make in makes]


def takes_floats(given):
    """Whether tensors of floats are among arguments."""
    return any(one.dtype.is_float for _, one in tensors(given))


def arguments(function, dtype, values=lambda size, place: np.ones(size), first=False):
    """Valid arguments; the tensors of floats, or else those of integers, or only the `first`, have
    a dtype, and values by their number and place."""
    given = valid(function)
    are_floats, start = takes_floats(given), [place for place, _ in tensors(given)][:1]

    def made(value, place):
        if isinstance(value, list):
            return [made(one, place) for one in value]
        if is_tensor(value) and value.dtype.name == "bool":
            return Tensor(data=(np.arange(value.numel) % 2 == 0).reshape(value.shape))
        if not is_tensor(value) or value.dtype.is_float != are_floats:
            return value
        if first and [place] != start:
            return value
        return Tensor(data=values(value.numel, place).reshape(value.shape), dtype=dtype)

    return [made(value, place) for place, value in enumerate(given)]


def tensors(given):
    """The places and tensors among arguments."""
    for place, value in enumerate(given):
        for one in value if isinstance(value, list) else [value]:
            if is_tensor(one):
                yield place, one


def results(made):
    """The tensors that a function returned."""
    return [one for one in (made if isinstance(made, list | tuple) else [made]) if is_tensor(one)]


def called(function, dtype):
    """The results for a dtype, or None if it is refused. Parameters of half-precision images may
    have to be float32."""
    for first in (False, True)[: 1 + (dtype in FLOATS)]:
        try:
            return results(function(*arguments(function, dtype, first=first)))
        except DTypeError:
            pass
    return None


def dtypes(function):
    """Which dtypes a function takes, and that of its first result where it is another one."""
    made = {dtype: called(function, dtype) for dtype in ALL}
    taken = [dtype for dtype in ALL if made[dtype] is not None]
    if "to" in inspect.signature(function).parameters or not any(made[d] for d in taken):
        return summed(taken)
    out = {dtype: made[dtype][0].dtype.name for dtype in taken}
    if len(set(out.values())) == 1:
        return f"{summed(taken)} to {out[taken[0]]}"
    return by_result(out)


def by_result(out):
    """The dtypes that stay as they are, and what others become; integers together."""
    found = {}
    for dtype, to in out.items():
        found.setdefault(to, []).append(dtype)
    same = [
        d for d, to in out.items() if to == d and not (d in INTS and set(INTS) <= set(found[d]))
    ]
    others = {to: [d for d in some if d not in same] for to, some in found.items()}
    texts = [f"{summed(some)} to {to}" for to, some in others.items() if some]
    return "; ".join([summed(same), *texts])


def summed(some):
    """Dtypes in few words."""
    if set(some) == set(ALL):
        return "all"
    words, left = [], list(some)
    for word, group in (("floats", FLOATS), ("integers", INTS)):
        if set(group) <= set(left):
            words.append(word)
            left = [d for d in left if d not in group]
    return ", ".join([*words, *left])


def gradient(function):
    """The arguments that have a gradient: "yes" for all tensors of floats."""
    if not takes_floats(valid(function)):
        return "no"
    given = arguments(function, "float32", lambda n, place: np.linspace(0.1, 0.9 - place / 9, n))
    floats = [(place, one) for place, one in tensors(given) if one.dtype.is_float]
    for _, one in floats:
        one.stores_grad = True
    autograd.training = True
    try:
        made = [y for y in results(function(*given)) if y.dtype.is_float and y.requires_grad]
        if not made:
            return "no"
        found = autograd.gradients(autograd.add_all(*map(weighted, made)))
    except GraphError:  # refused where gradients are recorded
        return "no"
    finally:
        autograd.training = False
    return which(function, [place for place, one in floats if one in found], floats, found)


def weighted(y):
    """A sum to which elements contribute with different weights."""
    return (y * from_numpy(np.linspace(1, 2, y.numel).reshape(y.shape))).sum()


def which(function, places, floats, found):
    """The arguments at these places in words."""
    if not places:
        return "no"
    if not any(np.any(dx.to_numpy()) for dx in found.values()):
        return "zero"
    if len(places) == len(floats):
        return "yes"
    names = list(inspect.signature(function).parameters)
    return ", ".join(f"`{names[place]}`" for place in places)


def row(name, function):
    """A function's row of its table."""
    names = cited(function)
    torch = names.get("PyTorch", [PYTORCH[name]] if name in PYTORCH else [])
    cells = (
        ", ".join(f"`{one}`" for one in some) or "–" for some in (names.get("ONNX", []), torch)
    )
    return [f"`{name}`", dtypes(function), gradient(function), *cells]


def table(head, rows):
    """Rows in Markdown."""
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def engine():
    """The engine's operations, by dtypes and gradients."""
    names, found = _core.operations(), {}
    differentiated = {case.name for case in CASES if case.gradient}
    differentiated |= {name for name, why in NO_GRADIENT.items() if ": test_" in why}
    for name in names:
        if name.removesuffix("_grad") in names and name.endswith("_grad"):
            continue
        some = {dtype for case in CASES if case.name == name for dtype in case.dtypes}
        why = "yes" if name in differentiated else f"no: {NO_GRADIENT[name]}"
        found.setdefault((why, summed([d for d in ALL if d in some]) or "–"), []).append(name)
    rows = sorted(found.items(), key=lambda item: (item[0][0] != "yes", item[0]))
    return [[", ".join(f"`{n}`" for n in names), *reversed(key)] for key, names in rows]


HEAD = """# Operators

Written by `python tests/python/operators.py`, which calls every function of `autograd`.

The dtypes are those of an operator's tensors of floats, or of its indices if it has none: float64,
float32, float16 and bfloat16 are "floats", int64, int32, int8 and uint8 "integers". "to" tells the
dtype of the result where it is another one. The gradient is that of all these tensors, or of the
arguments that are named; "zero" says that it is 0 everywhere. ONNX and PyTorch have the closest
operator under the name given; how it differs, if it does, is in the docstring.

Axes are called `axis` or `axes`, as in NumPy and ONNX, and `keepdims` keeps them. PyTorch's `dim`,
`dims` and `keepdim` are taken for these, and its names of some other arguments, such as `unbiased`;
`max` and `min` with `dim` give values and indices. A function whose namesake in PyTorch gives
something else, such as `median`, is refused under PyTorch's names.

int16, uint16, uint32 and uint64 are stored, moved and converted, and nothing else: `cat`, `gather`,
`where`, `cast`, indexing and copies take them.
"""
ENGINE = """What functions are made of, and what recordings consist of. The gradient of `f` is
`f_grad` if it is an operation of its own.
"""


def page():
    """The text of the page."""
    by_family = {heading: [] for heading in FAMILIES}
    for name, function in operators().items():
        by_family.setdefault(family(function), []).append(row(name, function))
    lines = [HEAD]
    for heading, rows in by_family.items():
        columns = ["function", "dtypes", "gradient", "ONNX", "PyTorch"]
        lines += [f"## {heading}", "", *table(columns, rows), ""]
    lines += ["## Operations of the engine", "", ENGINE]
    lines += table(["operations", "dtypes", "gradient"], engine())
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
