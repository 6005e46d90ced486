"""DDP's iterations, as multiples of ours."""

from __future__ import annotations

from scripts.lab.benches.case import Row
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


def test_of_exchanges_on_loopback_each_model_has_its_own() -> None:
    def row(model: str, system: str, *values: float) -> Row:
        what = f"{model} x 0.3, no computation"
        return Row("torch", what, system, "time", "s", "loopback", list(values))

    rows = [row("vgg16", "torch", 1.0, 2.0, 4.0), row("resnet50", "torch", 4.0)]
    rows += [row("vgg16", "torch-ddp", 9.0, 9.0, 9.0), row("resnet50", "torch-ddp", 3.0)]
    rows += [row("vgg16", "torch-ddp 1 MB", 3.0, 4.0, 4.0), row("bert_base", "torch", 1.0)]
    assert against_ddp(rows)[3:] == [
        "| vgg16 | resnet50 |",
        "|---|---|",
        "| 2 ± 1 | 0.75 |",
    ]


def test_no_table_of_other_systems() -> None:
    assert against_ddp([scaled(4, BESIDE, 100, 1.02)]) == []
