"""The differential tester: its catalogue is complete, it detects a fault, and reports no others."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cases import CASES, MADE_BY_REWRITING, NO_GRADIENT
from fuzz import catalogue, check, compare, coverage, gradients, job, ways
from fuzz.generate import generate, sandbox
from fuzz.program import Program
from fuzz.run import Seen
from fuzz.shrink import shrink
from singa_rs import _core, autograd

#: The number of programs in every test run, and the first seed.
PROGRAMS, START = 500, 0


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A job in its own process, since a program may crash."""
    folder = tmp_path_factory.mktemp("findings")
    return job.Job(START, PROGRAMS, 1, folder, ["--no-shrink"]).run()


@pytest.mark.timeout(900)
def test_random_programs_agree_with_eager_execution(report):
    told = [
        f"seed {f['seed']}, {f['way']}, {f['environment']}: {f['says']}" for f in report.findings
    ]
    assert not told, "\n".join(told)
    assert report.counts["programs"] == PROGRAMS


@pytest.mark.timeout(900)
def test_the_programs_really_replay(report):
    assert report.counts["programs replayed"] > 0.5 * PROGRAMS
    assert report.counts["gradients compared"] > 0.01 * PROGRAMS


@pytest.mark.timeout(900)
def test_frequent_items_are_drawn(report):
    rows = coverage.rows()
    families = ("opt.", "update ", "dtype ", "way ", "session ", "role ", "layer.", "Tensor.__")
    cheap = [row for row in rows if row.startswith(families)]
    often = [row for row in cheap if not report.counts[row]]
    assert len(often) <= len(cheap) / 20, often
    rules = {f"rule {rule}" for rule in coverage.RULES} - coverage.RARE
    assert not [rule for rule in rules if not report.counts[rule]]


@pytest.mark.skipif(not hasattr(_core, "emulated_gpu"), reason="a build without an emulated GPU")
@pytest.mark.timeout(900)
def test_random_programs_agree_with_eager_execution_on_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("SINGA_RS_DEVICE", "emulated")
    report = job.Job(50_000, 40, 1, tmp_path, ["--no-shrink"]).run()
    assert not report.findings, report.findings
    assert report.counts["programs replayed"] > 0.2 * 40


#: Families that a few hundred programs may miss, and why.
RARE_FAMILIES = {
    "avg_pool_grad": "few layers average windows, and not all of them are trained",
    "batch_norm_inference": "rewriting replaces it in nearly all graphs",
    "batch_norm_inference_grad": "gradients through a layer in evaluation are rare",
    "gather_elements_grad": "few programs take elements at places of what is trained",
    "solve": "one public function among hundreds",
    "tensor_scatter": "one public function among hundreds",
    "triangular_solve": "one public function among hundreds",
}


@pytest.mark.timeout(900)
def test_every_family_of_operations_is_drawn(report):
    """Except those that only rewriting makes, whose rules are counted."""
    own = {case.name for case in CASES if NO_GRADIENT.get(case.name) != MADE_BY_REWRITING}
    families = {case.family for case in CASES if case.name in own}
    drawn = {case.family for case in CASES if report.counts[f"operation {case.name}"]}
    assert families - drawn - set(RARE_FAMILIES) == set()


def test_every_public_name_is_drawn_or_left_out_with_a_reason():
    assert catalogue.unknown() == []
    names = {entry.name.removesuffix("()") for entry in catalogue.entries().values()}
    assert not names & set(catalogue.LEFT_OUT)
    assert all(catalogue.LEFT_OUT.values())


def test_every_entry_of_the_catalogue_can_be_drawn():
    waiting = [*catalogue.entries().values()]
    autograd.training = True
    for seed in range(60):
        waiting = sandbox(seed).try_all(waiting)
        if not waiting:
            break
    assert not [entry.name for entry in waiting]


def test_a_new_public_name_is_noticed(monkeypatch):
    monkeypatch.setattr(autograd, "brand_new", 3, raising=False)
    monkeypatch.setattr(autograd, "__all__", [*autograd.__all__, "brand_new"])
    assert catalogue.unknown() == ["autograd.brand_new"]


