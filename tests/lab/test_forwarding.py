"""What passing on by packets is worth, as docs/fabric-plan.md has it."""

from __future__ import annotations

import pytest

from scripts.lab import forwarding
from scripts.lab.benches.fabric_prediction import Fabric, FabricByPackets
from scripts.lab.benches.race_prediction import Conditions
from tests.cluster import ROOT


def test_what_is_planned_by_packets_is_there_sooner() -> None:
    for stragglers, network in forwarding.RACES:
        conditions = Conditions(stragglers, network, 0.01)
        whole = forwarding.planned(Fabric, conditions)
        packets = forwarding.planned(FabricByPackets, conditions)
        assert all(packet < 0.7 * all_ for packet, all_ in zip(packets, whole))


@pytest.mark.parametrize("comparison", forwarding.COMPARISONS, ids=["ways", "overlap", "servers"])
def test_the_docs_have_its_tables(comparison: forwarding.Comparison) -> None:
    """Of each, a row is made again."""
    page = (ROOT / "docs" / "fabric-plan.md").read_text()
    _, _, table = page.partition(comparison.title() + "\n")
    lines = table.partition("\n\n")[0].split("\n")
    assert [line.split("|")[1].strip() for line in lines] == [" ".join(r) for r in comparison.races]
    assert comparison.row(comparison.races[0], forwarding.measured_rows()) == lines[0]
