"""Networks are exported for images of any height and width: extents that are divided and rounded,
images that are padded by their own elements or resampled."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import model, real, there
from singa_rs import autograd, layer, module, sonnx
from singa_rs.sonnx.extents import Extent, plus, quotient, times
from test_sonnx_export import check, here, kinds

A = autograd
ANY = {"x": {0: "n", 2: "h", 3: "w"}}
OTHERS = [(1, 3, 17, 21), (3, 3, 26, 19), (2, 3, 31, 12)]


class Residual(module.Module):
    """A stem and two blocks that halve an image, as in ResNets."""

    def __init__(self):
        super().__init__()
        self.stem, self.pool = layer.Conv2d(4, 7, stride=2, padding=3), layer.MaxPool2d(3, 2, 1)
        self.long = [layer.Conv2d(4, 3, stride=2, padding=1) for _ in range(2)]
        self.short = [layer.Conv2d(4, 1, stride=2) for _ in range(2)]
        self.head = layer.Linear(5)

    def forward(self, x):
        x = self.pool(self.stem(x))
        for a, b in zip(self.long, self.short, strict=True):
            x = A.relu(a(x) + b(x))
        return self.head(x.mean(axis=(2, 3))), A.adaptive_avg_pool2d(x, 1), A.var(x, (2, 3))


class UNet(module.Module):
    """An image made smaller, then as large as it was on the way, twice."""

    def __init__(self, enlarge):
        super().__init__()
        self.enlarge = enlarge
        self.down = [layer.Conv2d(4, 3, padding=1) for _ in range(3)]
        self.up = [layer.Conv2d(4, 3, padding=1) for _ in range(2)]

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](A.max_pool2d(a, 2))
        c = self.down[2](A.max_pool2d(b, 2))
        b = self.up[0](A.cat([self.enlarge(c, b), b], 1))
        return self.up[1](A.cat([self.enlarge(b, a), a], 1))


def padded(x, like):
    """Twice as large, and the rest as the outermost elements."""
    more = [n - 2 * m for n, m in zip(like.shape[2:], x.shape[2:], strict=True)]
    return A.pad(A.interpolate(x, scale=2), "edge", [0] * 6 + more)


def sized(*how):
    return lambda x, like: A.interpolate(x, like.shape[2:], None, *how)


def tokens(x):
    return A.softmax(PATCHES(x).reshape((x.shape[0], 6, -1)).transpose((0, 2, 1)), 1)


def even(x):
    if x.shape[2] % 2 or x.shape[3] % 2:
        raise ValueError("want even sizes")
    return A.cat([x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)], 1)


PATCHES, HALF = layer.Conv2d(6, 4, stride=4), layer.Conv2d(4, 3, stride=2, padding=1)
THIRDS = layer.Conv2d(2, 3, stride=3)
NETWORKS = {
    "residual": Residual(),
    "to sizes": UNet(sized()),
    "bilinear": UNet(sized("bilinear")),
    "corners": UNet(sized("bilinear", "align_corners")),
    "padded": UNet(padded),
    "tokens": tokens,
    "rows": lambda x: PATCHES(x).permute(0, 2, 3, 1).reshape((-1, 6)) * 2,
    "strides": lambda x: THIRDS(HALF(x)),
    "rounded up": lambda x: A.max_pool(x, 3, 2, 1, ceil_mode=True),
    "windows apart": lambda x: A.max_pool(x, 2, 3, 0, ceil_mode=True),
    "means": lambda x: A.avg_pool(x, 2, 2, ceil_mode=True),
    "shuffled": lambda x: A.pixel_shuffle(HALF(x), 2),
    "in steps": lambda x: (
        x[:, :, ::2] * 1,
        x[:, :, 1::3] * 2,
        x[..., ::-2] * 3,
        x[:, :, ::-3] * 4,
    ),
    "even": lambda x: x[:, :, : 2 * (x.shape[2] // 2)] * 1,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name):
    check(NETWORKS[name], [real(2, 3, 18, 16)], ANY, [[real(*shape)] for shape in OTHERS])


RESAMPLED = {
    "reflected": layer.ReflectionPad2d(2),
    "repeated": layer.ReplicationPad2d((1, 2, 0, 3)),
    "circular": layer.CircularPad2d(1),
    "twice": layer.UpsamplingBilinear2d(scale_factor=2),
    "more": lambda x: A.interpolate(x, scale=1.5, mode="bilinear"),
    "nearest": lambda x: A.interpolate(x, scale=1.5),
    "less": lambda x: A.interpolate(x, scale=0.7, mode="bilinear"),
    "by axis": lambda x: A.interpolate(x, scale=(2, 1.5), mode="bilinear"),
    "cubic": lambda x: A.interpolate(x, scale=2, mode="bicubic"),
    "smooth": lambda x: A.interpolate(x, scale=0.5, mode="bilinear", antialias=True),
    "one size": lambda x: A.interpolate(x, (7, 5), mode="bilinear"),
    "as large": lambda x: A.interpolate(HALF(x), x.shape[2:], mode="bilinear")[:, :3] + x,
}


@pytest.mark.parametrize("name", RESAMPLED)
def test_images_are_padded_and_resampled(name):
    shapes = [(2, 3, 11, 9), (1, 3, 20, 23)]
    proto = check(RESAMPLED[name], [real(2, 3, 10, 8)], ANY, [[real(*one)] for one in shapes])
    assert set(kinds(proto)) & {"Pad", "Resize"}


FRACTIONS = [
    {"scale": (2, 0.7), "mode": "linear"},
    {"scale": (2, 0.7)},
    {"scale": (1.5, 0.7), "mode": "cubic"},
    {"scale": (2, 1.4), "mode": "linear"},  # times 5 is less than 7 in float32
    {"scale": (1.3, 1.4)},
    {"scale": (1.5, 1.15)},  # times 100 is 115 in float32, but not in float64
    {"scale": (0.7, 1.3), "mode": "linear", "antialias": True},
    {"scale": (1.5, 1.3), "mode": "linear", "coordinates": "align_corners"},
    {"scale": (0.7, 1.4), "coordinates": "align_corners"},
]


@pytest.mark.parametrize("width", [5, 7, 10, 100])
@pytest.mark.parametrize("how", FRACTIONS, ids=str)
def test_fractions_beside_a_dynamic_axis(how, width):
    if width > 10 and "mode" in how:
        pytest.skip("weights of float32 places")

    def call(x):
        return A.interpolate(x, **how)

    x = real(1, 2, 9, width)
    proto = check(call, [x], {"x": {2: "h"}}, [[real(1, 2, 14, width)]])
    np.testing.assert_allclose(sonnx.prepare(proto).run([x])[0], here(call, [x])[0], atol=1e-5)


@pytest.mark.parametrize(
    ("coordinates", "said"),
    [
        ("align_corners", "antialias by a scale, with aligned corners"),
        ("pytorch_align_corners", "ONNX has no coordinates 'pytorch_align_corners'"),
    ],
)
def test_aligned_corners_with_antialias_that_onnx_lacks_are_refused(coordinates, said):
    with pytest.raises(NotImplementedError, match=said):
        sonnx.model_proto(
            lambda x: A.interpolate(x, None, 0.7, "linear", coordinates, antialias=True),
            [real(2, 3, 8, 8)],
            dynamic=ANY,
        )


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_scales_that_align_corners_mean_what_pytorch_does_in_its_models(mode):
    how = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["y"], **how)]
    scales, x = np.float32([1, 1, 1, 1.7]), real(1, 2, 3, 9)
    theirs = model(nodes, {"x": x}, ["y"], {"scales": scales})
    aligned = A.interpolate(x, (3, 15), None, mode, "align_corners").to_numpy()
    theirs.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "w"
    assert np.abs(sonnx.prepare(theirs).run([x])[0] - aligned).max() > 0.01  # as ONNX has it
    theirs.producer_name = "pytorch"
    ours = sonnx.model_proto(sonnx.SONNXModel(theirs), [x], dynamic={"x": {3: "w"}})
    for one in (theirs, ours):
        np.testing.assert_allclose(sonnx.prepare(one).run([x])[0], aligned, atol=1e-5)
        np.testing.assert_allclose(there(one, [x])[0], aligned, atol=1e-5)


def test_models_of_even_sizes_alone():
    others = [[real(2, 3, 12, 10)], [real(2, 3, 8, 22)]]
    check(even, [real(2, 3, 8, 8)], ANY, others)
    up = layer.ConvTranspose2d(4, 2, stride=2)
    check(UNet(lambda x, _: up(x)), [real(1, 3, 8, 8)], ANY, [[real(1, 3, 12, 20)]])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("align", [False, True])
def test_samples_of_any_size(mode, padding, align):
    dynamic = {"x0": {0: "n", 2: "h", 3: "w"}, "x1": {0: "n", 1: "m"}}
    others = [[real(1, 2, 7, 4), real(1, 3, 3, 2)], [real(2, 2, 4, 9), real(2, 6, 3, 2)]]
    check(lambda x, grid: A.grid_sample(x, grid, mode, padding, align),
          [real(2, 2, 5, 6), real(2, 4, 3, 2)], dynamic, others)  # fmt: skip


def test_filters_of_any_size():
    dynamic = {"x0": {2: "h"}, "x1": {2: "k"}}
    others = [[real(2, 3, 12, 8), real(4, 3, 5, 3)], [real(2, 3, 7, 8), real(4, 3, 4, 3)]]
    check(lambda x, w: A.conv(x, w, None), [real(2, 3, 9, 8), real(4, 3, 3, 3)], dynamic, others)


def test_half_precision_is_resampled_in_single():
    def call(x):
        return A.cast(A.interpolate(A.cast(x, "float16"), scale=2, mode="bilinear"), "float32")

    check(call, [real(2, 3, 8, 8)], ANY, [[real(2, 3, 9, 7)]])


def test_what_onnx_has_no_padding_for_is_refused():
    with pytest.raises(NotImplementedError, match="pad: ONNX has no mode 'symmetric'"):
        sonnx.model_proto(lambda x: A.pad(x, "symmetric", [0, 0, 1, 1] * 2), [real(2, 3, 8, 8)],
                          dynamic=ANY)  # fmt: skip


def test_determinants():
    check(A.det, [np.eye(3, dtype=np.float32) + real(4, 3, 3)], {"x": {0: "n"}}, [[real(2, 3, 3)]])
    with pytest.raises(NotImplementedError, match="export: linalg: cholesky: ONNX has no such"):
        sonnx.model_proto(A.cholesky, [np.eye(3, dtype=np.float32)])


H, W = (Extent({(name,): 1}) for name in "hw")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (quotient(plus(H, 1), 2), "((1 + h) // 2)"),
        (quotient(plus(quotient(plus(H, 1), 2), 1), 2), "((3 + h) // 4)"),
        (quotient(plus(times(H, 4), 5), 2), "2 + 2*h"),
        (quotient(plus(times(H, 4), times(W, 3)), 2), "(3*w // 2) + 2*h"),
        (quotient(plus(times(H, 4), 3), 6), "(1 + 2*h) // 3"),
        (times(plus(H, 1), quotient(W, 2)), "(w // 2) + (w // 2)*h"),
    ],
)
def test_extents_are_simple(made, text):
    assert str(made) in (text, f"({text})")
    for h in range(9):
        for w in range(9):
            sizes = {"h": h, "w": w}
            assert made.at(sizes) == eval(text, {}, sizes)
