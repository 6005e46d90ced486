"""All cases of more and more hosts in one table."""

from __future__ import annotations

from dataclasses import replace

from scripts.lab.report.scaling_table import by_hosts
from tests.lab.report.test_pictures import scaled


def test_a_line_for_each_system_and_place_the_largest_models_first() -> None:
    rows = [
        scaled(8, "", 50, 1.0361, scale=0.122),
        scaled(2, " beside them", 200, 1.2, "mpi", scale=0.122),
        scaled(2, "", 200, 1.004, scale=0.122),
        scaled(2, "", 200, 1.3, scale=0.122, computed=1.34),
        scaled(2, "", 500, 1.1, scale=0.01),
    ]
    apart = "vgg16 x 0.122, 1 s of computation, worker0's link at 0.5 of the rate"
    rows.append(replace(rows[0], what=apart, values=[9.0]))
    rows.append(replace(rows[0], metric="time", values=[9.0]))
    rows.append(replace(rows[0], setting="8 workers, 4 servers, 50 Mbit/s", values=[9.0]))
    assert by_hosts(rows)[3:] == [
        "| hosts | of the models | computation / way | servers | system | vgg16 |",
        "|---|---|---|---|---|---|",
        "| 2, 200 Mbit/s | 0.61 | 0.6 | own hosts | mercury-mercury | 1.004 |",
        "| 2, 200 Mbit/s | 0.61 | 0.6 | beside workers | mpi | 1.200 |",
        "| 2, 200 Mbit/s | 0.61 | 1.34 | own hosts | mercury-mercury | 1.300 |",
        "| 8, 50 Mbit/s | 0.61 | 0.6 | own hosts | mercury-mercury | 1.036 |",
        "| 2, 500 Mbit/s | 0.05 | 0.6 | own hosts | mercury-mercury | 1.100 |",
    ]


def test_no_table_of_no_cases() -> None:
    assert by_hosts([]) == []
