"""A host of an MPI job, started on every worker's host alike: mpi_host ARGUMENTS OF PYTHON ...

The first one calls mpirun, which starts its daemons on the other hosts through what it takes for
ssh: this module again (mpi_host --at ADDRESS COMMAND ...), which hands the command to the host
that waits there. Ranks write to their own host's output, past mpirun, which would mix them up.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from scripts.lab.systems.rendezvous import await_port, place
from scripts.lab.workloads.measurement import DEVICE

PORT = 9094
HOSTS = "LAB_WORKERS"  # names the workers' addresses, by rank
VOICE = "LAB_VOICE"  # names what a rank writes to in order to be heard as its own host
MODULE = "scripts.lab.systems.mpi_host"


def mpirun(program: list[str], addresses: list[str], device: str) -> list[str]:
    """A rank for each address, those of one host beside each other; over TCP alone."""
    hosts = {address: addresses.count(address) for address in addresses}
    daemons = {"plm_ssh_agent": f"{sys.executable} -m {MODULE} --at", "prte_if_include": device}
    # Left to itself it reduces to one rank and sends the sum back: half the speed of a ring.
    ring = {"coll_libnbc_iallreduce_algorithm": "1"}
    library = {"pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": device, **ring}
    return [
        str(Path(sys.executable).with_name("mpirun")),
        *("--allow-run-as-root", "--leave-session-attached"),
        *(word for item in daemons.items() for word in ("--prtemca", *item)),
        *(word for item in library.items() for word in ("--mca", *item)),
        *("--host", ",".join(f"{address}:{ranks}" for address, ranks in hosts.items())),
        *("--map-by", f"ppr:{max(hosts.values())}:node:oversubscribe", "--bind-to", "none"),
        *(sys.executable, *program),
    ]


def _await_command(address: str) -> str:
    """What the first host's mpirun wants to be run here."""
    with socket.create_server((address, PORT)) as server:
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile() as stream:
                if command := stream.read():  # not only a look whether somebody listens
                    return command


def _hand_over(address: str, command: list[str]) -> None:
    await_port(address, PORT)
    with socket.create_connection((address, PORT)) as connection:
        connection.sendall(" ".join(command).encode())


def main(words: list[str]) -> int:
    if words[0] == "--at":
        _hand_over(words[1], words[2:])
        return 0
    rank, _, _ = place()
    addresses = os.environ[HOSTS].split(",")
    os.environ[VOICE] = f"/proc/{os.getpid()}/fd/1"
    if rank == 0:
        command = mpirun(words, addresses, os.environ[DEVICE])
    else:
        command = ["sh", "-c", _await_command(addresses[rank])]
    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
