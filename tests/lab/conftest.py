"""The test bed as a fixture; without privilege its tests are skipped, with the reason."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[2] / "scripts" / "lab"
sys.path.insert(0, str(LAB))

from bed import Bed  # noqa: E402
from namespaces import privilege_missing  # noqa: E402


@pytest.fixture
def make_bed() -> Iterator[Callable[..., Bed]]:
    """make_bed(hosts, rate): a bed that is gone when the test ends."""
    if (reason := privilege_missing()) is not None:
        pytest.skip(f"no test bed: {reason}")
    with ExitStack() as beds:
        yield lambda *arguments, **named: beds.enter_context(Bed(*arguments, **named))
