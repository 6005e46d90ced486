"""What several commands of `mercury` ask for."""

from __future__ import annotations

import argparse

COUNT_MOST = 10_000_000


def count(text: str) -> int:
    """For argparse: a number of something."""
    if not text.isdecimal() or not 1 <= int(text) <= COUNT_MOST:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 to {COUNT_MOST:,}")
    return int(text)
