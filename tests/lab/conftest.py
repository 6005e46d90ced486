"""The test bed as a fixture; without privilege its tests are skipped, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from scripts.lab.bed.bed import Bed
from scripts.lab.bed.namespaces import privilege_missing


@pytest.fixture
def privileged() -> None:
    """Of a test that needs hosts with networks of their own."""
    if (reason := privilege_missing()) is not None:
        pytest.skip(f"no test bed: {reason}")


@pytest.fixture
def make_bed(privileged: None) -> Iterator[Callable[..., Bed]]:
    """make_bed(hosts, rate): a bed that is gone when the test ends."""
    with ExitStack() as beds:
        yield lambda *arguments, **named: beds.enter_context(Bed(*arguments, **named))
