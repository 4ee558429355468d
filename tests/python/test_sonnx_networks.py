"""What is read from ONNX of networks: convolution, pooling, normalisation, resampling, recurrent
layers, attention, signals; beyond onnx's own suite."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import agrees, model, needs, one, real, replays, run, slopes
from singa_rs import autograd, sonnx
from singa_rs.sonnx.arrays import from_array
from singa_rs.tensor import Tensor, to_numpy

IMAGE, LINE = real(2, 4, 7, 6), real(2, 4, 9)


def wide(*shape):
    return real(*shape).astype(np.float64)


def ints(*values):
    return np.array(values, np.int64)


def vector(n=4, seed=0):
    return np.abs(real(n, seed=seed)) + 0.5


#: A scale, a bias, a mean and a variance.
AVERAGES = {name: vector(seed=i) for i, name in enumerate(("scale", "bias", "mean", "var"))}
#: The same for each element of an image.
OF_ELEMENTS = [np.abs(real(4, 7, 6, seed=i)) for i in range(4)]


@pytest.mark.parametrize(
    ("op", "xs", "attributes"),
    [
        ("Conv", [LINE, real(6, 2, 3)], {"group": 2, "auto_pad": "SAME_LOWER", "strides": [2]}),
        ("ConvTranspose", [IMAGE, real(4, 1, 3, 3)], {"output_shape": [14, 13], "strides": [2, 2]}),
        ("MaxPool", [IMAGE], {"kernel_shape": [3, 2], "outputs": 2, "pads": [1, 0, 1, 1]}),
        ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "outputs": 2, "storage_order": 1}),
        ("AveragePool", [LINE], {"kernel_shape": [3], "dilations": [2], "ceil_mode": 1}),
        ("LpPool", [IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 1], "p": 3}),
        ("GlobalLpPool", [IMAGE], {"p": 3}),
        ("LRN", [IMAGE], {"size": 3, "alpha": 0.3}),
        ("GroupNormalization", [IMAGE, vector(2), vector(2, 1)], {"num_groups": 2, "opset": 18}),
        ("LayerNormalization", [IMAGE, real(7, 6)], {"axis": -2, "outputs": 3}),
        ("BatchNormalization", [IMAGE, *AVERAGES.values()], {"opset": 9}),
        ("BatchNormalization", [IMAGE, *OF_ELEMENTS], {"spatial": 0, "opset": 7}),
        (
            "BatchNormalization",
            [IMAGE, *AVERAGES.values()],
            {"training_mode": 1, "outputs": 3, "momentum": 0.7, "opset": 15},
        ),
        ("Upsample", [IMAGE, np.array([1, 1, 2, 1.5], np.float32)], {"mode": "linear", "opset": 9}),
        ("Resize", [IMAGE, np.array([1, 1, 0.6, 2], np.float32)], {"opset": 10}),
        (
            "Resize",
            [IMAGE, None, None, ints(2, 4, 3, 4)],
            {"mode": "cubic", "antialias": 1, "exclude_outside": 1, "opset": 19},
        ),
        (
            "Resize",
            [IMAGE, None, np.array([1, 1, 0.5, 0.7], np.float32)],
            {
                "coordinate_transformation_mode": "half_pixel_symmetric",
                "nearest_mode": "ceil",
                "opset": 19,
            },
        ),
        (
            "Resize",
            [real(1, 1, 4, 9), None, np.array([1, 1, 0.6, 0.6], np.float32)],
            {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "opset": 13},
        ),
        ("DFT", [real(2, 12, 2), np.array(9)], {"axis": 1, "inverse": 1, "opset": 17}),
        ("MaxRoiPool", [IMAGE, np.float32([[1, 0, 1, 9, 5]])], {"pooled_shape": [2, 3]}),
        (
            "RoiAlign",
            [IMAGE, np.float32([[0, 1, 4, 3], [1, 1, 6, 5]]), ints(1, 0)],
            {"output_height": 2, "output_width": 2, "mode": "max", "opset": 10},
        ),
        ("SoftmaxCrossEntropyLoss", [LINE, np.ones((2, 9), np.int64)], {"outputs": 2}),
    ],
)
def test_other_opsets_and_modes(op, xs, attributes):
    agrees(op, *xs, rtol=1e-4, atol=1e-4, **attributes)


@pytest.mark.parametrize("x", [real(2, 4, 1, 1), real(2, 4, 1), real(1, 4, 1, 1, 1)], ids=np.shape)
def test_channels_of_one_value(x):
    agrees("InstanceNormalization", x, vector(), vector(seed=1), atol=1e-4)
    agrees("GroupNormalization", x, vector(), vector(seed=1), num_groups=4)
    agrees("GroupNormalization", x, vector(), vector(seed=1), num_groups=4, opset=18)
    agrees("LayerNormalization", x, vector(1), vector(1, 1))
    agrees("InstanceNormalization", *[one.astype(np.float16) for one in (x, vector(), vector())])
    slopes("InstanceNormalization", *[one.astype(np.float64) for one in (x, vector(), vector())])


ACTIVATIONS = [
    ("HardSigmoid", "Softsign", "Elu"),
    ("Relu", "ScaledTanh", "Affine"),
    ("Sigmoid", "Tanh", "LeakyRelu"),
    ("Softplus", "ThresholdedRelu", "Tanh"),
]
#: Their parameters, in the order of the activations that have any.
ALPHA = {"HardSigmoid": 0.3, "Elu": 0.6, "ScaledTanh": 0.7, "Affine": 0.5, "LeakyRelu": 0.1}
ALPHA["ThresholdedRelu"] = 0.4
BETA = {"HardSigmoid": 0.4, "ScaledTanh": 0.3, "Affine": 0.2}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("names", [None, *ACTIVATIONS])
@pytest.mark.parametrize(("op", "gates", "count"), [("RNN", 1, 1), ("GRU", 3, 2), ("LSTM", 4, 3)])
def test_recurrent_layers(op, gates, count, names, direction):
    sides = 1 + (direction == "bidirectional")
    w, r = 0.5 * real(sides, gates * 3, 2), 0.5 * real(sides, gates * 3, 3)
    xs = [real(4, 2, 2), w, r, real(sides, gates * 6), np.array([4, 2], np.int32)]
    xs.append(real(sides, 2, 3))
    how = {"hidden_size": 3, "direction": direction, "clip": 0.9}
    if names:
        how.update(activations=names[:count] * sides)
        for key, of in (("activation_alpha", ALPHA), ("activation_beta", BETA)):
            if given := [of[name] for name in how["activations"] if name in of]:
                how[key] = given
    elif op == "LSTM":
        xs += [real(sides, 2, 3), real(sides, 9)]
        how.update(input_forget=1)
    agrees(op, *xs, outputs=3 if op == "LSTM" else 2, rtol=1e-4, opset=14, **how)


@pytest.mark.parametrize(
    ("op", "xs", "attributes"),
    [
        ("MaxPool", [wide(1, 1, 5)], {"kernel_shape": [2]}),
        ("AveragePool", [wide(1, 1, 6)], {"kernel_shape": [2], "dilations": [2]}),
        ("ConvTranspose", [wide(1, 2, 4), wide(2, 1, 3), wide(1)], {"auto_pad": "SAME_UPPER"}),
        ("DeformConv", [wide(1, 1, 4, 4), wide(1, 1, 2, 2), 0.3 * wide(1, 8, 3, 3)], {}),
        ("LRN", [wide(1, 4, 2)], {"size": 2, "alpha": 0.3}),
        ("MeanVarianceNormalization", [wide(2, 2, 3)], {"axes": [0, 2]}),
        ("Resize", [wide(4, 3), None, None, ints(2, 5)], {"mode": "linear", "antialias": 1}),
        (
            "RoiAlign",
            [wide(1, 1, 5, 5), np.array([[0.6, 0.7, 3.2, 3.1]]), ints(0)],
            {"output_height": 2, "output_width": 2, "sampling_ratio": 2},
        ),
        ("LSTM", [wide(3, 2, 2), wide(1, 8, 2), wide(1, 8, 2)], {"clip": 2.0, "hidden_size": 2}),
        ("GRU", [wide(3, 2, 2), wide(1, 6, 2), wide(1, 6, 2)], {"activations": ["Elu", "Tanh"]}),
        ("Attention", [wide(1, 2, 3, 2), wide(1, 1, 4, 2), wide(1, 1, 4, 3)], {"is_causal": 1}),
        ("DFT", [wide(1, 6, 1), None, np.array(1)], {"onesided": 1}),
        ("STFT", [wide(1, 8, 1), np.array(2), wide(4)], {}),
    ],
)
def test_gradients(op, xs, attributes):
    slopes(op, *xs, opset=23, rtol=1e-3, atol=1e-5, **attributes)


def normalised(training_mode):
    known = AVERAGES
    node = helper.make_node(
        "BatchNormalization", ["x", *known], ["y"], momentum=0.75, training_mode=training_mode
    )
    return sonnx.SONNXModel(model([node], {"x": IMAGE}, ["y"], known, opset=15)), known


def test_running_averages_take_in_batches_in_training():
    net, known = normalised(0)
    autograd.training = True
    net.forward(Tensor(data=IMAGE))
    states = net.weights.tensors()
    mean, var = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(
        to_numpy(states["mean"]), 0.75 * known["mean"] + 0.25 * mean, 1e-5, 1e-6
    )
    np.testing.assert_allclose(to_numpy(states["var"]), 0.75 * known["var"] + 0.25 * var, 1e-5)


def test_averages_that_a_function_is_given_are_states():
    known = AVERAGES
    body = [helper.make_node("BatchNormalization", ["a", "s", "b", "m", "v"], ["y"])]
    function = helper.make_function(
        "own", "Norm", ["a", "s", "b", "m", "v"], ["y"], body, [helper.make_opsetid("", 15)]
    )
    proto = model([helper.make_node("Norm", ["x", *known], ["y"], domain="own")], {"x": IMAGE},
                  ["y"], known)  # fmt: skip
    proto.functions.append(function)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    net = sonnx.SONNXModel(proto)
    assert sorted(net.get_params()) == ["weights.bias", "weights.scale"]
    autograd.training = True
    net.forward(Tensor(data=IMAGE))
    assert (to_numpy(net.weights.tensors()["mean"]) != known["mean"]).all()


def test_what_is_exported_for_training_leaves_the_averages():
    net, known = normalised(1)
    net.forward(Tensor(data=IMAGE))
    np.testing.assert_array_equal(to_numpy(net.weights.tensors()["mean"]), known["mean"])


def test_dropout_drops_in_training_and_where_the_graph_says_so():
    x = np.ones((50, 40), np.float32)
    assert (run("Dropout", x, opset=10, ratio=0.5) == 1).all()
    half = np.array(0.5, np.float32)
    y, kept = run("Dropout", x, half, np.array(True), outputs=2, opset=13)
    assert 0.4 < kept.mean() < 0.6
    np.testing.assert_array_equal(y, np.where(kept, 2, 0))
    net = sonnx.SONNXModel(one("Dropout", [x], opset=10))
    autograd.training = True
    t = Tensor(data=x, requires_grad=True)
    (y,) = net.forward(t)
    (g,) = autograd.gradients(autograd.sum(y), xs=[t])
    np.testing.assert_array_equal(to_numpy(g), to_numpy(y))
    assert 0.4 < (to_numpy(y) > 0).mean() < 0.6


@pytest.mark.parametrize("n", [1, 7, 130, 360, 1024, 2 * 257])
def test_transforms_of_any_length(n):
    x = wide(2, n, 2)
    want = np.fft.fft(x[..., 0] + 1j * x[..., 1])
    got = run("DFT", x, None, np.array(1))
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, 0, 1e-12 * n)
    half = np.stack([want.real, want.imag], -1)[:, : n // 2 + 1]
    back = run("DFT", half, np.array(n), np.array(1), inverse=1, onesided=1)
    np.testing.assert_allclose(back[..., 0], np.fft.irfft(want[:, : n // 2 + 1], n), 0, 1e-12 * n)


def test_lengths_with_large_prime_factors_are_refused():
    with pytest.raises(ValueError, match="DFT: got length 10007, want prime factors of 8192"):
        run("DFT", real(1, 10007, 1), None, np.array(1))


@pytest.mark.parametrize("length", [4, 5])
def test_windows_that_no_image_holds(length):
    agrees("MaxPool", real(2, 1, length), kernel_shape=[3], dilations=[2], outputs=2)


def unpooling(size, **window):
    """Maxima and their positions, put back into an image of a size."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p", "i"], **window),
        helper.make_node("MaxUnpool", ["p", "i", "size"], ["y"], **window),
    ]
    return model(nodes, {"x": real(*size)}, ["y"], {"size": ints(*size)})


