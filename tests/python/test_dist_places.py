"""Which process the environment says this is."""

import pytest
from singa_rs.dist import DistError
from singa_rs.dist.place import Place, named_segment, place_of


def test_alone():
    assert place_of({}) == Place(0, 1, 0, 1, None, None)


@pytest.mark.parametrize(
    ("names", "launcher"),
    [
        (
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE"),
            "Open MPI",
        ),
        (("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"), "MPICH"),
        (
            ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
             "SLURM_STEP_TASKS_PER_NODE"),
            "Slurm",
        ),
    ],
)  # fmt: skip
def test_launchers_of_mpi(names, launcher):
    environment = dict(zip(names, ("5", "6", "1", "2"), strict=True))
    assert place_of(environment) == Place(5, 6, 1, 2, None, launcher)


def test_slurm_tells_tasks_of_each_machine():
    given = {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "5", "SLURM_LOCALID": "0"}
    assert place_of({**given, "SLURM_STEP_TASKS_PER_NODE": "2(x2),1"}).local_size == 2


def test_variables_of_torchrun():
    given = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    place = place_of(given)
    assert place[:4] == (1, 2, 1, 2)
    assert place.path == place_of({**given, "RANK": "0"}).path
    assert place.path != place_of({**given, "MASTER_PORT": "29501"}).path
    assert place_of({**given, "SINGA_RS_SEGMENT": "/x"}).path == "/x"
    assert named_segment("a") != named_segment("b")


def test_contradictions():
    with pytest.raises(DistError, match="RANK='x', want a whole number"):
        place_of({"RANK": "x", "WORLD_SIZE": "2"})
    for long in ("9" * 20, "9" * 5000):
        with pytest.raises(DistError, match="WORLD_SIZE='9+.*, want at most 9 digits"):
            place_of({"RANK": "0", "WORLD_SIZE": long})
    with pytest.raises(DistError, match="WORLD_SIZE 257, want at most 256 processes that share"):
        place_of({"RANK": "0", "WORLD_SIZE": "257"})
    with pytest.raises(DistError, match="got RANK=2, WORLD_SIZE=2"):
        place_of({"RANK": "2", "WORLD_SIZE": "2", "LOCAL_RANK": "0"})
    with pytest.raises(DistError, match="processes of several machines"):
        place_of({"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"})
