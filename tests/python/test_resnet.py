"""The example of residual networks: it learns, reads folders of pictures, saves and loads."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import images as pictures_of  # noqa: E402
import resnet  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "resnet.py"
SMALL = ("--size", 32, "--batch", 8, "--no-savings")


def example(*arguments):
    command = [sys.executable, EXAMPLE, *map(str, arguments)]
    few = {**os.environ, "OMP_NUM_THREADS": "1"}  # a busy machine runs one thread best
    return subprocess.run(command, capture_output=True, text=True, timeout=250, env=few)


def outcome(run):
    """The loss and the accuracy, in percent, at the end."""
    assert run.returncode == 0, run.stderr
    found = re.search(r"^test loss ([\d.]+), test accuracy ([\d.]+)%$", run.stdout, re.M)
    return tuple(map(float, found.groups()))


@pytest.fixture
def pictures(tmp_path):
    """A folder of 40 pictures of two classes: one red, one green, of many sizes and modes."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for channel, name in enumerate(("red", "green")):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(20):
            pixels = rng.integers(0, 120, (*rng.integers(30, 60, 2), 3)).astype(np.uint8)
            pixels[..., channel] += 120
            mode, suffix = [("RGB", "jpg"), ("RGBA", "png")][number % 2]
            path = tmp_path / "pictures" / name / f"{number}.{suffix}"
            image.fromarray(pixels).convert(mode).save(path)
    return tmp_path / "pictures"


def test_learns_patterns():
    run = example(*SMALL, "--classes", 4, "--images", 200, "--epochs", 4)
    assert outcome(run)[1] > 60, run.stdout
    assert "160 images of 4 classes to train on, 40 held out" in run.stdout


def test_learns_a_folder_and_saves_the_result(pictures, tmp_path):
    where, kept = ("--data", pictures), tmp_path / "net"
    slow = ("--epochs", 6, "--lr", 0.002)
    learnt = example(*SMALL, *where, *slow, "--save", kept)
    loss, accuracy = outcome(learnt)
    assert accuracy >= 75, learnt.stdout
    again = example(*SMALL, *where, "--epochs", 0, "--load", kept, "--seed", 5)
    assert outcome(again) == (loss, accuracy)


@pytest.mark.parametrize("how", [(), ("--eager",)], ids=["replay", "eager"])
def test_training_resumes_from_a_checkpoint_to_the_bit(tmp_path, monkeypatch, how):
    sizes = ("--size", "32", "--batch", "2", "--images", "10", "--lr", "0.001")
    monkeypatch.setattr(sys, "argv", ["resnet.py", *sizes, *how])
    args = resnet.arguments()
    images = resnet.prepare(args)
    kept = str(tmp_path / "net")

    def losses(model, steps):
        rng = np.random.default_rng(0)
        return [loss for _, loss in resnet.train_epoch(model, images, rng, steps, args)]

    model = resnet.compiled(images, args)
    losses(model, 3)
    model.save(kept, {"optimizer": model.optimizer})
    goes_on = losses(model, 4)
    monkeypatch.setattr(args, "load", kept)
    assert losses(resnet.compiled(images, args), 4) == goes_on


def test_says_what_recording_saves():
    sizes = ("--size", 32, "--batch", 2, "--images", 10, "--epochs", 1, "--steps", 1)
    run = example(*sizes, "--classes", 3)
    assert run.returncode == 0, run.stderr
    if Path("/proc/self/clear_refs").exists():
        assert re.search(r"^time per step +[\d.]+ ms +[\d.]+ ms +[\d.]+$", run.stdout, re.M)
        assert "stated by the plan" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--images", 8, "--batch", 16), "only 7 images"),
        (("--load", "missing net"), "missing net"),
        (("--data", "missing"), "missing"),
    ],
)
def test_bad_arguments_are_explained(arguments, message):
    run = example(*SMALL, *arguments, "--epochs", 0)
    assert run.returncode == 1
    assert message in run.stderr and "Traceback" not in run.stderr


def test_another_models_file_is_refused(tmp_path):
    kept = tmp_path / "net"
    sizes = (*SMALL, "--images", 10, "--epochs", 1, "--steps", 1)
    outcome(example(*sizes, "--classes", 3, "--save", kept))
    run = example(*sizes, "--classes", 4, "--load", kept)
    assert run.returncode == 1 and "classifier" in run.stderr


def test_a_folder_without_classes_is_refused(tmp_path):
    pytest.importorskip("PIL")
    run = example(*SMALL, "--data", tmp_path)
    assert run.returncode == 1 and "0 pictures in 0 folders" in run.stderr


def test_pillow_is_asked_for_only_with_a_folder(tmp_path):
    (tmp_path / "PIL.py").write_text("raise ModuleNotFoundError('No module named PIL')")
    hidden = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, EXAMPLE, "--data", tmp_path]
    run = subprocess.run(map(str, command), capture_output=True, text=True, env=hidden)
    assert run.returncode == 1 and "pip install pillow" in run.stderr


def test_a_damaged_picture_is_named(tmp_path):
    pytest.importorskip("PIL")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(OSError, match="broken"):
        pictures_of.read(str(broken), 8)
