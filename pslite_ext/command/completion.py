"""`mercury completion`: what makes bash, zsh or fish complete the words of a command line.

The shell's part is a few lines that ask us, with the words so far; the answer comes from the same
parsers that read the command. Nothing has to be made anew when an option is added. (shtab knows no
fish, and argcomplete would be a dependency for every user.) Where a word may be a file's name, we
answer nothing, and the shell completes it as it does elsewhere. Whoever is to run is asked: there
may be other commands of that name.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pslite_ext.command_line import Parser, options_of

ASK = "completion --words"
SHELLS = {
    "bash": f"""\
_mercury() {{
    local IFS=$'\\n'
    local found=$("${{COMP_WORDS[0]}}" {ASK} "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2> /dev/null)
    COMPREPLY=($(compgen -W "$found" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _mercury mercury mercury-ps
""",
    "zsh": f"""\
#compdef mercury mercury-ps
_mercury() {{
    local -a found
    found=("${{(@f)$("$words[1]" {ASK} "${{(@)words[2,CURRENT]}}" 2> /dev/null)}}")
    if [[ -n "$found" ]]; then
        compadd -- $found
    else
        _files
    fi
}}
compdef _mercury mercury mercury-ps
""",
    "fish": f"""\
function __mercury
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    set -l found ($before[1] {ASK} $before[2..] "$last" 2> /dev/null)
    if test -n "$found"
        printf '%s\\n' $found
    else
        __fish_complete_path "$last"
    end
end
complete -c mercury -f -a "(__mercury)"
complete -c mercury-ps -f -a "(__mercury)"
""",
}
HOW = """\
bash: eval "$(mercury completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc, after
compinit; fish: mercury completion fish > ~/.config/fish/completions/mercury.fish
"""


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="mercury completion",
        description="Print what makes a shell complete mercury's commands and options.",
        epilog=HOW,
    )
    result.add_argument("shell", choices=sorted(SHELLS))
    return result


def candidates(words: Sequence[str]) -> list[str]:
    """What the last of these words, which follow `mercury`, may become."""
    from pslite_ext.command import main

    *before, last = words or [""]
    if not before:
        return _starting([*main.commands(), "--help", "--version"], last)
    if before[0] not in main.commands():
        return []
    return _of(main.parser_of(before[0]), before[1:], last)


def _of(parser: argparse.ArgumentParser, before: Sequence[str], last: str) -> list[str]:
    if "--" in before:
        return []  # a command of somebody else's
    options = options_of(parser)
    positions = [action for action in parser._actions if not action.option_strings]
    while before:
        word, *before = before
        name, equals, _ = word.partition("=")
        if name in options:
            takes = options[name]
            if takes.nargs == 0 or equals:
                continue
            if not before:
                return _choices(takes, last)
            if takes.nargs is None:
                before = before[1:]
        elif word.startswith("-"):
            continue
        elif positions:
            at = positions[0]
            if isinstance(at.choices, dict) and word in at.choices:
                return _of(at.choices[word], before, last)
            if at.nargs == argparse.REMAINDER:
                return []
            if at.nargs not in ("*", "+"):
                del positions[0]
    if last.startswith("-"):
        return _starting(options, last)
    return _choices(positions[0], last) if positions else []


def _choices(action: argparse.Action, last: str) -> list[str]:
    return _starting([str(choice) for choice in action.choices or ()], last)


def _starting(words: Sequence[str] | dict[str, argparse.Action], last: str) -> list[str]:
    return [word for word in words if word.startswith(last)]


def main(argv: Sequence[str]) -> int:
    if list(argv[:1]) == ["--words"]:
        print("\n".join(candidates(argv[1:])))
        return 0
    print(SHELLS[parser().parse_args(list(argv)).shell], end="")
    return 0
