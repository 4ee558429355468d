"""SINGA's image_tool."""

import numpy as np
import pytest
from PIL import Image
from singa_rs import CheckpointError, data, image_tool
from singa_rs.compat import image_tool as also

RNG = np.random.default_rng(0)


def picture(width=8, height=6):
    """A picture of random pixels."""
    return Image.fromarray(RNG.integers(0, 256, (height, width, 3)).astype(np.uint8))


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
        (lambda t, i: image_tool.crop(i, (0, 4), "center"), "crop: patch: got 0"),
        (lambda t, i: image_tool.crop_and_resize(i, (4, 4), "x"), "crop_and_resize: got position"),
        (lambda t, i: image_tool.resize(i, 0), "resize: small_size: got 0"),
        (lambda t, i: image_tool.color_cast(i, 256), "color_cast: offset: got 256"),
        (lambda t, i: image_tool.color_cast(i.convert("L"), 2), "color_cast: got an image of mode"),
        (lambda t, i: image_tool.enhance(i, 2), "enhance: got scale 2"),
        (lambda t, i: image_tool.get_list_sample([1], 2), "get_list_sample: sample_size: got 2"),
        (lambda t, i: t.resize_by_list([4], 2), "resize_by_list: num_case: got 2"),
        (lambda t, i: t.resize_by_range((4, 4)), "resize_by_range: got rng"),
        (lambda t, i: t.rotate_by_range(3), "rotate_by_range: got rng 3"),
        (lambda t, i: t.rotate_by_list([], 1), "rotate_by_list: num_case: got 1"),
        (lambda t, i: t.crop5((4, 4), 6), "crop5: num_case: got 6"),
        (lambda t, i: t.crop3((4, 5)), "crop3: got patch 4 x 5, want a square"),
        (lambda t, i: t.crop8((4, 4), 0), "crop8: num_case: got 0"),
        (lambda t, i: t.random_crop((4, 11)), "random_crop: got patch 4 x 11"),
        (lambda t, i: t.flip(3), "flip: num_case: got 3"),
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


ARRAY = np.zeros((4, 5, 3), np.uint8)
OF_PICTURES = {
    "crop": ((2, 2), "center"),
    "crop_and_resize": ((2, 2), "left"),
    "resize": (3,),
    "color_cast": (3,),
    "enhance": (0.2,),
    "flip": (),
    "flip_down": (),
}


@pytest.mark.parametrize("name", OF_PICTURES)
@pytest.mark.parametrize("wrong", ["a.png", None, ARRAY])
def test_what_is_no_picture_is_refused(name, wrong):
    with pytest.raises(TypeError, match=f"^{name}: got img .*, want a Pillow image"):
        getattr(image_tool, name)(wrong, *OF_PICTURES[name])


def test_tools_take_lists_of_pictures(image):
    tool = image_tool.ImageTool().set([image])
    with pytest.raises(TypeError, match=r"^set: got imgs\[1\] .*, want a Pillow image"):
        tool.set([image, ARRAY])
    with pytest.raises(TypeError, match="^set: got imgs None, want a list"):
        tool.set(None)
    with pytest.raises(TypeError, match="^append: got img 'a', want a Pillow image"):
        tool.append("a")
    assert tool.get() == [image]
    for name, argument in (("resize_by_list", "size_list"), ("rotate_by_list", "angle_list")):
        with pytest.raises(TypeError, match=f"^{name}: got {argument} 3, want a list"):
            getattr(tool, name)(3)
    with pytest.raises(TypeError, match="^get_list_sample: got l 3, want a list"):
        image_tool.get_list_sample(3, 1)
