"""Quantities with units, as people write them: 10Gbps, 50us, 4MB."""

from __future__ import annotations

import re

PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
BINARY = {"": 1.0, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
RATE = re.compile(r"([0-9.eE+-]+) ?([kKMGT]?)(bps|bit/s|bit|B/s)")
TIME = re.compile(r"([0-9.eE+-]+) ?(ns|us|ms|s)")
SIZE = re.compile(r"([0-9.eE+-]+) ?(|[kKMGT]|[KMGT]i)B?")
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class QuantityError(ValueError):
    """A text that is no such quantity; it says which."""


def bytes_per_second(text: str) -> float:
    """10Gbps, 10Gbit/s, 10Gbit or 1.25GB/s."""
    found = RATE.fullmatch(text.strip())
    if not found:
        raise QuantityError(f"'{text}' is not a bandwidth such as 10Gbps or 1.25GB/s")
    value = _amount(text, found[1], PREFIX[found[2]])
    value = value if found[3] == "B/s" else value / 8
    if value <= 0:
        raise QuantityError(f"a bandwidth must be > 0, not '{text}'")
    return value


def seconds(text: str) -> float:
    """50us, 0.3ms or 2s."""
    found = TIME.fullmatch(text.strip())
    if not found:
        raise QuantityError(f"'{text}' is not a time such as 50us, 0.3ms or 2s")
    return _amount(text, found[1], SECONDS[found[2]])


def size(text: str) -> float:
    """4MB, 512KiB, or a number of bytes."""
    found = SIZE.fullmatch(text.strip())
    if not found:
        raise QuantityError(f"'{text}' is not a size such as 4MB, 512KiB or 30000")
    return _amount(text, found[1], {**PREFIX, **BINARY}[found[2]])


def _amount(text: str, digits: str, unit: float) -> float:
    try:
        value = float(digits) * unit
    except ValueError:
        raise QuantityError(f"'{text}' does not begin with a number") from None
    if value < 0:
        raise QuantityError(f"'{text}' must not be negative")
    if value == float("inf"):
        raise QuantityError(f"'{text}' is too large")
    return value


def as_rate(value: float) -> str:
    """Bytes per second, in bits, for people."""
    if value == float("inf"):
        return "never"
    for prefix in "TGMk":
        if value * 8 >= PREFIX[prefix]:
            return f"{value * 8 / PREFIX[prefix]:.3g} {prefix}bit/s"
    return f"{value * 8:.3g} bit/s"
