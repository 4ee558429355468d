"""Pictures: folders of them, and SINGA's ImageBatchIter."""

import sys
import time

import numpy as np
import pytest
from PIL import Image
from singa_rs import CheckpointError, data, image_tool

RNG = np.random.default_rng(0)


def picture(width=8, height=6):
    """A picture of random pixels."""
    return Image.fromarray(RNG.integers(0, 256, (height, width, 3)).astype(np.uint8))


def chw(image):
    return np.asarray(image, np.float32).transpose(2, 0, 1)


@pytest.fixture
def root(tmp_path):
    """Four pictures of two classes, and files that are none."""
    for name in ("b/1.png", "a/2.PNG", "a/sub/3.bmp", "b/0.png", "b/.hidden.png", "b/notes.txt"):
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture().save(path, "BMP" if name.endswith("bmp") else "PNG")
    (tmp_path / "root" / ".git").mkdir()
    return tmp_path / "root"


# ---- folders -------------------------------------------------------------------------------------


def test_folders(root):
    folder = data.ImageFolder(root)
    assert folder.classes == ["a", "b"] and folder.class_to_idx == {"a": 0, "b": 1}
    names = [path[len(str(root)) + 1 :] for path, _ in folder.samples]
    assert names == ["a/2.PNG", "a/sub/3.bmp", "b/0.png", "b/1.png"]
    assert folder.targets == [0, 0, 1, 1] and len(folder) == 4
    image, label = folder[2]
    np.testing.assert_allclose(image, chw(Image.open(root / "b/0.png")) / 255, rtol=1e-6)
    assert image.dtype == np.float32 and label == 1
    with pytest.raises(IndexError):
        folder[4]


@pytest.mark.parametrize("how", [{}, {"num_workers": 2}, {"num_workers": 1, "workers": "process"}])
def test_folders_are_data_sets(root, how):
    loader = data.DataLoader(data.ImageFolder(root, transform=image_tool.flip), 3, **how)
    x, y = next(iter(loader))
    want = [chw(Image.open(path))[:, :, ::-1] / 255 for path, _ in loader.dataset.samples[:3]]
    np.testing.assert_allclose(x.to_numpy(), want, rtol=1e-6)
    assert y.tolist() == [0, 0, 1]


def test_transforms_may_give_anything(root):
    assert data.ImageFolder(root, transform=lambda image: image.size)[0] == ((8, 6), 0)


