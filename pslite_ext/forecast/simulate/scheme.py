"""What a simulated worker and server do with a tensor: the policies, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pslite_ext.forecast.model import ModelError, Options, model_name
from pslite_ext.forecast.model.pieces import (
    BYTEPS_BYTES,
    BYTESCHEDULER_BYTES,
    BYTESCHEDULER_CREDIT_BYTES,
    P3_BYTES,
)


@dataclass(frozen=True)
class Scheme:
    by_priority: bool  # the most urgent layer first; or in the order of readiness
    streams: bool  # a packet's sum goes out when its last copy is in; or whole pieces, confirmed
    asks: bool = False  # the sum is asked for after the confirmation; or sent unasked
    piece_bytes: float | None = None  # None: a tensor is one piece
    window: int | None = None  # pieces on their way; None: no limit
    startup_s: float = 0.0  # before each piece
    holds_link: bool = False  # the link idles during startup; or the piece before is still sent


SCHEMES = {
    "mercury": Scheme(by_priority=True, streams=True),
    "fifo": Scheme(by_priority=False, streams=True),
    "wfbp": Scheme(by_priority=False, streams=False, asks=True, holds_link=True),
    "p3": Scheme(by_priority=True, streams=False, piece_bytes=P3_BYTES, window=1),
    "bytescheduler": Scheme(
        by_priority=True, streams=False, asks=True, piece_bytes=BYTESCHEDULER_BYTES
    ),
    "byteps": Scheme(by_priority=True, streams=False, asks=True, piece_bytes=BYTEPS_BYTES),
}


def scheme(policy: str, options: Options) -> Scheme:
    """The scheme of a policy under the model's options."""
    policy = model_name(policy)
    if policy not in SCHEMES:
        raise ModelError(f"policy '{policy}' cannot be simulated; these can: {', '.join(SCHEMES)}")
    chosen = SCHEMES[policy]
    if chosen.streams:
        return chosen
    chosen = replace(chosen, startup_s=options.startup_s)
    if chosen.piece_bytes is None:
        return chosen
    size = options.partition_bytes or chosen.piece_bytes
    credit = options.credit_bytes
    if policy == "bytescheduler":
        credit = credit or BYTESCHEDULER_CREDIT_BYTES
    window = max(1, int(credit // size)) if credit and policy != "p3" else chosen.window
    return replace(chosen, piece_bytes=size, window=window)
