"""Replays a captured run in the simulator, under its own conditions or others."""

from tracer.replay.recorded import Recorded, from_round_trips, recorded
from tracer.replay.replay import Conditions, Replay, own_policy, replay, self_check

__all__ = [
    "Conditions",
    "Recorded",
    "Replay",
    "from_round_trips",
    "own_policy",
    "recorded",
    "replay",
    "self_check",
]