def test_damaged_pictures(root):
    path = root / "b" / "0.png"
    raw = path.read_bytes()
    folder = data.ImageFolder(root)
    for wrong in (b"", b"text", raw[:20], raw[: len(raw) // 2], raw[:30] + b"x" + raw[31:]):
        path.write_bytes(wrong)
        with pytest.raises(CheckpointError, match=f"ImageFolder: {path}: no picture, or damaged"):
            folder[2]
    path.unlink()
    with pytest.raises(FileNotFoundError, match="ImageFolder"):
        folder[2]


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_pictures_of_16_bits_are_scaled(root, suffix):
    """Pillow's `convert` clips their pixels at 255."""
    want = np.linspace(0, 65535, 64).reshape(8, 8).round()
    given, path = Image.fromarray(want.astype(np.uint16)), root / "a" / f"1{suffix}"
    given.save(path)
    folder = data.ImageFolder(root)
    made = [
        image_tool.load_img(path, grayscale=True),
        image_tool.load_img(path),
        255 * folder[[one for one, _ in folder.samples].index(str(path))][0].transpose(1, 2, 0),
        _batch_of(root, given)[0].transpose(1, 2, 0),
    ]
    for image in made:
        found = np.asarray(image, np.float64).reshape(8, 8, -1)[..., 0]
        np.testing.assert_allclose(found, want / 257, atol=0.501)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_pictures_of_an_unknown_range_are_refused(root, dtype):
    given, path = Image.fromarray(np.ones((4, 4), dtype)), root / "a" / "1.tif"
    given.save(path)
    kind = "F" if dtype == np.float32 else "I"
    folder = data.ImageFolder(root)
    with pytest.raises(CheckpointError, match=f"ImageFolder: {path}: got pixels of .*'{kind}'"):
        folder[[one for one, _ in folder.samples].index(str(path))]
    with pytest.raises(ValueError, match=f"ImageBatchIter: .*: got pixels of .*'{kind}', whose"):
        _batch_of(root, given)


def _batch_of(root, image):
    (root / "list").write_text("a 1")
    batches = data.ImageBatchIter(str(root / "list"), 1, lambda path: [image])
    try:
        batches.start()
        return next(batches)[0]
    finally:
        batches.end()


def test_pictures_with_far_too_many_pixels(root, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(CheckpointError, match="ImageFolder: .*exceeds limit"):
        data.ImageFolder(root)[0]


def test_wrong_folders(root, monkeypatch):
    with pytest.raises(FileNotFoundError, match="ImageFolder: .*nowhere: no such folder"):
        data.ImageFolder(root / "nowhere")
    with pytest.raises(ValueError, match="has no folders"):
        data.ImageFolder(root / "a" / "sub")
    (root / "b" / "more").mkdir()
    with pytest.raises(ValueError, match="has no pictures in its 1 folders"):
        data.ImageFolder(root / "b")
    with pytest.raises(TypeError, match="ImageFolder: got transform 3"):
        data.ImageFolder(root, 3)
    with pytest.raises(TypeError, match="ImageFolder: got NoneType, want a path"):
        data.ImageFolder(None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ModuleNotFoundError, match="ImageFolder: .*pip install pillow"):
        data.ImageFolder(root)


# ---- ImageBatchIter ------------------------------------------------------------------------------


@pytest.fixture
def listed(root):
    names = ["a/2.PNG", "b/1.png", "b/0.png"]
    path = root.parent / "list.txt"
    path.write_text("".join(f"{name} {i + 5}\n" for i, name in enumerate(names)))
    return path


def as_it_is(path):
    return [Image.open(path)]


def twice(path):
    return [Image.open(path), Image.open(path)]


def test_batches_of_a_list(root, listed):
    batches = data.ImageBatchIter(str(listed), 2, as_it_is, False, image_folder=str(root))
    assert batches.num_samples == 3
    with pytest.raises(RuntimeError, match="start"):
        batches.next()
    batches.start()
    got = [batches.next() for _ in range(3)]
    batches.end()
    assert [y.tolist() for _, y in got] == [[5, 6], [7, 5], [6, 7]]
    np.testing.assert_array_equal(got[0][0][1], chw(Image.open(root / "b/1.png")))
    assert got[0][0].dtype == np.float32 and got[0][1].dtype == np.int32
    batches.start()
    assert next(iter(batches))[1].tolist() == [5, 6]
    with pytest.raises(RuntimeError, match="has begun already"):
        batches.start()
    batches.end()
    batches.end()


def test_several_images_of_a_picture(root, listed):
    batches = data.ImageBatchIter(listed, 4, twice, False, image_folder=root)
    batches.run()
    assert batches.next()[1].tolist() == [5, 5, 6, 6]
    batches.end()


LABELS = {
    "numbers": (["5", "-6"], [5, -6]),
    "a blank at the end": (["3 ", "1\t "], [3, 1]),
    "more than a label": (["3 x", "1 y z"], [3, 1]),
    "texts": (["cat", "dog"], ["cat", "dog"]),
    "a number and a text": (["1", "1.5"], ["1", "1.5"]),
    "none": (None, [None, None]),
    "an empty one": (["", "1"], ["", "1"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_integers_or_texts(root, listed, name):
    given, want = LABELS[name]
    names = ["b/1.png", "b/0.png"]
    lines = names if given is None else [" ".join(pair) for pair in zip(names, given, strict=True)]
    listed.write_text("\n".join(lines))
    batches = data.ImageBatchIter(listed, 3, as_it_is, False, image_folder=root)
    batches.start()
    labels = next(batches)[1]
    batches.end()
    assert list(labels) == [*want, want[0]]
    is_numbered = isinstance(want[0], int)
    assert labels.dtype == np.int32 if is_numbered else type(labels) is list


def test_other_delimiters(root, listed):
    listed.write_text("b/1.png , a cat\nb/0.png,a dog\n")
    batches = data.ImageBatchIter(listed, 2, as_it_is, False, ",", root)
    batches.start()
    assert next(batches)[1] == ["a cat", "a dog"]
    batches.end()


def test_shuffled_lists(root, listed):
    def run(seed):
        batches = data.ImageBatchIter(listed, 3, as_it_is, image_folder=root, seed=seed)
        batches.start()
        found = [tuple(batches.next()[1].tolist()) for _ in range(20)]
        batches.end()
        return found

    first = run(0)
    assert all(sorted(one) == [5, 6, 7] for one in first) and len(set(first)) > 3
    assert run(0) == first != run(1)


def test_random_transforms_of_a_list(root, listed):
    def drawn(path):
        return image_tool.ImageTool().load(path).random_crop((3, 3)).color_cast().get()

    def run():
        batches = data.ImageBatchIter(listed, 2, drawn, image_folder=root)
        batches.start()
        found = [batches.next()[0] for _ in range(5)]
        batches.end()
        return found

    np.testing.assert_array_equal(run(), run())


@pytest.mark.parametrize(
    "transform, error",
    [
        (lambda path: twice(path) + as_it_is(path), r"gave 3 images of .*want a list of 1 to 2"),
        (lambda path: [], "gave 0 images"),
        (lambda path: None, "gave NoneType"),
        (lambda path: [picture(3 + len(path) % 2 if "b/1" in path else 8)], "shapes"),
        (lambda path: 1 // 0, "division"),
    ],
)
def test_errors_of_the_transform(root, listed, transform, error):
    batches = data.ImageBatchIter(listed, 2, transform, False, image_folder=root)
    batches.start()
    with pytest.raises((ValueError, ZeroDivisionError), match=error):
        batches.next()
    with pytest.raises(RuntimeError, match="start"):
        batches.next()


def test_a_dropped_iterator_stops(root, listed):
    calls = []

    def noted(path):
        calls.append(path)
        return as_it_is(path)

    batches = data.ImageBatchIter(listed, 1, noted, image_folder=root, capacity=2)
    batches.start()
    batches.next()
    del batches
    time.sleep(0.05)
    before = len(calls)
    time.sleep(0.1)
    assert len(calls) == before <= 4


def test_wrong_arguments_of_image_batches(root, listed):
    wrong = {
        "batch_size": [0, None, 1.5],
        "image_transform": [3, None],
        "shuffle": [1, None],
        "delimiter": ["", 3],
        "capacity": [0, None],
        "seed": [-1, None],
    }
    good = {"img_list_file": listed, "batch_size": 2, "image_transform": as_it_is}
    for name, values in wrong.items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=f"ImageBatchIter: .*{name}"):
                data.ImageBatchIter(**{**good, name: value})
    listed.write_bytes(b"a.png 1\n\xff.png 1\n")
    with pytest.raises(CheckpointError, match="ImageBatchIter: .*line 2: got"):
        data.ImageBatchIter(**good)
    for label in ("2147483648", "-9999999999"):
        listed.write_text(f"a.png {label}\n")
        with pytest.raises(CheckpointError, match=f"ImageBatchIter: .*got label {label}"):
            data.ImageBatchIter(**good)
    listed.write_text("\n")
    with pytest.raises(ValueError, match="lists no pictures"):
        data.ImageBatchIter(**good)
    with pytest.raises(FileNotFoundError, match="ImageBatchIter"):
        data.ImageBatchIter(root / "nowhere", 2, as_it_is)
