"""The Grafana dashboard asks for metrics that there are, in words that Prometheus understands."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pslite_ext.job import figures, metrics
from pslite_ext.job.steps import StepTimes
from tests.cluster import ROOT, free_port
from tests.trace.browser import Page
from tests.unit.job.test_metrics import FIGURES, serve, steps_of

FOLDER = ROOT / "examples" / "grafana"
BOARD: dict[str, Any] = json.loads((FOLDER / "mercury.json").read_text())
PAGE = metrics.page(FIGURES, steps_of(0.1).histogram(), "0.1.0")
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
# As Grafana would ask them.
ASKED = [q.replace("$__rate_interval", "1m").replace("$job", "training") for q in QUERIES]
PEERS = FIGURES["peers"]
COUNTERS = [metric for metric in (*metrics.TRAFFIC, *metrics.PEER) if metric.kind == "counter"]


def test_every_metric_is_one_of_ours() -> None:
    known = set(re.findall(r"^(mercury_\w+)\{", PAGE, re.MULTILINE))
    asked = {name for query in QUERIES for name in re.findall(r"mercury_\w+", query)}
    assert asked <= known
    assert len(asked) > 10


def test_panels_are_whole_and_do_not_overlap() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert {"type", "title", "description", "fieldConfig", "gridPos"} <= set(panel)
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["fieldConfig"]["defaults"]["unit"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for target in panel["targets"]:
            assert target["legendFormat"]
            assert 'job=~"$job"' in target["expr"]
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
    assert [v["name"] for v in BOARD["templating"]["list"]] == ["datasource", "job"]


def test_prometheus_understands_it(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=PAGE, capture_output=True, text=True
    )
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stderr
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "1m")}
        for number, query in enumerate(QUERIES)
    ]
    file = tmp_path / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    config = FOLDER / "prometheus.yml"
    checked = subprocess.run([promtool, "check", "config", config], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def answer(port: int, query: str) -> list[dict[str, Any]]:
    words = urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{words}") as page:
        found = json.load(page)
    assert found["status"] == "success", query
    result: list[dict[str, Any]] = found["data"]["result"]
    return result


@pytest.fixture
def prometheus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[int]:
    """The port of one that has read a worker's page at least twice, as rates need it."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("Prometheus is not installed (Debian: prometheus)")
    steps = StepTimes()
    began = time.monotonic()

    def growing() -> dict[str, Any]:
        """So that there are rates; a step at each look."""
        steps.pushed("a key")
        by = 1 + int(1000 * (time.monotonic() - began))
        peers = [{**peer, **{m.figure: by * peer[m.figure] for m in COUNTERS}} for peer in PEERS]
        return {**FIGURES, "peers": peers}

    monkeypatch.setattr(figures, "STEPS", steps)
    monkeypatch.setattr(figures, "now", growing)
    serve("127.0.0.1", free_port())
    ours = re.findall(r"127\.0\.0\.1:\d+", capsys.readouterr().err)
    config = tmp_path / "prometheus.yml"
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s"},
                "scrape_configs": [{"job_name": "training", "static_configs": [{"targets": ours}]}],
            }
        )
    )
    port = free_port()
    command = [
        *(program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"),
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            scraped = 'count_over_time(mercury_steps_total{role="worker"}[1m])'
            while True:
                with contextlib.suppress(OSError):
                    samples = answer(port, scraped)
                    if samples and int(samples[0]["value"][1]) > 1:
                        break
                assert time.monotonic() < deadline, "Prometheus has read nothing"
                time.sleep(0.2)
            yield port
        finally:
            process.terminate()


def test_a_real_prometheus_answers_every_question(prometheus: int) -> None:
    assert answer(prometheus, "mercury_build_info")[0]["metric"]["rank"] == "3"
    for query in ASKED:
        assert answer(prometheus, query), query


def test_a_browser_draws_every_question(prometheus: int, tmp_path: Path) -> None:
    """On Prometheus's own page, a frame for each: no package has Grafana, nor this page a dark
    theme, so the browser darkens it.
    """
    dark = ["--blink-settings=forceDarkModeEnabled=true"]
    for name, options in (("light", []), ("dark", dark)):
        picture = ROOT / "build" / f"dashboard-in-prometheus-{name}.png"
        picture.parent.mkdir(exist_ok=True)
        draw(prometheus, picture, tmp_path / name, options)
        assert picture.stat().st_size > 50_000


def draw(prometheus: int, picture: Path, profile: Path, options: list[str]) -> None:
    asked = [urllib.parse.urlencode({"g0.expr": query, "g0.tab": "0"}) for query in ASKED]
    frames = "".join(
        f'<iframe src="/graph?{words}&g0.range_input=1m" width="800" height="850"></iframe>'
        for words in asked
    )
    texts = "[...document.querySelectorAll('iframe')].map(f => f.contentDocument?.body?.innerText)"
    drawn = f"{texts}.filter(text => /Total time series: [1-9]/.test(text)).length"
    size = [f"--window-size=1640,{(len(ASKED) + 1) // 2 * 860}"]
    with Page(f"http://127.0.0.1:{prometheus}/graph", profile, size + options) as page:
        there = "document.readyState == 'complete' && location.pathname.endsWith('/graph')"
        assert page.value_once_there(there, within_s=60)
        page.value(f"document.body.innerHTML = {json.dumps(frames)}")
        assert page.value_once_there(f"{drawn} == {len(ASKED)}", within_s=60)
        page.picture(picture)
