"""DDP's iterations, as multiples of ours."""

from __future__ import annotations

from scripts.lab.report.ddp_table import against_ddp
from tests.lab.report.test_pictures import scaled

BESIDE = " beside them"


def test_the_best_buckets_count_and_servers_beside_the_workers() -> None:
    rows = [
        scaled(4, BESIDE, 100, 1.02, "torch", computed=1.2),
        scaled(4, BESIDE, 100, 1.53, "torch-ddp", computed=1.2),
        scaled(4, BESIDE, 100, 1.275, "torch-ddp 1 MB", computed=1.2),
        scaled(4, "", 100, 1.0, "torch", computed=1.2),
        scaled(2, BESIDE, 200, 1.0, "torch", computed=0.8),
        scaled(2, BESIDE, 200, 1.25, "torch-ddp", computed=0.8),
        scaled(8, BESIDE, 50, 1.1, "torch"),  # with nothing to compare
        scaled(8, BESIDE, 50, 1.0, "torch-ddp", computed=1.34),
    ]
    assert against_ddp(rows)[3:] == [
        "| hosts | of the models | computation / way | computation / ring | vgg16 |",
        "|---|---|---|---|---|",
        "| 2, 200 Mbit/s | 0.3 | 0.8 | 0.80 | 1.25 |",
        "| 4, 100 Mbit/s | 0.3 | 1.2 | 0.80 | 1.25 |",
    ]


def test_no_table_of_other_systems() -> None:
    assert against_ddp([scaled(4, BESIDE, 100, 1.02)]) == []
