"""The one mapping from the core's statuses to exceptions is total and agrees with status.h."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pslite_ext import errors

ROOT = Path(__file__).resolve().parents[2]
HEADER = (ROOT / "pslite_ext" / "csrc" / "base" / "status.h").read_text()
CODES = {name: int(n) for name, n in re.findall(r"^  k(\w+) = (\d+),", HEADER, re.MULTILINE)}


def test_every_code_has_its_exception() -> None:
    assert CODES.pop("Ok") == 0
    assert set(CODES.values()) == set(errors.BY_CODE)


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("InvalidArgument", ValueError),
        ("Corrupt", OSError),
        ("PeerLost", ConnectionError),
        ("Timeout", TimeoutError),
        ("Exhausted", MemoryError),
        ("Closed", ConnectionError),
        ("Internal", RuntimeError),
    ],
)
def test_it_is_a_builtin_too(name: str, builtin: type[Exception]) -> None:
    with pytest.raises(builtin, match="what happened") as raised:
        errors.raise_status(errors.Failure(CODES[name], 5), "what happened")
    assert isinstance(raised.value, errors.PsliteError)
    assert raised.value.code == CODES[name]
    assert raised.value.failure == errors.Failure(CODES[name], 5)


def test_an_unknown_code_is_internal() -> None:
    with pytest.raises(errors.InternalError):
        errors.raise_status(errors.Failure(99), "x")


def test_what_a_failure_led_to_is_told_by_its_number_alone() -> None:
    failure = errors.Failure(3, 17)
    error = ValueError("what the script makes of it")
    error.__cause__ = errors.from_status(failure, "lost worker 1")
    assert errors.follows(error, failure)
    assert not errors.follows(error, errors.Failure(3, 18))
    assert not errors.follows(error, None)
    assert not errors.follows(errors.PeerLostError("lost worker 1"), failure)


def test_all_are_documented() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    for error in errors.BY_CODE.values():
        assert f"`{error.__name__}`" in text
