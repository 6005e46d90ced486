"""For `make docs`: the help of every `mercury` command, at the end of the page of names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from pslite_ext.command import main

PAGE = "api.md"


def helps(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """The name and the help of a command and of those inside it."""
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):  # a command may have two names
                yield from helps(inner)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.file.src_path != PAGE:
        return markdown
    found = [text for name in main.commands() for text in helps(main.parser_of(name))]
    return markdown + "".join(f"\n### {name}\n\n```\n{text}```\n" for name, text in found)
