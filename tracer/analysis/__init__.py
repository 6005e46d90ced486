"""What a trace tells. One question a module, each a function from table to table.

`sections` asks all of them; the report, `stats` and the JSON output are made from its answer.
"""

from __future__ import annotations

from tracer.analysis import (
    balance,
    critical,
    exposed,
    inversion,
    message_parts,
    overheads,
    phases,
    prophet,
    sizes,
    steps,
    stragglers,
)
from tracer.round_trip import RoundTrips
from tracer.run import Run
from tracer.table import Section

OF_ROUND_TRIPS = (
    phases,
    steps,
    overheads,
    exposed,
    message_parts,
    stragglers,
    balance,
    inversion,
    critical,
)
NAMES = (sizes.NAME, *(module.NAME for module in OF_ROUND_TRIPS), prophet.NAME)


def sections(run: Run, table: RoundTrips) -> list[Section]:
    """Every question's answer, in the order of the report; Prophet's, if it was the policy."""
    found = [sizes.section(run), *(module.section(table) for module in OF_ROUND_TRIPS)]
    of_prophet = prophet.section(run)
    return found if of_prophet is None else [*found, of_prophet]
