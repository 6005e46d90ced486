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
        errors.raise_status(CODES[name], "what happened")
    assert isinstance(raised.value, errors.PsliteError)
    assert raised.value.code == CODES[name]


def test_an_unknown_code_is_internal() -> None:
    with pytest.raises(errors.InternalError):
        errors.raise_status(99, "x")


def test_all_are_documented() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    for error in errors.BY_CODE.values():
        assert f"`{error.__name__}`" in text