@pytest.mark.parametrize(
    ("size", "window"),
    [
        ((2, 3, 5, 5), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((1, 2, 9, 8), {"kernel_shape": [3, 2], "strides": [3, 3]}),
        ((2, 2, 8), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ],
)
def test_maxima_are_put_back_where_they_were(size, window):
    x = real(*size)
    (got,) = sonnx.prepare(unpooling(size, **window)).run([x])
    pooled, at = run("MaxPool", x, outputs=2, **window)
    want = np.zeros(size, np.float32)
    want.reshape(-1)[at.reshape(-1)] = pooled.reshape(-1)
    np.testing.assert_array_equal(got, want)


def test_a_shape_of_other_images_is_refused():
    proto = unpooling((1, 1, 4, 4), kernel_shape=[2, 2], strides=[2, 2])
    proto.graph.initializer[0].CopyFrom(from_array(ints(1, 2, 4, 4), "size"))
    with pytest.raises(ValueError, match="MaxUnpool: got output_shape"):
        sonnx.prepare(proto).run([real(1, 1, 4, 4)])


def test_a_network_replays():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], auto_pad="SAME_UPPER"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c", "at"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("MaxUnpool", ["c", "at"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Resize", ["d", "", "", "sizes"], ["e"], mode="linear"),
        helper.make_node("Reshape", ["e", "steps"], ["f"]),
        helper.make_node("LSTM", ["f", "lw", "lr"], ["g", "h"], hidden_size=4, clip=1.0),
    ]
    known = {"w": real(2, 4, 3, 3), "sizes": ints(2, 2, 4, 4), "steps": ints(8, 2, 4)}
    known |= {"lw": real(1, 16, 4), "lr": real(1, 16, 4, seed=1)}
    x = IMAGE[:, :, :6].copy()
    replays(model(nodes, {"x": x}, ["g", "h"], known), x)


