"""Of an error's text, the others of a job are told one line: the one that says what is wrong."""

from __future__ import annotations

import pytest

from pslite_ext.job.reason import gist, why


class MXNetError(Exception):
    """Its text names it, too."""


CHECK = "Check failed: L == R (3 vs. 2) : dot shape error: [2,3] X [2,3]"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n\n", ""),
        ("plain", "plain"),
        ("\n  an indented line alone\n", "an indented line alone"),
        ("first\nsecond", "first"),
        ("first\n  its detail", "first"),
        (f'Traceback (most recent call last):\n  File "../src/dot.h", line 9\n{CHECK}', CHECK),
        (f'Traceback (most recent call last):\nFile "../src/dot.h", line 9\n{CHECK}', CHECK),
        (
            "Traceback (most recent call last):\n"
            "  [bt] (2) libmxnet.so(MXImperativeInvoke+0x1) [0x7f]\n"
            "  [bt] (1) libmxnet.so(+0x7f) [0x7f]\n"
            f"{CHECK}\nand more",
            CHECK,
        ),
        (f"{CHECK}\nStack trace:\n  [bt] (0) libmxnet.so(+0x7f) [0x7f]\n", CHECK),
        (f"Stack trace returned 1 entries:\n[bt] (0) libmxnet.so\n\n{CHECK}", CHECK),
        (
            'Traceback (most recent call last):\n  File "a.py", line 2, in f\n    g()\nKeyError: 7',
            "KeyError: 7",
        ),
        ("Traceback (most recent call last):\n", ""),
    ],
)
def test_the_line_that_says_what_is_wrong(text: str, line: str) -> None:
    assert gist(text) == line


def test_why_a_process_has_ended() -> None:
    assert why(ValueError()) == "ValueError"
    assert why(ValueError("no such row")) == "ValueError: no such row"
    text = f'Traceback (most recent call last):\n  File "../src/dot.h", line 9\nMXNetError: {CHECK}'
    assert why(MXNetError(text)) == f"MXNetError: {CHECK}"
