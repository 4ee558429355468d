"""Exported programs of any batch and of images of any size; the file that they are written to."""

import onnx
import pytest
from onnx_models import real
from singa_rs import autograd, layer, module, sonnx
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
