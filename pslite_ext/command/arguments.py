"""What several commands of `mercury` ask for."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """For argparse: a number of something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number >= 1")
    return int(text)
