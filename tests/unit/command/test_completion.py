"""Completion: what the last word may become, and that each shell gets it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pslite_ext.command import main
from pslite_ext.command.completion import SHELLS, candidates
from tests.cluster import ROOT, clean_environment


def becomes(line: str) -> list[str]:
    return candidates(line.split(" "))


def test_commands_and_their_words() -> None:
    assert becomes("la") == ["launch", "lab"]
    assert becomes("trace st") == ["stats"]
    assert becomes("trace export ch") == ["chrome", "chakra"]
    assert "--grace" not in becomes("launch --")
    assert becomes("trace export chrome --it") == ["--iterations"]
    assert set(becomes("sim plan vgg16 --pa")) == {"--packet", "--partition"}
    assert becomes("trace convert run out --to ") == ["txt", "dlc"]
    assert becomes("launch -n 2 --launcher ") == ["local", "ssh"]
    assert becomes("completion ") == ["bash", "fish", "zsh"]
    assert set(candidates([""])) == {*main.commands(), "--help", "--version"}


def test_what_is_left_to_the_shell() -> None:
    for line in (
        "trace stats ",  # a file
        "trace plot run -o ",
        "launch -n 2 -- python --he",  # a command of somebody else's
        "launch -n 2 train.py --he",
        "no-such-command ",
    ):
        assert becomes(line) == [], line


def test_every_command_has_a_parser() -> None:
    for name in main.commands():
        assert main.parser_of(name).prog == f"mercury {name}"


ASKS = {
    "bash": "{script}\nCOMP_WORDS=(mercury-ps trace st); COMP_CWORD=2\n"
    "_mercury; echo ${{COMPREPLY[@]}}",
    "zsh": "compdef() {{ }}\ncompadd() {{ shift; print -l -- $@ }}\n{script}\n"
    "words=(mercury-ps trace st); CURRENT=3; _mercury",
    "fish": "{script}\ncomplete -C 'mercury-ps trace st'",
}


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_shells_complete(shell: str, tmp_path: Path) -> None:
    """Where another program is called mercury, too."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    mercury = tmp_path / "mercury-ps"
    mercury.write_text(f'#!/bin/sh\nexec {sys.executable} -m tracer "$@"\n')
    mercury.chmod(0o755)
    env = clean_environment(
        PATH=f"{tmp_path}:{os.environ['PATH']}", PYTHONPATH=str(ROOT), HOME=str(tmp_path)
    )
    asks = ASKS[shell].format(script=SHELLS[shell])
    done = subprocess.run([program, "-c", asks], env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["stats"], done.stderr
