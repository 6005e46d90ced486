"""What the model and the simulator foretell of a measured job.

The model has the policy that its system really has, and nothing is fitted: sizes, computation, and
the link's rate less its headers are all that goes in. The simulator has our links' windows and
packets besides, and one figure that was chosen: how late a process reacts that shares this
machine's processors with all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pslite_ext.forecast.model import Job, predict
from pslite_ext.forecast.simulate import SimulatedJob, simulate
from pslite_ext.forecast.simulate.our_links import mercury_cluster
from scripts.lab.benches.case import Setting

# Our stores' policies as the model knows them. Our wfbp sends whole tensors in order of readiness
# without waiting; a server answers when it has a whole tensor, and the answers of several tensors
# follow one another over the link back.
POLICY: dict[str, tuple[str, dict[str, object]]] = {
    "mercury-mercury": ("mercury", {}),
    "mercury-fifo": ("fifo", {}),
    "mercury-wfbp": ("wfbp", {"serial_pull": True}),
}


LATENCY_S = 50e-6  # between two hosts of the bed, one way
REACTION_S = 0.0007  # on average
ITERATIONS = 3


def floor_s(job: Job, bandwidth: float) -> float:
    """Theorem 1's optimum: no schedule is faster. `bandwidth` in bytes per second."""
    return predict(job, bandwidth, "mercury").iteration_s


def predicted_s(job: Job, bandwidth: float, system: str) -> float | None:
    """An iteration's time; None: the model does not describe this system."""
    return policy_s(job, bandwidth, system) if system in POLICY else None


def policy_s(job: Job, bandwidth: float, system: str) -> float:
    """The same, of a system that is in POLICY."""
    policy, options = POLICY[system]
    return predict(job, bandwidth, policy, **options).iteration_s


def while_rates_change(
    iteration_s: Callable[[float], float], rates: Iterable[float], every_s: float, iterations: int
) -> float:
    """The mean of so many, each as long as `iteration_s` has it at the rate of the moment; a rate
    holds for `every_s`."""
    done = spent_s = 0.0
    for rate in rates:
        each_s = iteration_s(rate)
        if done + every_s / each_s >= iterations:
            return (spent_s + (iterations - done) * each_s) / iterations
        done += every_s / each_s
        spent_s += every_s
    raise AssertionError("there are rates without an end")


def simulated_s(job: Job, setting: Setting) -> float:
    """Of an iteration with packets of ours, as priorities have it: the slowest worker's."""
    cluster = mercury_cluster(
        setting.workers,
        setting.servers,
        setting.bandwidth,
        latency_s=LATENCY_S,
        reaction_s=REACTION_S,
        beside=setting.beside,
    )
    done = simulate(SimulatedJob(job, iterations=ITERATIONS), cluster)
    return float(done.outcomes[0].iteration_s.max(axis=1).mean())
