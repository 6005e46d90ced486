"""Many machines of one kind; where no window is waited for, one worker stands for all."""

from __future__ import annotations

from dataclasses import dataclass

from pslite_ext.command.sim.answer import EVENTS_MAX
from pslite_ext.forecast.model import Job, ModelError, Options, predict
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, simulate
from pslite_ext.forecast.simulate.scheme import SCHEMES, scheme
from pslite_ext.forecast.simulate.simulation import packets_of

PACKET_BYTES = 30e3
PACKETS_MAX = 30_000  # of an iteration; of a larger job the packets are larger
PACKETS_OF_ALL = 600_000  # where all workers are simulated: some ten seconds
NEGLIGIBLE = 0.99


@dataclass(frozen=True)
class Point:
    """One iteration and how busy what could limit it was."""

    iteration_s: float
    compute: float  # shares of the iteration
    worker_links: float
    server_links: float

    @property
    def limited_by(self) -> str:
        """What is busy throughout; if nothing is, what one waits for in turn."""
        shares = {
            "computation": self.compute,
            "workers' links": self.worker_links,
            "servers' links": self.server_links,
        }
        name = max(shares, key=lambda what: shares[what])
        return name if self.compute < NEGLIGIBLE else "computation"


def iterate(
    job: Job,
    policy: str,
    workers: int,
    servers: int,
    bandwidth: float,
    options: Options,
    aggregate: str = "server",
) -> Point:
    """Simulated where the simulator knows the policy, else by its formulas."""
    if policy not in SCHEMES:
        known = {**vars(options), "workers": workers, "servers": servers}
        return _point(job, predict(job, bandwidth, policy, **known).iteration_s)
    packet = options.packet_bytes or max(PACKET_BYTES, float(job.bytes.sum()) / PACKETS_MAX)
    waits = workers > 1 and scheme(policy, options).window is not None
    cluster = (Cluster.even if waits else Cluster.alike)(
        workers,
        0 if aggregate == "switch" else servers,
        bandwidth,
        latency_s=options.latency_s,
        packet_bytes=packet,
        aggregate=aggregate,
    )
    run = SimulatedJob(job, policy, options)
    packets = packets_of([run], cluster)
    if waits and packets > PACKETS_OF_ALL:
        most = max(1, int(workers * PACKETS_OF_ALL / packets))
        raise ModelError(
            f"'{policy}' waits for its pieces, so all hosts are simulated, and {workers} send too "
            f"much for that: ask for at most {most}"
        )
    done = simulate(run, cluster, EVENTS_MAX)
    busiest = {"worker": 0.0, "server": 0.0}
    for link in done.links:
        kind = "worker" if "worker" in link.name else "server"
        busiest[kind] = max(busiest[kind], link.busy_s)
    iteration_s = float(done.outcomes[0].iteration_s.max())
    return _point(job, iteration_s, busiest["worker"], busiest["server"])


def _point(job: Job, iteration_s: float, worker_s: float = 0.0, server_s: float = 0.0) -> Point:
    if iteration_s <= 0:
        return Point(0.0, 1.0, 0.0, 0.0)
    return Point(
        iteration_s, job.compute_s / iteration_s, worker_s / iteration_s, server_s / iteration_s
    )
