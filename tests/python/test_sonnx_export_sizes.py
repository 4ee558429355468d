"""Exported programs of any batch and of images of any size; the file that they are written to."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model, real, there
from singa_rs import autograd, layer, module, sonnx, tensor
from test_sonnx_export import BATCH, Layers, check, kinds, whole

A = autograd


def test_a_file_is_replaced_whole(tmp_path, monkeypatch):
    path = tmp_path / "net.onnx"
    sonnx.export(A.relu, path, [real(2, 3)])
    before = path.read_bytes()

    def full(proto, file, *args, **kwargs):
        file.write(b"half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr(onnx, "save", full)
    with pytest.raises(OSError, match="no space"):
        sonnx.export(A.tanh, path, [real(2, 3)])
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["lstm", "norm", "einsum"])
def test_a_batch_of_one_stands_for_any(name):
    class Reading(module.Module):
        def __init__(self):
            super().__init__()
            self.lstm = layer.LSTM(4, 5, batch_first=True, embedding=layer.Embedding(9, 4))

        def forward(self, x):
            return self.lstm(x)[0]

    model, one = {
        "lstm": (Reading(), whole(1, 5)),
        "norm": (Layers(layer.InstanceNorm()), real(1, 4, 5)),
        "einsum": (lambda x: A.einsum("bsd,btd->bst", x, x), real(1, 5, 6)),
    }[name]
    check(model, [one], BATCH)


@pytest.mark.parametrize("kind", [layer.LSTM, layer.GRU, layer.RNN])
def test_imported_layers_are_written_for_any_batch_again(kind):
    class Recurrent(module.Module):
        def __init__(self):
            super().__init__()
            self.recurrent = kind(4, 5, batch_first=True)

        def forward(self, x):
            return self.recurrent(x)[0]

    x = real(2, 3, 4)
    first = sonnx.model_proto(Recurrent(), [x], input_names=["x"], dynamic=BATCH)
    imported = sonnx.SONNXModel(first)
    check(lambda x: imported.outputs([x])[0], [x], BATCH, [[real(1, 3, 4)], [real(5, 3, 4)]])


def test_imported_fills_are_written_for_any_batch_again():
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], start=0, end=1),
        helper.make_node("Concat", ["n", "four"], ["shape"], axis=0),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Concat", ["x", "zeros"], ["y"], axis=1),
    ]
    proto = model(nodes, {"x": real(2, 3)}, ["y"], {"four": np.array([4])})
    imported = sonnx.SONNXModel(proto)
    check(lambda x: imported.outputs([x])[0], [real(2, 3)], BATCH, [[real(5, 3)]])


@pytest.mark.parametrize("pool", [A.adaptive_avg_pool2d, A.adaptive_max_pool2d])
def test_images_of_any_size_are_pooled_as_a_whole(pool):
    proto = check(lambda x: pool(x, 1), [real(2, 3, 5, 6)], {"x": {2: "height", 3: "width"}})
    assert any(kind.startswith("Global") for kind in kinds(proto))
    with pytest.raises(NotImplementedError, match="depend on the size of an image"):
        sonnx.model_proto(
            lambda x: A.avg_pool2d(x, x.shape[2], stride=1),
            [real(2, 3, 6, 6)],
            dynamic={"x": {2: "height"}},
        )


CUT_SHORT = {
    "the last": (lambda x: x[-8:] * 1, 20),
    "the first": (lambda x: x[:8] * 1, 3),
    "some": (lambda x: x[-3:-1] * 1, 4),
    "a sum": (lambda x: x[-8:].sum(0), 20),
    "the smaller": (lambda x: x[: min(8, x.shape[0])] * 1, 20),
    "backwards": (lambda x: x[-2::-1] * 1, 4),
    "backwards, of one": (lambda x: x[-2::-1] * 1, 1),
}


@pytest.mark.parametrize("name", CUT_SHORT)
def test_slices_that_an_axis_cuts_short_are_refused(name):
    function, size = CUT_SHORT[name]
    with pytest.raises(ValueError, match="export: the slice .* takes other elements for"):
        sonnx.model_proto(function, [real(size, 4)], dynamic=BATCH)


def test_slices_are_those_of_sizes_that_the_model_takes():
    def last(x):
        if x.shape[0] < 8:
            raise ValueError("want 8 rows or more")
        return x[-8:] * 1

    check(last, [real(20, 4)], BATCH, [[real(8, 4)], [real(30, 4)]])


def test_slices_of_any_size():
    def parts(x):
        first = x[1:] * 1, x[:-1] * 2, x[:1] * 3, x[3:-3] * 4, x[:-5] * 5, x[: x.shape[0] - 2] * 6
        return *first, x[::-1] * 7, x[-1:] * 8, x[-1] * 9

    check(parts, [real(9, 4)], BATCH, [[real(n, 4)] for n in (1, 2, 3, 5, 7, 30)])


def test_a_place_from_the_end_that_is_not_there():
    proto = sonnx.model_proto(lambda x: x[-8] * 1, [real(20, 4)], dynamic=BATCH)
    (got,) = there(proto, [real(8, 4)])
    np.testing.assert_array_equal(got, real(8, 4)[-8])
    with pytest.raises(Exception, match="Squeeze"):
        there(proto, [real(6, 4)])


def test_numbers_that_are_others_for_large_sizes_are_refused():
    with pytest.raises(ValueError, match="is not the same for all sizes|takes other elements"):
        sonnx.model_proto(lambda x: x[: min(5, x.shape[0])].sum(0), [real(1, 4)], dynamic=BATCH)


def test_constants_that_are_others_for_large_sizes_are_refused():
    with pytest.raises(ValueError, match=r"export: a constant of shape \(\) is another one for"):
        sonnx.model_proto(
            lambda x: A.where(x > 0, min(50.0, x.shape[0]), x), [real(9, 4)], dynamic=BATCH
        )
    with pytest.raises(ValueError, match=r"export: a constant of shape \(\) for .* is another one"):
        sonnx.model_proto(
            lambda x: A.where(x > 0, x.shape[0] ** 0.5, x), [real(9, 4)], dynamic=BATCH
        )


def test_a_slice_whose_step_may_have_either_sign_is_refused():
    def thinned(x):
        if x.shape[0] < 7:
            raise ValueError("want 7 rows at least")
        step = x.shape[0] - 5
        return x.reshape((-1,))[: 3 * step + 1 : step] * 1

    with pytest.raises(NotImplementedError, match=r"slice of step -5 \+ batch: its sign depends"):
        sonnx.model_proto(thinned, [real(9, 4)], dynamic=BATCH)


def test_what_is_made_of_nothing_for_small_sizes_is_refused():
    with pytest.raises(ValueError, match="export: binary_scalar: got .* for {'batch': [12]}, want"):
        sonnx.model_proto(lambda x: A.std(x[2:], 0), [real(9, 4)], dynamic=BATCH)


def test_nan_is_the_same_for_all_sizes():
    def masked(x):
        return A.where(x > 0, x, tensor.full((x.shape[0], 4), np.nan))

    check(masked, [real(3, 4)], BATCH, [[real(5, 4)]])


def test_parts_without_elements():
    check(lambda x: (x[:, 2:2] * 1).reshape((-1, 2)), [real(3, 4)])
    check(lambda x: (x[:, 2:2] * 1).reshape((x.shape[0], 0, 5)), [real(3, 4)], BATCH)


def test_axes_of_extent_1_that_are_left_out_are_refused():
    with pytest.raises(ValueError, match="export: got results of shapes"):
        sonnx.model_proto(lambda x: (x[:, :1] * 1).squeeze(), [real(4, 4)], dynamic=BATCH)


@pytest.mark.parametrize("dynamic", [None, BATCH])
@pytest.mark.parametrize(
    ("result", "kinds"),
    [
        (lambda y: (y, np.ones(3)), "ndarray"),
        (lambda y: [3.0, {"y": y, "z": None}], "float, NoneType"),
        (lambda y: None, "NoneType"),
        (lambda y: [], "nothing"),
    ],
)
def test_results_that_are_no_tensors_are_refused(result, kinds, dynamic):
    with pytest.raises(TypeError, match=f"export: the model returns {kinds}, want tensors"):
        sonnx.model_proto(lambda x: result(x * 2), [real(2, 3)], dynamic=dynamic)


OF_SIZES = {
    "spread": lambda x: (A.std(x, 0), x.var(0), A.mse_loss(x, x * 0), x * (-1 / x.shape[0])),
    "chosen": lambda x: (
        A.where(x > 0, float(x.shape[0] - 1), x),
        A.where(x > 0, 1 / x.shape[0], -1 / x.shape[0]),
        A.where(x.argmax(1) > 2, x.shape[0], 0),
        A.maximum(x, tensor.full((1,), 1 / x.shape[0])),
    ),
    "bounds": lambda x: (A.clip(x * 9, 1 - x.shape[0], x.shape[0] / 1), x.clip(None, x.shape[0])),
    "steps": lambda x: (
        x[:, :1] + tensor.arange(x.shape[0], x.shape[0] * 5, x.shape[0]),
        A.diagonal(A.matmul(x, x.T)),
        A.flip(A.kron(x, x), (0,))[:: -x.shape[0]],
    ),
    "squares": lambda x: (A.kron(x, x), x[:, :1].repeat(3) * float(2 * x.shape[0] ** 2)),
}


@pytest.mark.parametrize("name", OF_SIZES)
def test_numbers_of_a_size(name):
    check(OF_SIZES[name], [real(4, 5)], BATCH, [[real(7, 5)], [real(1, 5)]])


def test_products_of_three_sizes():
    def pixels(x):
        return x.permute(0, 2, 3, 1).reshape((-1, 3)), A.mse_loss(x, x * 0)

    axes = {"x": {0: "batch", 2: "height", 3: "width"}}
    check(pixels, [real(2, 3, 8, 6)], axes, [[real(5, 3, 4, 9)], [real(1, 3, 1, 1)]])


def test_refusals_show_what_does_not_follow():
    message = r"got 256.0 for {'batch': 4}, 4096.0 for {'batch': 8}, .* and 1296.0 for .*, want"
    with pytest.raises(ValueError, match=message):
        sonnx.model_proto(lambda x: x * float(x.shape[0] ** 4), [real(4, 4)], dynamic=BATCH)