def test_a_seed_gives_the_same_program_each_time():
    programs = [generate(seed).source() for seed in range(20)]
    assert programs == [generate(seed).source() for seed in range(20)]
    assert len(set(programs)) > 15


def test_a_program_is_a_file_that_runs_by_itself(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(check.tried(3)[0].file("A program."))
    package = str(Path(autograd.__file__).parents[2])
    made = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": package},
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    assert "equal" in made.stdout and "DIFFERENT" not in made.stdout


#: A program whose step behaves differently while its thread records.
WRONG = Program(
    data=["from singa_rs import _core", "x0 = held(draw(1, (4, 3)))", "y0 = x0"],
    init=["self.p0 = parameter(draw(2, (3,)))", "self.l0 = layer.Linear(4)"],
    forward=[
        "v1 = autograd.tanh(x)",
        "v2 = autograd.relu(v1)",
        "v3 = v2 * (0.5 if _core.recording() else 0.25)",
        "v4 = v3 + self.p0",
        "v5 = autograd.exp(v4)",
    ],
    result="v5",
    losses=["loss = autograd.reduce_mean(out * out).reshape((1,))"],
    update=["pass"],
    session=["see(m(x0, y0))", "m.flag = True", "see(m(x0, y0))", "see(m(x0, y0))"],
)


def test_a_difference_is_found_and_shrunk():
    finding = check.Finding(WRONG, ways.REPLAYED, check.judge(WRONG, ways.REPLAYED, {}))
    assert finding.says.startswith("see 0[0][0]: eager")
    small = shrink(WRONG, check.still(finding), 20)
    assert small.lines() < 8 and any("recording()" in line for line in small.forward)


def test_a_wrong_gradient_is_found():
    made = WRONG.copy()
    made.classes = """
class Twice(autograd.Operator):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        return dy * 3
"""
    made.forward = ["v5 = Twice()(autograd.exp(x * self.p0))[0]"]
    assert "gradient of p0" in gradients.difference(made)
    made.forward = ["v5 = autograd.exp(x * self.p0)"]
    assert gradients.difference(made) is None


def test_a_crash_and_a_hang_are_findings(tmp_path, monkeypatch):
    monkeypatch.setattr(job, "CHUNK", 4)
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif 'fuzz.worker' in sys.orig_argv: os.abort()"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = job.Job(0, 2, 1, tmp_path, []).run()
    assert [found["seed"] for found in made.findings] == [0, 1]
    assert all("the process ended with" in found["says"] for found in made.findings)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\nif 'fuzz.worker' in sys.orig_argv: time.sleep(60)"
    )
    monkeypatch.setattr(job, "LIMIT", 1.0)
    assert "took more than 1 s" in job.Job(0, 1, 1, tmp_path, []).run().findings[0]["says"]


def seen(*values):
    made = Seen()
    made.see(*values)
    made.items += [("array", v) for v in values if isinstance(v, np.ndarray)]
    return made


def test_values_are_compared_to_the_bit_with_nans_alike():
    a = np.array([0.0, np.nan, 1.0], np.float32)
    other = a.copy()
    other.view(np.uint32)[1] ^= 1
    assert compare.same(a, other) and compare.same(a, a.copy())
    assert not compare.same(a, np.array([-0.0, np.nan, 1.0], np.float32))
    assert not compare.same(a, np.array([np.nan, 0.0, 1.0], np.float32))
    assert not compare.same(a, a.astype(np.float64)) and not compare.same(a, a[:2])
    assert compare.difference(seen(a), seen(a), ways.REPLAYED) is None
    assert "1 values" in compare.difference(seen(a), seen(), ways.REPLAYED)


def test_counts_name_what_was_never_drawn():
    counts = Counter({row: 1 for row in coverage.rows()})
    assert coverage.missing(counts) == []
    del counts["rule links"]
    assert coverage.missing(counts) == ["rule links"] and "| rule links | 0 |" in coverage.table(
        counts
    )
