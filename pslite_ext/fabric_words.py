"""What MLfabric's settings may say, and what that means."""

from __future__ import annotations

import math

from pslite_ext.setting import SettingError

DIVERGENCE = "MERCURY_FABRIC_DIVERGENCE_BOUND"
MODE = "MERCURY_FABRIC_MODE"
FORWARDING = "MERCURY_FABRIC_FORWARDING"
_STALENESS_MOST = 1_000_000


def divergence_bound(text: str) -> float:
    bound = number(text)
    if bound is None or bound < 0:
        raise SettingError(f"{DIVERGENCE} is '{text}'; allowed: a number, 0 or more")
    return bound


def staleness(text: str, what: str = MODE) -> int:
    """How many updates a worker may be ahead of the slowest when it gets the model; -1: any.

    `what`: what says so.
    """
    kind, _, rest = text.partition(":")
    if text in ("async", "sync"):
        return -1 if text == "async" else 0
    if kind == "stale" and rest.isdecimal() and 0 < int(rest) <= _STALENESS_MOST:
        return int(rest)
    raise SettingError(
        f"{what} is '{text}'; allowed: async, sync, stale:NUMBER (1 to {_STALENESS_MOST} updates)"
    )


def by_packets(text: str) -> bool:
    """Whether what is summed on its way goes on packet by packet."""
    if text not in ("packets", "whole"):
        raise SettingError(f"{FORWARDING} is '{text}'; allowed: packets, whole")
    return text == "packets"


def number(text: str) -> float | None:
    """None: it is none, or not a finite one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
