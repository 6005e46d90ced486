"""How the commands of `mercury` read their words, and say what is wrong with them."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable
from typing import Any, NoReturn


def suggestion(word: str, known: Iterable[str]) -> str:
    """To be put behind a complaint about `word`; "" if nothing is like it."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Those that its help tells of."""
    return {
        text: action
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        for text in action.option_strings
    }


class Parser(argparse.ArgumentParser):
    """Suggests what may be meant by a word that it does not know. So do its subcommands'."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += suggestion(str(value), map(str, action.choices or ()))
            raise

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses what is left over here, where the options are known that could be meant."""
        if any(action.nargs == argparse.REMAINDER for action in self._actions):
            self._refuse_before_command(sys.argv[1:] if args is None else list(args))
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            self._refuse(left)
        return parsed, left

    def print_help(self, file: Any = None) -> None:
        """Not as argparse does, which hides that a disk is full."""
        (file or sys.stdout).write(self.format_help())

    def _refuse_before_command(self, words: list[str]) -> None:
        """An unknown option would make its value the command, and all behind it part of that."""
        while words and words[0].startswith("-") and words[0] != "--":
            word, equals, _ = words.pop(0).partition("=")
            exact = self._option_string_actions.get(word)
            meant = [] if exact else self._get_option_tuples(word)  # --num-w for --num-workers; -n2
            if not exact and not meant:
                self._refuse([word])
            has_value = equals or not (exact or word.startswith("--"))
            if (exact or meant[0][0]).nargs != 0 and not has_value:
                del words[:1]

    def _refuse(self, words: list[str]) -> NoReturn:
        word = words[0].partition("=")[0]
        likely = suggestion(word, options_of(self)) if word.startswith("-") else ""
        self.error(f"unrecognized arguments: {' '.join(words)}{likely}")
