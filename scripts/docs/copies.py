"""For `make docs`: files elsewhere in the tree that pages link to come along, as copies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)")
PLACE = "tree"  # in the site


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    named = {
        path
        for page in Path(config["docs_dir"]).glob("*.md")
        for path in OUTSIDE.findall(page.read_text())
    }
    for path in sorted(named):
        # A browser shows text, and offers other files for download.
        site_path = f"{PLACE}/{path}.txt"
        files.append(File.generated(config, site_path, abs_src_path=str(ROOT / path)))
    trace = "trace.proto"  # beside the page that defines it
    copy = File.generated(config, f"{trace}.txt", abs_src_path=str(ROOT / "docs" / trace))
    files.append(copy)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if "/" in page.file.src_uri:  # ../ is still within docs/
        return markdown
    text = OUTSIDE.sub(rf"]({PLACE}/\1.txt", markdown)
    return text.replace("](trace.proto)", "](trace.proto.txt)")
