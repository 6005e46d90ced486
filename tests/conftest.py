"""What holds for all tests: Ctrl-C is heard, and of variants that are jobs, a run has a few.

A test with `@pytest.mark.drawn(2)` runs two of its variants, drawn anew for each run.

That is for tests whose variants are whole jobs: each takes seconds, and one seldom fails alone.
`MERCURY_TEST_LONG=1` runs all of them (`make nightly` does), `MERCURY_TEST_SEED` draws the same
again, and a variant that is named on the command line runs.
"""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

import pytest

SEED = pytest.StashKey[int]()
LONG = "MERCURY_TEST_LONG"


def pytest_configure(config: pytest.Config) -> None:
    told: dict[str, Any] = getattr(config, "workerinput", {})  # by xdist, to its workers
    given = os.environ.get("MERCURY_TEST_SEED") or str(time.time_ns() % 1_000_000)
    if not given.isdecimal():
        raise pytest.UsageError(f"MERCURY_TEST_SEED is {given!r}, which is no number")
    config.stash[SEED] = told.get("drawn", int(given))
    # So shells begin what is in the background.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["drawn"] = node.config.stash[SEED]


def pytest_report_header(config: pytest.Config) -> str:
    if os.environ.get(LONG):
        return "variants: all of them"
    seed = config.stash[SEED]
    return f"variants: drawn with seed {seed} (MERCURY_TEST_SEED repeats it, {LONG}=1 runs all)"


@pytest.hookimpl(trylast=True)  # what other options leave is what is drawn from
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get(LONG) or any("[" in argument for argument in config.args):
        return
    variants: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("drawn") is not None:
            variants.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for test, among in variants.items():
        mark = among[0].get_closest_marker("drawn")
        assert mark is not None
        draw = random.Random(f"{config.stash[SEED]} {test}")
        left_out.update(draw.sample(among, max(0, len(among) - mark.args[0])))
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
