"""Inference of models of ONNX against onnxruntime, in turns.

    python benches/python/onnx_inference.py                         # exported networks
    python benches/python/onnx_inference.py --models target/models  # and those of make test-models

Prints the medians of both, their ratio, and the peak memory of a process with the model. Each
contender lives in a process of its own; both read the same file.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from contenders import Contender, begin, compare

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests" / "models")]

Arrays = dict[str, np.ndarray]


def ours(path: str, inputs: Arrays, threads: int) -> Callable[[], None]:
    """A run of this package."""
    from singa_rs import device, sonnx

    device.get_default_device().set_num_threads(threads)
    model, given = sonnx.prepare(path), list(inputs.values())
    return lambda: model.run(given)


def theirs(path: str, inputs: Arrays, threads: int) -> Callable[[], None]:
    """A run of onnxruntime."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def _images(depth: int, batch: int, path: str) -> Arrays:
    from residual import ResNet

    net, x = ResNet(depth), np.random.default_rng(0).standard_normal((batch, 3, 224, 224))
    net.export(path, [x.astype(np.float32)], dynamic={"x": {0: "batch"}})
    return {"x": x.astype(np.float32)}


def _characters(kind: str, batch: int, steps: int, path: str) -> Arrays:
    import char_lstm
    import gpt

    x = np.random.default_rng(0).integers(0, 256, (batch, steps)).astype(np.int32)
    sizes = argparse.Namespace(width=128, heads=4, layers=4 if kind == "gpt" else 2, lr=0.1)
    net = gpt.GPT(256, sizes) if kind == "gpt" else char_lstm.CharLSTM(256, sizes)
    net.export(path, [x], dynamic={"x": {0: "batch", 1: "time"}})
    return {"x": x}


#: By title, what writes a file and tells its inputs.
EXPORTED: dict[str, Callable[[str], Arrays]] = {
    **{
        f"ResNet-{depth}, batch {batch}": lambda path, d=depth, b=batch: _images(d, b, path)
        for depth in (18, 50)
        for batch in (1, 16)
    },
    "GPT, 4 layers of 128, 1 by 128": lambda path: _characters("gpt", 1, 128, path),
    "GPT, 4 layers of 128, 16 by 128": lambda path: _characters("gpt", 16, 128, path),
    "LSTM, 2 layers of 128, 1 by 100": lambda path: _characters("lstm", 1, 100, path),
}


def _written(title: str, path: str, pipe: object) -> None:
    """Exports a model in a process of its own, so that this one stays small."""
    pipe.send(EXPORTED[title](path))


def exported(title: str, folder: str) -> tuple[str, Arrays]:
    """The file of an exported model, and its inputs."""
    path, (pipe, other) = f"{folder}/{len(title)}.onnx", multiprocessing.Pipe()
    process = multiprocessing.Process(target=_written, args=(title, path, other))
    process.start()
    other.close()  # so that a process that fails ends the waiting
    inputs = pipe.recv()
    process.join()
    return path, inputs


def packaged(name: str, folder: Path) -> tuple[str, Arrays]:
    """The file of a package's model, and its inputs."""
    import onnx
    from catalogue import MODELS, arrays, file_of

    path = str(file_of(MODELS[name], folder))
    names = {1: "tensor(float)", 6: "tensor(int32)", 7: "tensor(int64)", 11: "tensor(double)"}
    types = {
        one.name: names.get(one.type.tensor_type.elem_type, "")
        for one in onnx.load(path).graph.input
    }
    found = arrays(MODELS[name], types)
    return path, {one: found[one] for one in types if one in found}


def measured(title: str, path: str, inputs: Arrays, args: argparse.Namespace) -> float:
    """Prints a row; returns the ratio."""
    pair = tuple(Contender(make, path, inputs, args.threads) for make in (ours, theirs))
    return compare(title, pair, args.turns, args.turns // 3)


def main() -> None:
    """Prints the table."""
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n")[0])).add_argument
    add("--models", type=Path)
    add("--only", default="")
    add("--threads", type=int, default=2)
    add("--turns", type=int, default=31)
    args = parser.parse_args()
    begin("onnxruntime", args.threads)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for title in (one for one in EXPORTED if args.only in one):
            file = exported(title, folder)
            ratios.append(measured(title, *file, args))
        if args.models:
            from catalogue import MODELS

            for name in (one for one in MODELS if args.only in one):
                file = packaged(name, args.models)
                ratios.append(measured(name, *file, args))
    print(f"mean of the ratios: {statistics.mean(ratios):.2f}")


if __name__ == "__main__":
    main()
