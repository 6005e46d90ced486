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


def test_the_docs_have_what_it_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["forwarding"])
    assert forwarding.main() == 0
    assert capsys.readouterr().out in (ROOT / "docs" / "fabric-plan.md").read_text()
