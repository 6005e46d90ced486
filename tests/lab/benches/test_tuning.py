"""The bench `tuning`: what is searched for, and what becomes of what was found. No jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.lab.bed.namespaces import LabError
from scripts.lab.benches import tuning
from scripts.lab.benches.case import Setting
from scripts.lab.benches.catalogue import LONG, PROGRAMS
from scripts.lab.benches.tuning import BYTESCHEDULER, Found, Sizes, search
from scripts.lab.report.results import by_case
from scripts.lab.systems.peers import TUNER, PeerMissing, peer_python
from scripts.lab.systems.system import MERCURY, System, system
from scripts.lab.workloads.job_config import Config

# Partitions of 2^15, 2^16, 2^16 and 2^17 bytes; then it ends.
TOLD = """
for power in (15, 16, 16, 17):
    input()
    print([power, 1], flush=True)
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "told.py"
    program.write_text(TOLD)
    monkeypatch.setattr(tuning, "PROGRAM", (str(program),))


def test_points_are_whole_kib() -> None:
    assert Sizes.of((22.0, 2.0)) == tuning.OWN
    odd = Sizes.of((17.3, 0.0))
    assert odd.partition == odd.credit == 158 << 10
    assert str(odd) == "158/158 KiB"


@pytest.mark.usefixtures("told")
def test_the_best_is_that_of_all_its_trials() -> None:
    times = iter((3.0, 1.0, 6.0, 3.2))
    found = search(lambda sizes: next(times), sys.executable, 4)
    assert found.best == Sizes(32 << 10, 64 << 10)  # the next one was quick only once
    assert found.trials == [3.0, 1.0, 6.0, 3.2]
    assert found.took_s > 0


@pytest.mark.usefixtures("told")
def test_a_search_that_ends_early_is_noticed() -> None:
    with pytest.raises(LabError, match="the search has ended"):
        search(lambda sizes: 1.0, sys.executable, 6)


def test_the_library_finds_a_valley() -> None:
    try:
        python = peer_python(TUNER)
    except PeerMissing as missing:
        pytest.skip(f"{TUNER}: {missing}")

    def seconds(sizes: Sizes) -> float:
        """Least for partitions of 256 KiB and credits of four; doubled a few powers of two away."""
        partitions = sizes.partition / (256 << 10)
        credits = sizes.credit / sizes.partition / 4
        return float(sum(max(ratio, 1 / ratio) ** 0.3 for ratio in (partitions, credits)))

    found = search(seconds, python, 14)
    assert len(found.trials) == 14
    assert min(found.trials) < 1.05 * seconds(Sizes(256 << 10, 1 << 20))
    assert min(found.trials[5:]) < min(found.trials[:5])


def test_what_was_found_is_compared_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def iteration_s(system: System, setting: Setting, config: Config) -> float:
        """As many seconds as a partition has KiB; ByteScheduler's own and ours take 10."""
        if setting.rate == tuning.RATES[0]:
            order.append(system.name)
        return int(system.env.get("MERCURY_PARTITION_BYTES", 10 << 10)) / 1024

    monkeypatch.setattr(tuning, "_iteration_s", iteration_s)
    fast, slow = (Found(Sizes(n << 10, n << 12), [9.0, 7.0], 30.0) for n in (8, 2))
    rows = tuning.compared(
        system(BYTESCHEDULER, None), system(MERCURY, None), dict(zip(tuning.RATES, (fast, slow)))
    )
    at = {rate: [r for r in rows if r.setting == str(Setting(rate=rate))] for rate in tuning.RATES}
    (of,) = by_case(at[1e9]).values()
    names = [f"{BYTESCHEDULER} tuned", BYTESCHEDULER, f"{BYTESCHEDULER} tuned for 100 Mbit/s"]
    assert list(of) == [*names, MERCURY]
    assert order == [*of] * tuning.REPEATS
    assert [row["time"].values for row in of.values()] == [[n] * 3 for n in (8, 10, 2, 10)]
    assert of[names[2]]["time / tuned"].median == 0.25
    tuned = {metric: row.median for metric, row in of[names[0]].items()}
    assert tuned["partition"] == 8
    assert tuned["credit"] == 32
    assert (tuned["trials"], tuned["search"], tuned["slowest trial"]) == (2, 30.0, 9.0)
    assert of[names[1]]["credit"].median == 16384
    (of,) = by_case(at[100e6]).values()
    assert of[f"{BYTESCHEDULER} tuned for 1000 Mbit/s"]["time / tuned"].median == 4


def test_maps_by_the_model() -> None:
    rows = tuning.by_model(("lenet5",))
    maps = by_case(rows)
    assert len(maps) == len(tuning.MODELLED_RATES)
    for cells in maps.values():
        speeds = [row.median for of in cells.values() for row in of.values()]
        assert len(speeds) == len(tuning.PARTITIONS) * len(tuning.CREDITS)
        assert max(speeds) == 1
    # A startup for each of many small partitions costs more where a link is fast.
    small = [maps[f"lenet5 at {rate} Gbit/s, by the model"] for rate in ("10", "0.5")]
    fast, slow = (of["partitions of 64 KiB"]["credit of 1"].median for of in small)
    assert fast < slow < 1


def test_without_the_tuner_there_are_maps_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> str:
        raise PeerMissing("not installed")

    monkeypatch.setattr(tuning, "peer_python", missing)
    monkeypatch.setattr(tuning, "privilege_missing", lambda: None)
    monkeypatch.setattr(tuning, "by_model", list)
    assert tuning.run([system(name, None) for name in (BYTESCHEDULER, MERCURY)]) == []
    assert "skipped: tuning by jobs: not installed" in capsys.readouterr().out
    assert tuning.run([]) == []
    assert "tuning" in PROGRAMS
    assert "tuning" in LONG
