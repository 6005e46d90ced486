"""The page of `mercury trace live` as a terminal's letters draw it, light and dark: build/*.png."""

from __future__ import annotations

import html
from pathlib import Path

from tests.cluster import ROOT
from tests.trace.browser import Page
from tracer.live.page import page
from tracer.live.watch import Watch
from tracer.synthetic import Plan, write_run

COLUMNS, ROWS = 80, 24
DOCUMENT = """<!doctype html><meta charset="utf-8"><style>
:root {{ color-scheme: light dark }}
pre {{ font: 15px monospace; margin: 0 }}
</style><pre>{}</pre>"""
# The left edge of the last bar on each line that has bars, and the widest line, in letters.
PLACES = """
(() => {
  const pre = document.querySelector('pre'), text = pre.firstChild, edges = [];
  const letter = document.createRange(); letter.setStart(text, 0); letter.setEnd(text, 1);
  let begin = 0;
  for (const line of pre.textContent.split('\\n')) {
    const bar = line.search(/[█·][█·]*\\s+\\S+\\s*$/);
    if (bar >= 0) {
      const range = document.createRange();
      range.setStart(text, begin + bar); range.setEnd(text, begin + bar + 1);
      edges.push(range.getBoundingClientRect().left);
    }
    begin += line.length + 1;
  }
  const all = document.createRange(); all.selectNodeContents(pre);
  return [edges, all.getBoundingClientRect().width / letter.getBoundingClientRect().width];
})()
"""


def test_bars_stand_below_each_other_and_lines_fit(tmp_path: Path) -> None:
    write_run(Plan(workers=2, servers=2, iterations=30, mode="mercury"), tmp_path / "run")
    watch = Watch(tmp_path / "run")
    watch.look()
    picture = watch.picture()
    fastest = 2 * max(max(link.to_server, link.to_worker) for link in picture.links)
    lines = page(picture, "traces", ROWS, COLUMNS, fastest, 0.0)
    assert len(picture.links) == 4
    document = tmp_path / "page.html"
    document.write_text(DOCUMENT.format(html.escape("\n".join(lines))))
    shown = ROOT / "build" / "live-light.png"
    shown.parent.mkdir(exist_ok=True)
    size = ["--window-size=800,480"]
    with Page(document.as_uri(), tmp_path / "profile", size) as browser:
        edges, widest = browser.value_once_there(PLACES, within_s=60)
        browser.picture(shown)
        browser.dark()
        browser.picture(shown.with_name("live-dark.png"))
    assert len(edges) == 4
    assert max(edges) - min(edges) < 1
    assert widest <= COLUMNS
    assert shown.read_bytes() != shown.with_name("live-dark.png").read_bytes()
