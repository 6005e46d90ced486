"""A text as numbers whose sums over all workers tell whether all have the same text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

WORDS = 3  # and as many squares
NUMBERS = 2 * WORDS
WORD_END = 1 << 10  # the sum of 2000 squares is an int32


def words_of(what: str) -> list[int]:
    """Numbers and their squares: their sums are n times these only if all n workers' are these."""
    digest = hashlib.blake2b(what.encode(), digest_size=2 * WORDS).digest()
    parts = [int.from_bytes(digest[2 * i : 2 * i + 2], "little") % WORD_END for i in range(WORDS)]
    return [*parts, *(part * part for part in parts)]


def said_alike(summed: Sequence[int], what: str, most: int, least: int) -> int:
    """How many workers, of so many at most, have said this, all alike; 0: fewer than `least`, or
    not all the same."""
    own = words_of(what)
    counts = range(most, least - 1, -1)
    return next((n for n in counts if list(summed) == [n * word for word in own]), 0)
