"""Systems that nobody here wrote, in environments of their own, or why they are not there.

`make bench-install-peers` makes the environments; one that could not be made leaves its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
READY, REASON = ".ready", ".reason"  # files of an environment: it is complete; why it is not


class PeerMissing(ValueError):
    """The peer cannot be measured here; the text says why."""


@dataclass(frozen=True)
class Peer:
    environment: str = ""  # its folder under ROOT
    never: str = ""  # why it cannot be had at all


PEERS = {
    "horovod": Peer(".venv-peers-horovod"),
    "torch-ddp": Peer(".venv-peers-torch"),
    "mpi": Peer(".venv-peers-mpi"),
    "byteps": Peer(
        never="without CUDA and NCCL it builds only against stand-ins, and its server then "
        "overwrites sums before slower workers have fetched them: a fifth of all are wrong"
    ),
}

# Not systems of the benches: the lab's own, and what it compares with when a worker is lost alone.
TUNER, TORCHFT = "tuner", "torchft"
TOOLS = {TUNER: Peer(".venv-peers-tuner"), TORCHFT: Peer(".venv-peers-torchft")}


def peer_python(name: str, root: Path = ROOT) -> str:
    """The Python of a peer's or a tool's environment; PeerMissing if there is none."""
    peer = {**PEERS, **TOOLS}[name]
    if peer.never:
        raise PeerMissing(peer.never)
    folder = root / peer.environment
    if (folder / READY).exists():
        return str(folder / "bin" / "python")
    if (folder / REASON).exists():
        raise PeerMissing((folder / REASON).read_text().strip())
    raise PeerMissing("not installed; `make bench-install-peers` does that")
