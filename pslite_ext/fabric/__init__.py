"""MLfabric without MXNet: a model as a NumPy array, pushed to and got from its server.

    worker = fabric.register(model)  # in all processes of the job; returns in the workers
    for batch in data:
        model = worker.get()
        worker.push(-rate * gradient(model, batch))

docs/fabric.md says how to start such a job, what it promises, and when to use it.
"""

from __future__ import annotations

from pslite_ext.fabric.nodes import (
    Holder,
    Scheduler,
    Worker,
    current_worker,
    register,
    register_as_replica,
    register_as_scheduler,
    register_as_server,
    register_as_worker,
)
from pslite_ext.fabric.options import Rule

__all__ = [
    "Holder",
    "Rule",
    "Scheduler",
    "Worker",
    "current_worker",
    "register",
    "register_as_replica",
    "register_as_scheduler",
    "register_as_server",
    "register_as_worker",
]
