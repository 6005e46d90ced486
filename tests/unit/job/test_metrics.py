"""What Prometheus reads: by the parsers of its own client."""

from __future__ import annotations

import socket
import urllib.request
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from pslite_ext.job import figures, metrics
from pslite_ext.job.steps import BOUNDS_S, StepTimes

PEER = {metric.figure: 7 for metric in (*metrics.TRAFFIC, *metrics.PEER)}
FIGURES: dict[str, Any] = {
    "role": "worker",
    "rank": 3,
    "policy": "priority",
    "peers": [{"peer": "server 0", **PEER, "blocked_us": 2500000, "queue": [[-7, 2], [0, 1]]}],
    "messages": [
        {
            "peer": "server 0",
            "bytes_sent": 100,
            "bytes_received": 200,
            "messages_sent": 3,
            "messages_received": 4,
        }
    ],
    **{metric.figure: 5 for metric in metrics.PROCESS},
}


def steps_of(*seconds: float) -> StepTimes:
    steps, now = StepTimes(), 100.0
    for key in ("a", "b"):
        steps.pushed(key, now)
    for took in seconds:
        now += took
        for key in ("a", "b"):
            steps.pushed(key, now)
    return steps


def read(parse: Any, **options: bool) -> dict[str, Metric]:
    text = metrics.page(FIGURES, steps_of(0.02, 0.02, 3.0).histogram(), "0.1.0", **options)
    return {family.name: family for family in parse(text)}


@pytest.mark.parametrize("kind", ["openmetrics", "plain"])
def test_a_parser_reads_every_metric(kind: str) -> None:
    if kind == "openmetrics":
        families = read(openmetrics, openmetrics=True)
        assert families["mercury_sent_bytes"].unit == "bytes"
    else:
        families = read(plain)
    declared = {*metrics.TRAFFIC, *metrics.PEER, *metrics.MESSAGES, *metrics.PROCESS}
    assert {f"mercury_{metric.name}" for metric in declared} <= set(families)
    for family in families.values():
        assert family.samples, family.name
        assert family.documentation, family.name
        for sample in family.samples:
            assert sample.labels["role"] == "worker"
            assert sample.labels["rank"] == "3"
            assert sample.value >= 0


def test_both_paths_are_counted_in_base_units() -> None:
    families = read(openmetrics, openmetrics=True)
    sent = {s.labels["path"]: s.value for s in families["mercury_sent_bytes"].samples}
    assert sent == {"packets": 7, "messages": 100}
    assert families["mercury_blocked_seconds"].samples[0].value == 2.5
    for name in families:
        assert not name.endswith(("_us", "_ms", "_mb"))


@pytest.mark.parametrize("openmetrics_form", [True, False])
def test_a_worker_under_mlfabric_tells_of_its_updates(openmetrics_form: bool) -> None:
    fates = {"pushed": 9, "committed": 6, "too_old": 2, "lost": 1}
    mine = {"role": "worker", "rank": 1, "policy": "mlfabric", "fabric": fates}
    text = metrics.page(mine, steps_of(0.1).histogram(), "0.1.0", openmetrics_form)
    parse = openmetrics if openmetrics_form else plain
    families = {family.name: family for family in parse(text)}
    told = {s.labels["fate"]: s.value for s in families["mercury_fabric_updates"].samples}
    assert told == {"committed": 6, "too_old": 2, "lost": 1}
    assert families["mercury_fabric_pushed_updates"].samples[0].value == 9
    assert "mercury_step_seconds" in families
    line = "worker 1: 9 updates pushed, 6 committed, 2 dropped (2 too_old), 1 lost with the server"
    assert figures.summary(mine) == line
    assert figures.summary({**mine, "fabric": dict.fromkeys(fates, 0)}) == ""


def test_steps_are_a_histogram() -> None:
    families = read(openmetrics, openmetrics=True)
    samples = families["mercury_step_seconds"].samples
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert len(buckets) == len(BOUNDS_S) + 1
    assert (buckets["0.01"], buckets["0.025"], buckets["2.5"], buckets["5.0"]) == (0, 2, 2, 3)
    assert buckets["+Inf"] == 3
    total = next(s.value for s in samples if s.name.endswith("_sum"))
    assert total == pytest.approx(3.04)
    assert families["mercury_steps"].samples[0].value == 3


def test_a_step_ends_when_a_key_comes_again() -> None:
    steps = StepTimes()
    for key, now in (("a", 1.0), ("b", 2.0), ("c", 2.5), ("b", 4.0), ("a", 4.5), ("b", 7.0)):
        steps.pushed(key, now)
    counts, seconds = steps.histogram()
    assert (counts[-1], seconds) == (2, 6.0)


def test_without_a_job_the_page_is_empty() -> None:
    assert metrics.page({}, StepTimes().histogram(), "0", openmetrics=True) == "# EOF\n"


def serve(host: str, port: int) -> None:
    figures.serve({"MERCURY_METRICS_HOST": host, "MERCURY_METRICS_PORT": port})


def test_a_port_that_is_taken_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        serve("127.0.0.1", port)
        said = capsys.readouterr().err
        assert said.startswith("mercury: live figures are at http://127.0.0.1:")
        address = said.split()[-1]
        assert int(address.split(":")[2].split("/")[0]) > port
        asked = urllib.request.Request(address, headers={"Accept": "application/openmetrics-text"})
        with urllib.request.urlopen(asked) as answer:
            assert answer.headers["Content-Type"] == metrics.OPENMETRICS
            assert answer.read() == b"# EOF\n"
    serve("192.0.2.77", port)
    said = capsys.readouterr().err
    assert "no live figures" in said
    assert "the job goes on" in said
    serve("127.0.0.1", 0)
    assert capsys.readouterr().err == ""


def test_the_last_word_tells_of_both_paths() -> None:
    line = figures.summary(FIGURES)
    assert line.startswith("worker 3: 107 bytes sent in 7 packets and 3 messages, 207 bytes rec")
    assert "sockets full for 2.5 s, 7 preemptions" in line
    classic = {**FIGURES, "peers": [], "iterations": 0}
    assert figures.summary(classic) == "worker 3: 100 bytes sent in 3 messages, 200 bytes received"
    (message,) = FIGURES["messages"]
    silent = {**message, "bytes_sent": 0, "messages_sent": 0}
    line = figures.summary({**classic, "messages": [silent]})
    assert line == "worker 3: 0 bytes sent, 200 bytes received"
    sizes = [(999, "999 bytes"), (160_600, "160.6 kB"), (32_200_000, "32.2 MB"), (4e9, "4.0 GB")]
    for size, shown in sizes:
        once = {**message, "bytes_sent": size, "messages_sent": 1}
        line = figures.summary({**classic, "messages": [once]})
        assert line.startswith(f"worker 3: {shown} sent in 1 message, ")