@needs(24)
def test_attention_with_a_cache_agrees_with_its_definition():
    q, k, v = real(1, 4, 2, 8), real(1, 2, 2, 8), real(1, 2, 2, 6)
    past = real(1, 2, 3, 8), real(1, 2, 3, 6)
    fast = run("Attention", q, k, v, None, *past, is_causal=1, outputs=3, opset=24)
    slow = run(
        "Attention", q, k, v, None, *past, is_causal=1, outputs=4, qk_matmul_output_mode=3, opset=24
    )
    for a, b in zip(fast, slow, strict=False):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("op", "xs", "attributes", "want"),
    [
        ("LSTM", [real(1, 1, 2), real(1, 8, 2), real(1, 8, 2)], {"activations": ["Sin"] * 3},
         "LSTM: got activations .* of relu, tanh"),
        ("RNN", [real(1, 1, 2), real(1, 2, 2), real(1, 2, 2)], {"direction": "up"},
         "RNN: got direction 'up'"),
        ("RNN", [real(1, 1, 2), real(1, 2, 2), real(1, 2, 2)], {"activations": ["ScaledTanh"]},
         "activation scaledtanh: got parameters"),
        ("Conv", [LINE, real(6, 4, 3)], {"kernel_shape": [2]}, "Conv: got kernel_shape"),
        ("Resize", [IMAGE, None, None, ints(2, 4, 3, 4)], {"mode": "lanczos"},
         "Resize: got mode 'lanczos', want one of nearest, linear, cubic"),
        ("BatchNormalization", [IMAGE, *AVERAGES.values()],
         {"spatial": 0, "opset": 7}, "BatchNormalization: got averages of shape"),
        ("Dropout", [LINE, np.array(1, np.float32)], {}, "Dropout: got ratio 1"),
        ("ImageDecoder", [np.zeros(3, np.uint8)], {"pixel_format": "YUV"},
         "ImageDecoder: got pixel_format 'YUV'"),
    ],
)  # fmt: skip
def test_refusals_name_the_operator(op, xs, attributes, want):
    with pytest.raises(ValueError, match=want):
        run(op, *xs, **attributes)


