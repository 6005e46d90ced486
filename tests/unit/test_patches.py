"""scripts/patches.py: what it refuses, and that a patch survives being refreshed."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from scripts import patches

FILE = "one\ntwo\nthree\nfour\n"
EDITED = "zero\none\n2\nthree\nfour\nfive\n"
HEADER = "Description: a test\nReason: seam, for a test\nForwarded: no\nRemove-When: never\n"


def make_sdist(path: Path) -> str:
    with tarfile.open(path, "w:gz") as sdist:
        for name, text in (("file.py", FILE), (".git", "gitdir: ../nowhere\n")):
            info = tarfile.TarInfo(f"pkg/sub/{name}")
            info.size = len(text)
            sdist.addfile(info, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> patches.Source:
    """A small source with one patch, in a project of its own."""
    folder = tmp_path / "patches" / "pkg"
    folder.mkdir(parents=True)
    monkeypatch.setattr(patches, "PATCHES", tmp_path / "patches")
    monkeypatch.setattr(patches, "DOWNLOADS", tmp_path / "downloads")
    (tmp_path / "downloads").mkdir()
    digest = make_sdist(tmp_path / "downloads" / "pkg-1.tar.gz")
    made = patches.Source(
        "pkg", "pkg", "1", "sdist", "pkg-1.tar.gz", digest, subdir="pkg/sub", patches="pkg"
    )
    (folder / "series").write_text("edit.patch\n")
    (folder / "edit.patch").write_text(HEADER)
    edited = tmp_path / "edited"
    edited.mkdir()
    (edited / "file.py").write_text(EDITED)
    patches.refresh(made, "edit.patch", edited)
    return made


def test_round_trip(source: patches.Source, tmp_path: Path) -> None:
    patches.apply(source, tmp_path / "tree")
    assert (tmp_path / "tree" / "file.py").read_text() == EDITED
    text = (patches.PATCHES / "pkg" / "edit.patch").read_text()
    assert text.startswith(HEADER)
    assert "three" not in text, "a patch holds no context"


def test_a_folder_that_git_ignores_is_patched(source: patches.Source, tmp_path: Path) -> None:
    """As build/src is, in a checkout."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    patches.apply(source, tmp_path / "build" / "tree")
    assert (tmp_path / "build" / "tree" / "file.py").read_text() == EDITED


def test_an_end_without_a_line_s_end_and_new_files_survive(
    source: patches.Source, tmp_path: Path
) -> None:
    edited = tmp_path / "edited"
    texts = {"file.py": "one\n-- two\nfour", "sub/new.py": "++ b/x\n\n", "crlf.txt": "a\r\nb\r\n"}
    (edited / "sub").mkdir()
    for name, text in texts.items():
        (edited / name).write_bytes(text.encode())
    patches.refresh(source, "edit.patch", edited)
    patches.apply(source, tmp_path / "tree")
    for name, text in texts.items():
        assert (tmp_path / "tree" / name).read_bytes() == text.encode()


def test_applying_again_changes_nothing(source: patches.Source, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    patches.apply(source, tree)
    before = (tree / "file.py").stat().st_mtime_ns
    patches.apply(source, tree)
    assert (tree / "file.py").stat().st_mtime_ns == before


def test_wrong_hash(source: patches.Source, tmp_path: Path) -> None:
    archive = patches.DOWNLOADS / source.file
    archive.write_bytes(archive.read_bytes() + b"x")
    with pytest.raises(patches.PatchError, match=r"pkg-1\.tar\.gz has SHA-256"):
        patches.apply(source, tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_nothing_runs_of_another_archive(
    source: patches.Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index").mkdir()
    with tarfile.open(tmp_path / "index" / source.file, "w:gz") as sdist:
        text = f"open({str(tmp_path / 'ran')!r}, 'w')"
        info = tarfile.TarInfo("pkg-1/setup.py")
        info.size = len(text)
        sdist.addfile(info, io.BytesIO(text.encode()))
    (patches.DOWNLOADS / source.file).unlink()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")  # there is nothing to isolate it with
    with pytest.raises(patches.PatchError, match="MATCH THE HASHES"):
        patches.fetch(source)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("until", [None, "edit.patch"])
def test_what_somebody_has_edited_is_not_replaced(
    source: patches.Source, tmp_path: Path, until: str | None
) -> None:
    tree = tmp_path / "tree"
    if until:
        patches.apply(source, tree, until)
    else:
        tree.mkdir()
    (tree / "file.py").write_text("mine")
    with pytest.raises(patches.PatchError, match="is there already: remove it first"):
        patches.apply(source, tree, until)
    assert (tree / "file.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Reason: seam, for a test\n", "", "header 'Reason:' is missing"),
        ("Reason: seam", "Reason: fancy", "Reason is one of"),
        ("-two", "-tvo", "patch failed: file.py:2"),
        ("Base: file.py ", "Base: other.py ", "no 'Base: file.py"),
        ("+five\n", "", "corrupt patch"),
        ("+five\n", " four\n", "context lines are not allowed"),
        ("+1 @@\n+zero\n", "+1,2 @@\n+zero\n+0\n", "@@ -2 +3 @@ do not fit"),
        ("+five\n", "+five\n context\n", "context lines are not allowed"),
    ],
)
def test_what_is_refused(
    source: patches.Source, tmp_path: Path, old: str, new: str, says: str
) -> None:
    path = patches.PATCHES / "pkg" / "edit.patch"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(patches.PatchError, match="edit.patch") as raised:
        patches.apply(source, tmp_path / "tree")
    assert says in str(raised.value)


def test_another_file_than_the_patch_was_made_for(source: patches.Source, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("two\n" + FILE)
    with pytest.raises(patches.PatchError, match="is not the file that this patch was made for"):
        patches.apply_series(source, tmp_path)


def test_series_and_folder_agree(source: patches.Source, tmp_path: Path) -> None:
    folder = patches.PATCHES / "pkg"
    (folder / "stray.patch").write_text(HEADER)
    with pytest.raises(patches.PatchError, match=r"stray\.patch is not in"):
        patches.series("pkg")
    (folder / "stray.patch").unlink()
    (folder / "series").write_text("edit.patch\nmissing.patch\n")
    with pytest.raises(patches.PatchError, match=r"missing\.patch, which does not exist"):
        patches.series("pkg")
    (folder / "series").unlink()
    with pytest.raises(patches.PatchError, match="series is missing"):
        patches.series("pkg")


def test_the_command_fails_in_one_line() -> None:
    script = Path(patches.__file__)
    result = subprocess.run(
        [sys.executable, str(script), "apply", "nonsense"], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "patches.py: patches/sources.toml has no 'nonsense'" in result.stderr
    assert "Traceback" not in result.stderr
