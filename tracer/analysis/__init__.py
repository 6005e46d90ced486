"""What a trace tells. One question a module, each a function from table to table.

`sections` asks all of them; the report, `stats` and the JSON output are made from its answer.
"""

from __future__ import annotations

from tracer.analysis import (
    balance,
    critical,
    exposed,
    inversion,
    life,
    overheads,
    phases,
    prophet,
    sizes,
    steps,
    stragglers,
)
from tracer.exchange import Exchanges
from tracer.run import Run
from tracer.table import Section

OF_EXCHANGES = (
    phases,
    steps,
    overheads,
    exposed,
    life,
    stragglers,
    balance,
    inversion,
    critical,
)
NAMES = (sizes.NAME, *(module.NAME for module in OF_EXCHANGES), prophet.NAME)


def sections(run: Run, table: Exchanges) -> list[Section]:
    """Every question's answer, in the order of the report; Prophet's, if it was the policy."""
    found = [sizes.section(run), *(module.section(table) for module in OF_EXCHANGES)]
    of_prophet = prophet.section(run)
    return found if of_prophet is None else [*found, of_prophet]
