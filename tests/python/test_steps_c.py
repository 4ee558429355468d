"""The C interface: a program in C trains on to the bits of Python, and the library is small."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import singa_rs
from step_models import environment, made, states_of, train

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "target" / "library" / "release" / "libsinga_rs.so"
CC = shutil.which("cc")

pytestmark = [
    pytest.mark.skipif(CC is None, reason="no C compiler (cc)"),
    pytest.mark.skipif(not LIBRARY.exists(), reason="no library: make library"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The example, compiled."""
    made = tmp_path_factory.mktemp("c") / "train"
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-std=c99"]
    source = ROOT / "examples" / "train.c"
    subprocess.run(
        [CC, *warnings, f"-I{ROOT / 'src' / 'capi'}", source, LIBRARY, "-o", made], check=True
    )
    return made


def run(program, *args, status=0):
    done = subprocess.run(
        [program, *args], capture_output=True, text=True, timeout=250, env=environment()
    )
    assert done.returncode == status, done.stderr
    return done


def losses(done):
    return [float.fromhex(line) for line in done.stdout.split()]


@pytest.mark.parametrize("name", ["mlp", "conv", "dropout", "lstm", "attention"])
def test_c_trains_on_to_the_bit(program, name, tmp_path):
    model, given = made(name)
    train(model, given[:5])
    step, batches, trained = (tmp_path / one for one in ("step.srs", "batches.raw", "trained.srs"))
    model.save_step(step, *given[0])
    batches.write_bytes(b"".join(one.tobytes() for batch in given[5:] for one in batch))
    want = [loss.item() for _, loss in train(model, given[5:])]
    assert losses(run(program, step, batches, trained)) == want
    states = singa_rs.Step.load(trained).states
    for name, state in states_of(model).items():
        assert states[name].to_numpy().tobytes() == state.tobytes(), name


def test_c_trains_the_digits(program, tmp_path):
    """As many batches of examples/digits.py as a test has time for."""
    pytest.importorskip("sklearn")
    script = [sys.executable, ROOT / "examples" / "digits_step.py"]
    options = ["--epochs", "4", "--width", "8"]
    run(*script, "export", tmp_path, *options)
    trained = tmp_path / "trained.srs"
    seen = losses(run(program, tmp_path / "step.srs", tmp_path / "batches.raw", trained))
    assert seen == python_losses(tmp_path, options)
    done = run(*script, "evaluate", trained, *options, "--target", "0.6")
    assert "test accuracy" in done.stdout


def python_losses(folder, options):
    """What Python makes of the same batches."""
    program = (
        "import sys, numpy as np, digits_step as d\n"
        "args = d.arguments()\n"
        "known = d.digits.load_digits()\n"
        "model = d.network(known, args)\n"
        "for batch in d.batches(known, args):\n"
        "    print(float(model(*batch)[1].item()).hex())\n"
    )
    own = {
        **environment(),
        "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{ROOT / 'examples'}",
    }
    command = [sys.executable, "-c", program, "export", folder, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=own)
    return losses(done)


def test_what_fails_has_a_message(program, tmp_path):
    done = run(program, tmp_path / "none.srs", __file__, tmp_path / "trained.srs", status=1)
    assert done.stderr.startswith(f"train: Step::open: {tmp_path}/none.srs: No such file")
    assert "usage" in run(program, status=2).stderr


def test_the_header_declares_what_the_library_exports():
    folder = ROOT / "src" / "capi"
    header = re.sub(r"/\*.*?\*/", "", (folder / "singa_step.h").read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"\b(singa_step_\w+)\(", header))
    source = "".join(path.read_text() for path in folder.glob("*.rs"))
    assert declared == set(re.findall(r'extern "C" fn (\w+)\(', source))


def test_the_library_is_small():
    assert LIBRARY.stat().st_size <= 10 * 10**6
