"""Pictures: folders of them, SINGA's ImageBatchIter and image_tool."""

import sys
import time

import numpy as np
import pytest
from PIL import Image
from singa_rs import CheckpointError, data, image_tool
from singa_rs.compat import image_tool as also

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
            with pytest.raises((TypeError, ValueError), match=f"ImageBatchIter: got {name}"):
                data.ImageBatchIter(**{**good, name: value})
    for text in ("a.png\n", "a.png x\n", "a.png 1.5\n"):
        listed.write_text("a.png 1\n" + text)
        with pytest.raises(CheckpointError, match="ImageBatchIter: .*line 2: got"):
            data.ImageBatchIter(**good)
    listed.write_text("\n")
    with pytest.raises(ValueError, match="lists no pictures"):
        data.ImageBatchIter(**good)
    with pytest.raises(FileNotFoundError, match="ImageBatchIter"):
        data.ImageBatchIter(root / "nowhere", 2, as_it_is)


# ---- image_tool ----------------------------------------------------------------------------------


@pytest.fixture
def image():
    data.set_seed(0)
    return picture(16, 10)


def pixels(image):
    return np.asarray(image)


def test_names(image):
    assert image_tool.__all__ == also.__all__ and image_tool.ImageTool is also.ImageTool


PLACES = {
    "left_top": (0, 0), "left_bottom": (0, 5), "right_top": (12, 0), "right_bottom": (12, 5),
    "center": (6, 2),
}  # fmt: skip


@pytest.mark.parametrize("position", PLACES)
def test_crop(image, position):
    left, top = PLACES[position]
    got = pixels(image_tool.crop(image, (4, 5), position))
    np.testing.assert_array_equal(got, pixels(image)[top : top + 5, left : left + 4])


@pytest.mark.parametrize("position, start", [("left", 0), ("center", 3), ("right", 6)])
def test_crop_and_resize(image, position, start):
    got = image_tool.crop_and_resize(image, (10, 10), position)
    np.testing.assert_array_equal(pixels(got), pixels(image)[:, start : start + 10])
    high = image.transpose(Image.Transpose.TRANSPOSE)
    name = {"left": "top", "center": "middle", "right": "bottom"}[position]
    got = image_tool.crop_and_resize(high, (10, 10), name)
    np.testing.assert_array_equal(pixels(got), pixels(high)[start : start + 10])
    with pytest.raises(ValueError, match="along its longer side"):
        image_tool.crop_and_resize(high, (10, 10), position)


def test_sizes(image):
    assert image_tool.resize(image, 5).size == (8, 5)
    assert image_tool.resize(image.transpose(Image.Transpose.TRANSPOSE), 20).size == (20, 32)
    np.testing.assert_array_equal(pixels(image_tool.flip(image)), pixels(image)[:, ::-1])
    np.testing.assert_array_equal(pixels(image_tool.flip_down(image)), pixels(image)[::-1])


def test_colours(image):
    for _ in range(20):
        moved = pixels(image_tool.color_cast(image, 20)).astype(int)
        for channel in range(3):
            before = pixels(image)[..., channel].astype(int)
            inner = (moved[..., channel] > 0) & (moved[..., channel] < 255)
            by = set((moved[..., channel] - before)[inner].tolist())
            assert len(by) == 1 and -20 <= by.pop() <= 20
    np.testing.assert_array_equal(pixels(image_tool.color_cast(image, 0)), pixels(image))
    np.testing.assert_array_equal(pixels(image_tool.enhance(image, 0)), pixels(image))
    made = {pixels(image_tool.enhance(image, 0.5)).tobytes() for _ in range(10)}
    assert len(made) > 5


def test_samples_of_lists():
    found = {tuple(image_tool.get_list_sample("abc", 2)) for _ in range(50)}
    assert found == {("a", "b"), ("a", "c"), ("b", "c")}


def test_chains(tmp_path, image):
    image.save(tmp_path / "a.png")

    def run():
        tool = image_tool.ImageTool().load(tmp_path / "a.png")
        tool = tool.resize_by_list([12]).crop5((8, 8), 5).enhance().flip()
        return [pixels(one) for one in tool.get()]

    data.set_seed(4)
    first = run()
    assert len(first) == 5 and all(one.shape == (8, 8, 3) for one in first)
    assert any((a != b).any() for a, b in zip(first, run(), strict=True))
    data.set_seed(4)
    np.testing.assert_array_equal(run(), first)


