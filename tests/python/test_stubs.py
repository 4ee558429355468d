"""The stubs say what the modules have, and make it known to type checkers."""

import ast
import subprocess
import sys

import pytest
import stubs

PROGRAM = """
from singa_rs import autograd, tensor
from singa_rs.tensor import Tensor

class Half(autograd.Operator):
    def forward(self, x: Tensor) -> Tensor:
        return x * 0.5

    def backward(self, dy: Tensor) -> Tensor:
        return dy * 0.5

t: Tensor = tensor.zeros((2, 3), dtype=tensor.float64)
made: list[Tensor] = [autograd.relu(t), tensor.exp(t), t.exp(), t + 1, 1 - t, t @ t.T(), t.sum(0)]
made += [-t, t[0], t < 1, autograd.where(t > 0, t, 0), *t.split(1, [1, 2]), *Half()(t)]
made += [t.sum(1, keepdim=True), t.std(dim=0, unbiased=False), t.max(dim=1).values, t.max(1)]
t += 1
shape: tuple[int, ...] = t.shape
autograd.training = True
for parameter, gradient in autograd.backward(t.sum()):
    parameter.copy_from(gradient)
"""


@pytest.mark.parametrize("module", stubs.LENT, ids=lambda module: module.__name__)
def test_stubs_are_up_to_date(module):
    """If not, run tests/python/stubs.py."""
    if sys.version_info < (3, 11):
        pytest.skip("overloads cannot be read at run time")
    written = ast.parse(stubs.path(module).read_text())
    assert ast.unparse(written) == ast.unparse(ast.parse(stubs.stub(module)))


def test_type_checkers_know_what_the_tables_make(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "wrong: int = autograd.relu(t)\n")
    home = stubs.path(stubs.tensor).parents[2]
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    call = [sys.executable, "-m", "mypy", *options, str(program)]
    result = subprocess.run(call, cwd=home, capture_output=True, text=True)
    assert result.stdout.count("error:") == 1, result.stdout
    assert 'has type "Tensor"' in result.stdout
