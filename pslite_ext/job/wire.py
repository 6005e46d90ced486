"""As what each gradient travels: a word of the job's or of a script's, or one for some parameters.

A word is one of `_core.wires()`, or "auto". It is for float32 gradients; others travel as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.wire_words import AUTO, PLAIN, coded_as


def codec_for(word: str, dtype: str, shape: Sequence[int]) -> str:
    """What a gradient of that type and shape travels as; "none": as it is; or "auto"."""
    if word == PLAIN or dtype != PLAIN:
        return "none"
    if word == AUTO:
        return AUTO
    return coded_as(word, math.prod(shape), len(shape))


class Wire:
    """What a script asks for. `given`: a word, words by patterns of names, or nothing."""

    def __init__(self, given: Any, of_job: str = PLAIN) -> None:
        self._of_job = of_job
        self._patterns: Mapping[str, str] = {}
        if isinstance(given, str):
            self._of_job = _word(given)
        elif isinstance(given, Mapping):
            self._patterns = {str(pattern): _word(word) for pattern, word in given.items()}
        elif given is not None:
            raise InvalidArgumentError(
                f"wire: one of {', '.join(_core.wires())}, {AUTO} is needed, or a dict of them by "
                f"patterns of names, not {type(given).__name__}"
            )

    def word(self, name: str) -> str:
        """Of the first pattern that the name fits, or the job's."""
        for pattern, word in self._patterns.items():
            if fnmatchcase(name, pattern):
                return word
        return self._of_job

    def check(self, types: Iterable[tuple[str, str]]) -> None:
        """Refuses patterns for which there is nothing to do, of all parameters' names and types."""
        types = list(types)
        for pattern, word in self._patterns.items():
            fitting = [(name, dtype) for name, dtype in types if fnmatchcase(name, pattern)]
            if not fitting:
                names = ", ".join(name for name, _ in types[:3])
                raise InvalidArgumentError(
                    f"wire: no parameter's name fits '{pattern}': they are {names} ..."
                )
            others = [f"'{name}' ({dtype})" for name, dtype in fitting if dtype != PLAIN]
            if others and word != PLAIN and (pattern != "*" or len(others) == len(fitting)):
                raise InvalidArgumentError(
                    f"wire: '{pattern}' asks for {word}, but {others[0]} is not {PLAIN}: only "
                    f"{PLAIN} gradients can be sent as something else"
                )


def _word(given: Any) -> str:
    allowed = [*_core.wires(), AUTO]
    if given not in allowed:
        raise InvalidArgumentError(f"wire: {given!r} is not known; allowed: {', '.join(allowed)}")
    return str(given)
