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
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from mxnet_plugins import figures, metrics
from tests.cluster import ROOT, free_port
from tests.unit.test_metrics import FIGURES, steps_of

FOLDER = ROOT / "examples" / "grafana"
BOARD: dict[str, Any] = json.loads((FOLDER / "mercury.json").read_text())
PAGE = metrics.page(FIGURES, steps_of(0.1).histogram(), "0.1.0")
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]


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


def test_a_real_prometheus_answers_every_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("Prometheus is not installed (Debian: prometheus)")
    monkeypatch.setattr(figures, "now", lambda: FIGURES)
    figures.serve("127.0.0.1", free_port())
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
        *(prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"),
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            scraped = 'count_over_time(mercury_steps_total{role="worker"}[1m])'
            while True:  # rates are of two samples
                with contextlib.suppress(OSError):
                    samples = answer(port, scraped)
                    if samples and int(samples[0]["value"][1]) > 1:
                        break
                assert time.monotonic() < deadline, "Prometheus has read nothing"
                time.sleep(0.2)
            assert answer(port, "mercury_build_info")[0]["metric"]["rank"] == "3"
            for query in QUERIES:
                asked = query.replace("$__rate_interval", "1m").replace("$job", "training")
                assert answer(port, asked), query
        finally:
            process.terminate()
