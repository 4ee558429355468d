"""What models of whole pipelines begin with: encoded images, and sequences of tokens."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor
from ..running import Frame
from ..table import reads
from ..values import to_tensor

# ---- images --------------------------------------------------------------------------------------

_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


@reads("ImageDecoder", since=20, host="stream")
def image_decoder(stream: Any, *, pixel_format: str = "RGB", frame: Frame) -> Tensor:
    """The pixels of an encoded image, (H, W, channels) of uint8, decoded by Pillow on the host."""
    from ...data.pictures import in_colours, pillow  # whose package is large

    if pixel_format not in _MODES:
        want = ", ".join(_MODES)
        raise ValueError(f"ImageDecoder: got pixel_format {pixel_format!r}, want one of {want}")
    with pillow("ImageDecoder").open(io.BytesIO(np.asarray(stream, np.uint8).tobytes())) as image:
        mode = _MODES[pixel_format]
        pixels = np.asarray(in_colours("ImageDecoder", image, mode, image.format))
    pixels = pixels.reshape((*pixels.shape[:2], -1))
    pixels = pixels[..., ::-1] if pixel_format == "BGR" else pixels
    return to_tensor(np.ascontiguousarray(pixels), frame.device)


# ---- tokens --------------------------------------------------------------------------------------


@reads("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    x: Tensor, *, mode: str, min_gram_length: int, max_gram_length: int, max_skip_count: int,
    ngram_counts: Sequence[int], ngram_indexes: Sequence[int], pool_int64s: Sequence[int] = (),
    weights: Sequence[float] | None = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """How often each n-gram of a pool occurs in rows of integers, weighed by its rarity. (Rows of
    strings are counted on the host.)"""
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ValueError(f"TfIdfVectorizer: got mode {mode!r}, want 'TF', 'IDF' or 'TFIDF'")
    if x.rank not in (1, 2):
        raise ShapeError(f"TfIdfVectorizer: got shape {x.shape}, want one row or several")
    rows, size = x.reshape((-1, x.shape[-1])), max(ngram_indexes) + 1
    parts = [to_tensor(np.zeros((rows.shape[0], size), np.float32), frame.device)]
    for grams, columns in _grams(np.array(pool_int64s), ngram_counts, ngram_indexes):
        length = grams.shape[1]
        if not min_gram_length <= length <= max_gram_length or not len(grams):
            continue
        # Skipping changes nothing for single tokens, which count once.
        gaps = range(1, 2 if length == 1 else max_skip_count + 2)
        spread = to_tensor(np.eye(size, dtype=np.float32)[list(columns)], frame.device)
        pool = to_tensor(grams, frame.device)
        parts += [autograd.matmul(one, spread) for one in _counts(rows, pool, gaps, frame)]
    found = autograd.add_all(*parts) if len(parts) > 1 else parts[0]
    found = found if mode != "IDF" else autograd.cast(found > 0, "float32")
    if weights is not None and mode != "TF":
        found = found * to_tensor(np.array(weights, np.float32), frame.device)
    return found.reshape((*x.shape[:-1], size))


def _grams(
    pool: np.ndarray, starts: Sequence[int], indexes: Sequence[int]
) -> Iterator[tuple[np.ndarray, Sequence[int]]]:
    """The n-grams of each length, (count, length), and the columns in which they are counted."""
    first = 0
    for i, (start, end) in enumerate(zip(starts, [*starts[1:], len(pool)], strict=True)):
        grams = pool[start:end].reshape(-1, i + 1)
        yield grams, indexes[first : first + len(grams)]
        first += len(grams)


def _counts(rows: Tensor, pool: Tensor, gaps: Sequence[int], frame: Frame) -> Iterator[Tensor]:
    """How often n-grams with some gap between their tokens occur in rows, (N, n-grams)."""
    length = pool.shape[1]
    for gap in gaps:
        starts = rows.shape[1] - gap * (length - 1)
        if starts < 1:
            return
        places = np.arange(starts)[:, None] + gap * np.arange(length)
        windows = autograd.gather(rows, 1, to_tensor(places, frame.device))
        hits = autograd.equal(windows.unsqueeze(2), pool)
        yield autograd.cast(autograd.reduce_sum(hits.all(3), 1, 0), "float32")
