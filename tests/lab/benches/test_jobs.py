"""The bench `jobs`: what trains beside what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.benches import jobs
from scripts.lab.benches.catalogue import LONG, cases_of
from scripts.lab.systems.shared_hosts import Company
from scripts.lab.systems.system import BASIC, System, system
from scripts.lab.workloads.job_config import Config, workload_of

SYSTEMS = [system(name, "/stock/python") for name in BASIC]


class Hosts:
    """Alone, each takes as many seconds as it has letters; together, the company's."""

    def alone(self, name: str, iterations: int) -> float:
        return float(len(name))

    def together(self, names: Sequence[str], iterations: int) -> Company:
        return Company({name: float(sum(map(len, names))) for name in names}, 0.25)


def test_each_is_timed_alone_and_in_each_company(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Config] = {}

    @contextmanager
    def shared(bed: LoopbackBed, system: System, configs: Mapping[str, Config]) -> Iterator[Hosts]:
        told.update(configs)
        yield Hosts()

    monkeypatch.setattr(jobs, "shared_hosts", shared)
    (case, *_) = jobs.jobs(SYSTEMS[:1])
    assert case.run is not None
    with LoopbackBed(["a"]) as bed:
        found = case.run(bed)
    vgg, resnet, bert = "vgg16 x 0.05", "resnet50 x 0.05", "bert_base x 0.05"
    assert list(found) == [
        f"{vgg} beside {resnet}",
        f"{resnet} beside {vgg}",
        f"{vgg} beside {resnet} and {bert}",
        f"{resnet} beside {vgg} and {bert}",
        f"{bert} beside {vgg} and {resnet}",
    ]
    figures = found[f"{resnet} beside {vgg}"]
    assert [figure.value for figure in figures.values()] == [13.0, 8.0, 13 / 8, 25.0]
    assert list(told) == [*jobs.MODELS]
    # As published: VGG-16 computes 1.3 times as long as a link needs for its bytes.
    vgg16 = told["vgg16"].tensors
    assert vgg16["compute_s"] / case.setting.link_s(workload_of(vgg16).bytes) == pytest.approx(
        1.31, abs=0.01
    )


def test_only_if_asked_for() -> None:
    assert "jobs" in LONG
    cases = cases_of(["jobs"], SYSTEMS, "usual")
    assert {case.system.name for case in cases} == {*jobs.SYSTEMS}
    assert len(cases) == len(jobs.SYSTEMS)
    assert "bert" not in str(cases_of(["jobs"], SYSTEMS, "quick")[0])