def convolved():
    """A convolution and a batch normalisation."""
    known = {**AVERAGES, "w": real(4, 4, 3, 3)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["z"], pads=[1] * 4),
        helper.make_node("BatchNormalization", ["z", *AVERAGES], ["y"]),
    ]
    return model(nodes, {"x": IMAGE}, ["y"], known)


@pytest.mark.parametrize("exact", [False, True])
def test_batch_normalisation_goes_into_weights_unless_runs_are_to_be_exact(exact):
    rep = sonnx.prepare(convolved(), exact=exact)
    got = [rep.run([IMAGE])[0] for _ in range(4)]
    (stretch,) = rep.model._stretches._known.values()
    assert ("normalize" in stretch.graphs[0].summary()) == exact
    np.testing.assert_allclose(got[3], got[0], 1e-5, 1e-5)
    assert not exact or np.array_equal(got[3], got[0])


def test_scales_of_images_are_no_parameters():
    scales = helper.make_node("Constant", [], ["s"], value_floats=[1.0, 1.0, 2.0, 2.0])
    nodes = [scales, helper.make_node("Resize", ["x", "", "s"], ["y"])]
    rep = sonnx.prepare(model(nodes, {"x": IMAGE}, ["y"], {}))
    for _ in range(4):
        rep.run([IMAGE])
    assert not rep.model.get_params()
    (stretch,) = rep.model._stretches._known.values()
    assert stretch.graphs, "recorded as a whole"


@pytest.mark.parametrize(
    ("length", "size", "step"),
    [
        (20, 6, 2),
        (20, 7, 3),
        (21, 4, 4),
        (20, 3, 5),
        (9, 9, 4),
        (40, 33, 2),
        (8, 1, 1),
        (19, 5, 100),
    ],
)
def test_frames_of_signals(length, size, step):
    """Overlapping, side by side, apart; so many over one place that they are gathered."""
    x = wide(2, length, 1)
    found = run("STFT", x, np.array(step), None, np.array(size), onesided=1, opset=17)
    frames = np.lib.stride_tricks.sliding_window_view(x[..., 0], size, 1)[:, ::step]
    want = np.fft.rfft(frames)
    np.testing.assert_allclose(found, np.stack([want.real, want.imag], -1), 1e-9, 1e-9)
