"""Open MPI's all-reduce as a ring (the system's environment says so), in a call that waits."""

from __future__ import annotations

import os

from scripts.lab.systems.mpi_host import VOICE
from scripts.lab.systems.racer import Summed, race


def main() -> None:
    voice = os.open(os.environ[VOICE], os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(voice, stream)
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    os.environ["LAB_RANK"] = str(world.rank)  # of the first on its host until now
    race(Summed(lambda vector: world.Allreduce(MPI.IN_PLACE, vector)))


if __name__ == "__main__":
    main()
