"""The runner of SINGA's examples: what it runs and refuses, the data that it makes, and its page.

The examples themselves need a checkout of SINGA: make test-singa."""

import gzip
import importlib.util
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from generated import WRITERS, pictures
from page import PAGE, text
from programs import SCRIPTS
from running import losses, run
from script import Script
from singa_rs import data, sonnx

PROGRAM = """
import os
import sys
from helper import start
from singa import device, tensor

steps = 1000
dev = device.create_cuda_gpu()
print(sys.argv[1:], os.path.exists("/tmp/train-images-idx3-ubyte.gz"), input("more?"))
loss = tensor.Tensor(data=start, device=dev)
for step in range(steps):
    print("loss = %f" % tensor.to_numpy(loss)[0])
    loss /= 2
"""


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    place = folder / "examples" / "mine"
    place.mkdir(parents=True)
    (place / "program.py").write_text(PROGRAM)
    (place / "helper.py").write_text("import numpy as np\nstart = np.array([8.0], np.float32)\n")
    return folder


MINE = Script(
    "mine/program.py",
    "--rows {data}/x",
    ("mnist",),
    typed="no\n",
    shorter={"steps = 1000": "steps = 3"},
    loss=r"loss = ([\d.]+)",
)


def test_a_program_runs_in_a_copy_on_generated_data(checkout, tmp_path):
    printed = run(MINE, checkout, tmp_path)
    assert losses(MINE, printed) == [8.0, 4.0, 2.0]
    assert f"['--rows', '{tmp_path}/data/x'] True" in printed and "no" in printed
    assert (checkout / "examples" / "mine" / "program.py").read_text() == PROGRAM


def test_files_of_other_programs_are_changed(checkout, tmp_path):
    changed = MINE._replace(others={"mine/helper.py": {"8.0": "2.0"}})
    assert losses(MINE, run(changed, checkout, tmp_path)) == [2.0, 1.0, 0.5]


@pytest.mark.parametrize(
    "changed, match",
    [
        (MINE._replace(shorter={"steps = 100000": ""}), "does not have 'steps = 100000'"),
        (MINE._replace(others={"mine/helper.py": {"start": "end"}}), "ImportError"),
        (MINE._replace(cuda=False), "SINGA_RS_DEVICE=cpu"),
        (MINE._replace(typed=""), "EOFError"),
    ],
)
def test_a_program_that_fails_or_is_another_is_told(changed, match, checkout, tmp_path):
    with pytest.raises(AssertionError, match=match):
        run(changed, checkout, tmp_path)


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None
    or not Path(sys.executable).with_name("mpiexec").exists(),
    reason="MPI is not installed: pip install singa-rs[mpi]",
)
def test_a_program_of_mpi_runs_as_several_processes(checkout, tmp_path):
    # One write a line, since lines of two processes mix.
    program = (
        "import os\n"
        "from singa import opt\n"
        "rank = opt.DistOpt(opt.SGD(lr=0.1)).global_rank\n"
        "os.write(1, f'rank {rank}\\n'.encode())\n"
    )
    (checkout / "examples" / "mine" / "program.py").write_text(program)
    printed = run(Script("mine/program.py", ranks=2), checkout, tmp_path)
    assert sorted(printed.splitlines()) == ["rank 0", "rank 1"]


def test_a_process_that_fails_is_told_where_the_program_does_not_look(checkout, tmp_path):
    program = "import multiprocessing\nmultiprocessing.Process(target=int, args=('x',)).start()\n"
    (checkout / "examples" / "mine" / "program.py").write_text(program)
    with pytest.raises(AssertionError, match="ValueError: invalid literal"):
        run(Script("mine/program.py"), checkout, tmp_path)


def test_a_program_that_is_missing_is_told(checkout, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"mine/other\.py"):
        run(MINE._replace(path="mine/other.py"), checkout, tmp_path)


def test_pictures_of_a_class_resemble_each_other():
    images, labels = pictures(40, (28, 28))
    near = [
        np.abs(images[labels == one] - images[labels == one].mean(0)).mean() for one in range(10)
    ]
    far = np.abs(images[labels == 0].mean(0) - images[labels == 1].mean(0)).mean()
    assert max(near) < far / 2


def test_formats_are_those_that_readers_of_this_package_read(tmp_path):
    for name in ("mnist", "cifar10", "cifar100", "mnist_pickle"):
        WRITERS[name](tmp_path)
    x, y, *_ = data.load_cifar10(tmp_path / "cifar-10-batches-py")
    assert x.shape == (320, 3, 32, 32) and set(y) == set(range(10))
    with gzip.open(tmp_path / "mnist.pkl.gz") as file:
        train, valid, test = pickle.load(file)
    assert train[0].shape == (1000, 784) and valid[0].max() <= 1 and len(test[1]) == 200


def test_networks_run(tmp_path):
    from networks import NETWORKS

    for network in {id(one): one for _, one in NETWORKS.values()}.values():
        proto = network()
        shape = [one.dim_value or 1 for one in proto.graph.input[0].type.tensor_type.shape.dim]
        (y,) = sonnx.prepare(proto).run([np.ones(shape, np.float32)])
        assert np.isfinite(y).all()


def test_each_program_is_listed_once():
    paths = [one.path for one in SCRIPTS]
    assert len(set(paths)) == len(paths)
    assert all(
        bool(one.wrong) == bool(one.mended or one.others) or not one.needs for one in SCRIPTS
    )


def test_each_program_shows_that_it_got_through():
    assert not [one.path for one in SCRIPTS if not (one.needs or one.loss or one.prints)]


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == text(), "run python tests/singa/page.py"
