"""What the model foretells of a measured job, under the policy that its system really has.

Nothing is fitted: sizes, computation, and the link's rate less its headers are all that goes in.
"""

from __future__ import annotations

from pslite_ext.forecast.model import Job, predict

# Our stores' policies as the model knows them. Our wfbp sends whole tensors in order of readiness
# without waiting; a server answers when it has a whole tensor, and the answers of several tensors
# follow one another over the link back.
POLICY: dict[str, tuple[str, dict[str, object]]] = {
    "mercury-mercury": ("mercury", {}),
    "mercury-fifo": ("fifo", {}),
    "mercury-wfbp": ("wfbp", {"serial_pull": True}),
}


def floor_s(job: Job, bandwidth: float) -> float:
    """Theorem 1's optimum: no schedule is faster. `bandwidth` in bytes per second."""
    return predict(job, bandwidth, "mercury").iteration_s


def predicted_s(job: Job, bandwidth: float, system: str) -> float | None:
    """An iteration's time; None: the model does not describe this system."""
    if system not in POLICY:
        return None
    policy, options = POLICY[system]
    return predict(job, bandwidth, policy, **options).iteration_s
