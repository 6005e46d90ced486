"""A child's output: in lines, in linear time, and kept as long as there is room."""

from __future__ import annotations

from pathlib import Path

from pslite_ext.launch.output import LINE_BYTES_MAX, LineCutter, Log


def told(*parts: bytes) -> list[str]:
    lines = LineCutter()
    result = [line for part in parts for line in lines.take(part)]
    return result + list(lines.rest())


def test_lines_are_those_of_the_child() -> None:
    assert told(b"a\nb", b"c\n\nd", b"", b"\n") == ["a", "bc", "", "d"]
    assert told(b"no end") == ["no end"]
    assert told(b"", b"\n") == [""]
    assert told(b"caf\xc3", b"\xa9\n\xff\n") == ["caf\u00e9", "\ufffd"]


def test_what_never_ends_its_line_is_told_in_pieces() -> None:
    """As a progress bar: no more is kept than a piece, however long it goes on."""
    lines = LineCutter()
    part = b"\r" + b"=" * 99
    pieces: list[str] = []
    for _ in range(10 * LINE_BYTES_MAX // len(part)):
        pieces += lines.take(part)
        assert len(lines._begun) < LINE_BYTES_MAX
    assert len(pieces) == 9
    whole = "".join([*pieces, *lines.rest()])
    assert whole == part.decode() * (10 * LINE_BYTES_MAX // len(part))


def test_a_log_keeps_everything(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        assert [*log.write(b"a\r"), *log.write(b"b\n")] == []
    assert (tmp_path / "log").read_bytes() == b"a\r" + b"b\n"
    with Log(None) as nothing:
        assert list(nothing.write(b"a")) == []


def test_a_log_that_cannot_be_written_says_so_once(tmp_path: Path) -> None:
    for path, why in ((Path("/dev/full"), "No space left"), (tmp_path / "no" / "log", "No such")):
        with Log(path) as log:
            said = [*log.write(b"a"), *log.write(b"b")]
        assert len(said) == 1
        assert f"{path}: {why}" in said[0]
