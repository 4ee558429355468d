"""Data that stands for what SINGA's examples download: made here, in the formats that they read.

Each writer takes a folder, which is the scripts' `/tmp` and the folder that they run in.
"""

from __future__ import annotations

import gzip
import json
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

#: The classes of pictures: each is a pattern of its own, of squares of four pixels, with noise upon
#: it, so that a network can learn to tell them apart within a few batches.
CLASSES = 10
NOISE = 40


def pictures(count: int, shape: tuple[int, ...], classes: int = CLASSES) -> tuple:
    """Pictures of a shape, bytes, and their classes, in an order that repeats."""
    patterns = np.random.default_rng(7).integers(0, 256, (classes, *(-(-n // 4) for n in shape)))
    for axis, n in enumerate(shape, 1):
        patterns = patterns.repeat(min(n, 4), axis).take(range(n), axis)
    draws = np.random.default_rng(count)
    labels = draws.permutation(np.arange(count) % classes)
    noisy = patterns[labels] + draws.normal(0, NOISE, (count, *shape))
    return np.clip(noisy, 0, 255).astype(np.uint8), labels.astype(np.uint8)


def mnist(folder: Path, train: int = 640, test: int = 128) -> None:
    """The four files of MNIST, of fewer pictures, and as SINGA's peft reads them, below `mnist`."""
    for place in (folder, folder / "mnist"):
        place.mkdir(exist_ok=True)
        for name, count in (("train", train), ("t10k", test)):
            images, labels = pictures(count, (28, 28))
            header = struct.pack(">4i", 2051, count, 28, 28)
            _zip(place / f"{name}-images-idx3-ubyte.gz", header + images.tobytes())
            header = struct.pack(">2i", 2049, count)
            _zip(place / f"{name}-labels-idx1-ubyte.gz", header + labels.tobytes())


def mnist_pickle(folder: Path) -> None:
    """`mnist.pkl.gz`: training, validation and test set, rows of numbers from 0 to 1."""
    sets = [pictures(count, (784,)) for count in (1000, 200, 200)]
    rows = [(images.astype(np.float32) / 255, labels) for images, labels in sets]
    _zip(folder / "mnist.pkl.gz", pickle.dumps(rows))


def cifar10(folder: Path, rows: int = 64) -> None:
    """The batches of CIFAR-10."""
    place = folder / "cifar-10-batches-py"
    place.mkdir()
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        _cifar(place / name, rows, "labels")


def cifar100(folder: Path, rows: int = 64) -> None:
    """The two files of CIFAR-100."""
    place = folder / "cifar-100-python"
    place.mkdir()
    _cifar(place / "train", rows, "fine_labels")
    _cifar(place / "test", rows, "fine_labels")


def text(folder: Path) -> None:
    """A plain text, which repeats itself."""
    words = ["the", "graph", "of", "a", "step", "is", "planned", "and", "then", "it", "runs"]
    drawn = np.random.default_rng(0).choice(words, 4000)
    (folder / "text.txt").write_text(" ".join(drawn))


def sentences(folder: Path, count: int = 64) -> None:
    """Pairs of sentences with tabs between, the second in characters of Chinese."""
    draws = np.random.default_rng(0)
    english = ["we", "run", "see", "it", "now"]
    place = folder / "cmn-eng"
    place.mkdir()
    pairs = [draws.integers(0, len(english), draws.integers(1, 5)) for _ in range(count)]
    lines = (
        f"{' '.join(english[i] for i in one)}.\t{''.join(chr(0x4E00 + i) for i in one)}\tmade\n"
        for one in pairs
    )
    (place / "cmn-2000.txt").write_text("".join(lines), encoding="utf-8")


def reviews(folder: Path) -> None:
    """What `imdb_data.py` prepares: numbers of words, feelings, and vectors of words. What is felt
    shows in which half of the words a review draws from."""
    draws = np.random.default_rng(0)

    def rows(count: int) -> list[tuple[list[int], int]]:
        felt = draws.integers(0, 2, count)
        return [((draws.integers(1, 20, 60) + 20 * one).tolist(), int(one)) for one in felt]

    vectors = draws.normal(size=(40, 300)).astype(np.float32)
    made = {"train": rows(130), "val": rows(70), "embed_weights": vectors}
    (folder / "imdb_processed.pickle").write_bytes(pickle.dumps(made))


def questions(folder: Path) -> None:
    """The cache of `qabot_data.py`: questions whose words their answers repeat."""
    draws = np.random.default_rng(0)
    answers = {label: draws.integers(1, 200, 50).tolist() for label in range(40)}
    words = {i: f"w{i}" for i in range(200)}
    vectors = {i: draws.normal(size=300) for i in range(1, 200)} | {0: np.zeros(300)}

    def rows(count: int) -> list[tuple[list[int], list[int], list[int]]]:
        right = draws.integers(0, 40, count).tolist()
        wrong = [[i for i in draws.permutation(40).tolist() if i != one] for one in right]
        return [(answers[a][:10], [a], b) for a, b in zip(right, wrong, strict=True)]

    made = (rows(60), rows(8), answers, words, vectors)
    (folder / "insuranceQA_cache.pickle").write_bytes(pickle.dumps(made))


def tables(folder: Path) -> None:
    """The tables of the applications in medicine: whether a row's sum is positive."""
    draws = np.random.default_rng(0)
    rows = draws.normal(size=(400, 12)).astype(np.float32)
    label = (rows.sum(1) > 0).astype(np.int32)
    for disease in ("candidiasis", "cerebrovascular"):
        _csv(folder / f"{disease}_data.csv", rows, label, header=True)
    _kidney(folder / "kidney", rows, label)
    levels = np.concatenate([rows[:, :6], draws.integers(0, 2, (400, 5))], 1)
    levels[:, 1], levels[:, 6:8] = levels[:, 8], draws.integers(1, 4, (400, 2))
    _csv(folder / "cardio.csv", levels, (levels[:, 0] > 0).astype(np.int32))


def folders(folder: Path) -> None:
    """Pictures in folders that are named after their classes, as several examples read them."""
    _in_folders(folder / "diaret", ["0", "1"], 20, 128)
    for part in ("training_set", "testing_set"):
        _in_folders(folder / "malaria" / part, ["Uninfected", "Parasitized"], 16, 128)
    for part in ("train", "val"):
        _in_folders(folder / "bloodmnist" / part, ["0", "1", "2"], 12, 28)
    (folder / "bloodmnist" / "param.json").write_text(json.dumps({"num_classes": 3}))
    _in_folders(folder / "Dataset" / "Data", ["cat", "dog"], 24, 64)
    (folder / "Dataset" / "classes.txt").write_text("cat\ndog\n")


def zoo(folder: Path) -> None:
    """Small networks in place of the zoo's: archives and files where the examples keep what they
    have downloaded, with a picture and names of classes."""
    from networks import NETWORKS

    for archive, (member, network) in NETWORKS.items():
        path = folder / member
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(network().SerializeToString())
        with tarfile.open(folder / archive, "w:gz") as made:
            made.add(path, member)
    (folder / "synset.txt").write_text("".join(f"class {i}\n" for i in range(1000)))
    image, _ = pictures(1, (320, 240, 3))
    for name in ("kitten.jpg", "aurelien.jpg", "gwenn.jpg", "person.jpg"):
        Image.fromarray(image[0]).save(folder / name)
    Image.fromarray(image[0, :, :, 0]).save(folder / "fear.8d1417fa.jpg")


WRITERS: dict[str, Callable[[Path], None]] = {
    one.__name__: one
    for one in (
        mnist, mnist_pickle, cifar10, cifar100, text, sentences, reviews, questions, tables,
        folders, zoo,
    )
}  # fmt: skip


def _zip(path: Path, data: bytes) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(data)


def _cifar(path: Path, rows: int, labels: str) -> None:
    images, classes = pictures(rows, (3072,))
    path.write_bytes(pickle.dumps({"data": images, labels: classes.tolist()}))


def _csv(path: Path, rows: np.ndarray, label: np.ndarray, header: bool = False) -> None:
    names = ",".join([*(f"x{i}" for i in range(rows.shape[1])), "y"]) if header else ""
    table = np.column_stack([rows, label])
    np.savetxt(path, table, "%.6g", ",", header=names, comments="")


def _kidney(place: Path, rows: np.ndarray, label: np.ndarray) -> None:
    place.mkdir()
    (place / "kidney_features.pkl").write_bytes(pickle.dumps(rows[:, :, None]))
    (place / "kidney_labels.pkl").write_bytes(pickle.dumps(label))


def _in_folders(place: Path, names: list[str], count: int, edge: int) -> None:
    images, labels = pictures(count * len(names), (edge, edge, 3), len(names))
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        path = place / names[label] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