CASES = {
    "resize_by_range": ([(4, 9)], 1),
    "resize_by_list": ([[4, 5, 6], 2], 2),
    "rotate_by_range": ([(-10, 10)], 1),
    "rotate_by_list": ([[0, 90], 2], 2),
    "crop5": ([(4, 4), 3], 3),
    "crop3": ([(4, 4), 3], 3),
    "crop8": ([(4, 4), 8], 8),
    "random_crop": ([(4, 4)], 1),
    "random_crop_resize": ([(7, 5)], 1),
    "flip": ([2], 2),
    "flip_down": ([2], 2),
    "color_cast": ([], 1),
    "enhance": ([], 1),
}


@pytest.mark.parametrize("name", CASES)
def test_tools(image, name):
    arguments, count = CASES[name]
    tool = image_tool.ImageTool().set([image]).append(picture(12, 12))
    made = getattr(tool, name)(*arguments, inplace=False)
    assert len(made) == 2 * count and tool.num_augmentation() == 2 and tool.get()[0] is image
    assert getattr(tool, name)(*arguments) is tool and len(tool.get()) == 2 * count
    assert all(isinstance(one, Image.Image) for one in made)


def test_cases_of_crop8_and_flips(image):
    tool = image_tool.ImageTool().set([image])
    assert all(len(tool.crop8((4, 4), n, inplace=False)) == n for n in range(1, 9))
    both = tool.flip(2, inplace=False)
    np.testing.assert_array_equal(pixels(both[0]), pixels(image)[:, ::-1])
    assert both[1] is image
    sides = [tool.flip(inplace=False)[0] is image for _ in range(50)]
    assert 5 < sum(sides) < 45
    sizes = {tool.resize_by_range((4, 7), inplace=False)[0].size[1] for _ in range(50)}
    assert sizes == {4, 5, 6}


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda t, i: image_tool.crop(i, (4, 4), "top"), "crop: got position 'top', want one of"),
        (lambda t, i: image_tool.crop(i, (17, 4), "center"), "crop: got patch 17 x 4 of an image"),
        (lambda t, i: image_tool.crop(i, 4, "center"), "crop: got patch 4"),
        (lambda t, i: image_tool.crop(i, (0, 4), "center"), "crop: got patch 0"),
        (lambda t, i: image_tool.crop_and_resize(i, (4, 4), "x"), "crop_and_resize: got position"),
        (lambda t, i: image_tool.resize(i, 0), "resize: got small_size 0"),
        (lambda t, i: image_tool.color_cast(i, 256), "color_cast: got offset 256"),
        (lambda t, i: image_tool.color_cast(i.convert("L"), 2), "color_cast: got an image of mode"),
        (lambda t, i: image_tool.enhance(i, 2), "enhance: got scale 2"),
        (lambda t, i: image_tool.get_list_sample([1], 2), "get_list_sample: got sample_size 2"),
        (lambda t, i: t.resize_by_list([4], 2), "resize_by_list: got num_case 2"),
        (lambda t, i: t.resize_by_range((4, 4)), "resize_by_range: got rng"),
        (lambda t, i: t.rotate_by_range(3), "rotate_by_range: got rng 3"),
        (lambda t, i: t.rotate_by_list([], 1), "rotate_by_list: got num_case 1"),
        (lambda t, i: t.crop5((4, 4), 6), "crop5: got num_case 6"),
        (lambda t, i: t.crop3((4, 5)), "crop3: got patch 4 x 5, want a square"),
        (lambda t, i: t.crop8((4, 4), 0), "crop8: got num_case 0"),
        (lambda t, i: t.random_crop((4, 11)), "random_crop: got patch 4 x 11"),
        (lambda t, i: t.flip(3), "flip: got num_case 3"),
        (lambda t, i: t.load(3), "load_img: got int, want a path"),
    ],
)
def test_wrong_arguments_of_tools(image, call, error):
    tool = image_tool.ImageTool().set([image])
    with pytest.raises((TypeError, ValueError), match=error):
        call(tool, image)
    assert tool.get() == [image]


def test_loading_a_picture(tmp_path, image):
    image.save(tmp_path / "a.png")
    np.testing.assert_array_equal(pixels(image_tool.load_img(tmp_path / "a.png")), pixels(image))
    assert image_tool.load_img(tmp_path / "a.png", grayscale=True).mode == "L"
    (tmp_path / "a.png").write_bytes(b"text")
    with pytest.raises(CheckpointError, match="load_img"):
        image_tool.load_img(tmp_path / "a.png")
