"""What is compared: a Python with an MXNet in it, and the environment that chooses a transport."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


@dataclass(frozen=True)
class System:
    name: str
    python: str
    env: dict[str, str] = field(default_factory=dict)
    store: str = "dist_sync"

    def variant(self, name: str, **env: str) -> System:
        return System(f"{self.name} {name}", self.python, {**self.env, **env}, self.store)


POLICIES = ("mercury", "fifo", "wfbp", "p3", "bytescheduler")
NAMES = ("stock", "stock-p3", "zmq", *(f"mercury-{policy}" for policy in POLICIES))
MERCURY = "mercury-mercury"


def system(name: str, stock_python: str | None) -> System:
    """By name, one of NAMES; for a stock one, the Python of an environment with that wheel."""
    if name.startswith("stock"):
        if not stock_python:
            raise ValueError(f"{name} needs the Python of an environment with the stock wheel")
        if name == "stock":
            return System(name, stock_python)
        # Its own recommendation for the number of slices under way.
        env = {"DMLC_PS_VAN_TYPE": "p3", "DMLC_PS_WATER_MARK": "10"}
        return System(name, stock_python, env, "dist_sync_p3")
    if name == "zmq":
        return System(name, sys.executable, {"DMLC_PS_VAN_TYPE": "zmq"})
    policy = name.partition("-")[2]
    if name.startswith("mercury-") and policy in POLICIES:
        env = {"DMLC_PS_VAN_TYPE": "mercury", "MERCURY_POLICY": policy}
        return System(name, sys.executable, env)
    raise ValueError(f"there is no system '{name}'; there are {', '.join(NAMES)}")
