"""What a synthetic run is to look like. All times are in microseconds."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.format.record import SYNCHRONOUS, ZMQ


@dataclass(frozen=True)
class PlannedTensor:
    name: str
    bytes: int
    every: int = 1  # it is pushed in one of so many iterations


LENET5 = (
    PlannedTensor("conv0_weight", 2000),
    PlannedTensor("conv0_bias", 80),
    PlannedTensor("conv1_weight", 100000),
    PlannedTensor("conv1_bias", 200),
    PlannedTensor("dense0_weight", 1600000),
    PlannedTensor("dense0_bias", 2000),
    PlannedTensor("dense1_weight", 20000),
    PlannedTensor("dense1_bias", 40),
)


@dataclass(frozen=True)
class Plan:
    workers: int = 2
    servers: int = 1
    iterations: int = 10
    mode: str = ZMQ
    training: str = SYNCHRONOUS
    tensors: tuple[PlannedTensor, ...] = LENET5
    seed: int = 1
    split_bytes: int = 4_000_000  # a larger tensor has a piece on every server
    # Planted overheads.
    compute_us: int = 4000  # last Pull_Recv of an iteration to the next one's first Push_Send
    slower_us: tuple[int, ...] = ()  # per worker, on top of compute_us
    jitter_us: int = 0  # on top of both: 0 to this, by chance
    gap_us: int = 100  # between two pushes
    update_us: int = 500
    search_us: int = 300
    turnaround_us: int = 20  # Push_Recv to Pull_Send on a worker
    asks_ahead: bool = False  # a training pull goes right behind its push instead
    # The network: each pair of nodes has a link of its own each way.
    latency_us: int = 50
    bytes_per_us: int = 1250  # 10 Gbit/s; 0: bytes take no time
    window_bytes: int = 0  # of a push in packets, that leave before all have begun; 0: all
    # Bytes beyond the payload, per message.
    push_extra: int = 42
    confirmation: int = 28
    request: int = 28
    answer_extra: int = 36
    # How far each clock is ahead, workers first, then servers; the scheduler's is right.
    ahead_us: tuple[int, ...] = ()
    clock_notes: bool = True
    clock_within_us: int = 200
    start_us: int = 1_700_000_000_000_000
    run: str = "synthetic"

    def pieces(self, key: int) -> list[tuple[int, int]]:
        """(server, bytes) of a tensor, in the order of its bytes."""
        size = self.tensors[key].bytes
        if self.servers == 1 or size <= self.split_bytes:
            return [(key % self.servers, size)]
        share = -(-size // self.servers)
        cut = [min(share, size - share * place) for place in range(self.servers)]
        return [((key + place) % self.servers, part) for place, part in enumerate(cut)]

    def ahead(self, role: str, rank: int) -> int:
        place = {"worker": rank, "server": self.workers + rank}.get(role, len(self.ahead_us))
        return self.ahead_us[place] if place < len(self.ahead_us) else 0

    def slower(self, worker: int) -> int:
        return self.slower_us[worker] if worker < len(self.slower_us) else 0
