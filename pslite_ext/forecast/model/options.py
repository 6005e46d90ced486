"""What can be assumed about the network and a policy, beside the bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pslite_ext.forecast.model.job import ModelError, number


@dataclass(frozen=True)
class Options:
    """Defaults are the ideal: as many servers as workers, no latency, no startup time."""

    latency_s: float = 0.0  # one way, worker to server
    startup_s: float = 0.0  # a sender's idle time before a message of a policy that has messages
    workers: int = 2  # with more workers than servers, the servers' links are the narrow ones
    servers: int = 2
    partition_bytes: float | None = None  # where tensors are cut; None: the policy's own
    credit_bytes: float | None = None  # bytescheduler, byteps: most bytes on their way
    packet_bytes: float = 0.0  # mercury, fifo; 0: infinitely small packets
    serial_pull: bool = False  # wfbp: pulls queue for the link back; the equations let them overlap
    bucket_bytes: float = 25e6  # ring
    barrier: bool = False  # ring: forward waits for all buckets

    def __post_init__(self) -> None:
        number("latency_s", self.latency_s)
        number("startup_s", self.startup_s)
        number("packet_bytes", self.packet_bytes)
        for name in ("serial_pull", "barrier"):
            if not isinstance(getattr(self, name), bool):
                raise ModelError(f"{name} must be true or false, not {getattr(self, name)!r}")
        for name in ("workers", "servers"):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ModelError(f"{name} must be a whole number >= 1, not {count!r}")
        for name in ("partition_bytes", "credit_bytes", "bucket_bytes"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), above_zero=True)

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Options:
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise ModelError(f"there is no option '{name}'; there are {', '.join(known)}")
        return cls(**given)  # type: ignore[arg-type]  # checked in __post_init__

    @property
    def share(self) -> float:
        """The part of a worker's bandwidth that the servers' links, shared by all, can take."""
        return min(1.0, self.servers / self.workers)
