"""Which PyTorch is new enough."""

from __future__ import annotations

import pytest

from pslite_ext.torch_version import is_too_old


@pytest.mark.parametrize(
    ("version", "old"),
    [("1.13.1", True), ("2.0.1+cu118", True), ("2.1.0", False), ("2.10.0", False), ("3.0", False)],
)
def test_too_old(version: str, old: bool) -> None:
    assert is_too_old(version) == old
