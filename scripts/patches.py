#!/usr/bin/env python3
"""Fetch the pinned upstream sources and keep our patches to them.

fetch    download what patches/sources.toml names, and verify it
apply    unpack a source under build/src and apply its series
refresh  write a patch anew from an edited tree
check    apply every series to clean copies; verify headers and series files

Patches have no context lines; git applies them. What keeps a hunk from landing in the wrong place
is stricter: each patch names the SHA-256 of every file as it must be before the patch, lines to be
removed must be there, and line numbers before and after must agree.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python < 3.11
    try:
        from pip._vendor import tomli as tomllib
    except ModuleNotFoundError:
        sys.exit(f"{sys.executable} has no pip, which fetches sources (Debian: python3-pip)")

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "patches"
DOWNLOADS = ROOT / "build" / "downloads"
HEADERS = ("Description", "Reason", "Forwarded", "Remove-When")
REASONS = ("seam", "bug", "build")
FILE = re.compile(r"^--- .*\n\+\+\+ b/(.*)\n", re.MULTILINE)
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class PatchError(Exception):
    """Something a person has to put right; the text says what and where."""


@dataclass(frozen=True)
class Source:
    name: str
    project: str
    version: str
    kind: str
    file: str
    sha256: str
    subdir: str = ""
    patches: str = ""


@dataclass
class Patch:
    path: Path
    headers: dict[str, str]
    base: dict[str, str]  # file -> SHA-256 before this patch; "new" for a file that it makes
    files: list[str]


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def load_sources() -> dict[str, Source]:
    with (PATCHES / "sources.toml").open("rb") as file:
        table = tomllib.load(file)
    return {name: Source(name=name, **fields) for name, fields in table.items()}


def find_source(name: str) -> Source:
    sources = load_sources()
    if name not in sources:
        raise PatchError(f"patches/sources.toml has no '{name}'; it has {', '.join(sources)}")
    return sources[name]


def fetch(source: Source) -> Path:
    """The verified archive, downloaded if it is not here yet."""
    archive = DOWNLOADS / source.file
    if not archive.exists():
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        print(f"fetching {source.project} {source.version}", flush=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--dest", str(DOWNLOADS), "--require-hashes"]
        if source.kind == "sdist":
            command += ["--no-binary", source.project]
        # pip runs code of an sdist for its metadata: only if it is the right one.
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
            wanted.write(f"{source.project}=={source.version} --hash=sha256:{source.sha256}\n")
            wanted.flush()
            done = subprocess.run([*command, "-r", wanted.name], capture_output=True, text=True)
        # It may fail there; the file is what counts.
        if not archive.exists():
            said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            errors = [line for line in said if "error" in line.lower()] or said[-1:]
            reason = (errors or ["pip gave no reason"])[0]
            raise PatchError(f"{source.file} could not be downloaded: {reason}")
    found = file_sha256(archive)
    if found != source.sha256:
        raise PatchError(
            f"{archive} has SHA-256 {found}, patches/sources.toml says {source.sha256}: "
            "delete the file and fetch again; if that does not help, the source has changed"
        )
    return archive


def unpack(source: Source, archive: Path, into: Path) -> None:
    if source.kind == "wheel":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(into)
        return
    prefix = source.subdir + "/"
    with tarfile.open(archive) as sdist:
        for member in sdist:
            if member.isfile() and member.name.startswith(prefix):
                target = into / member.name[len(prefix) :]
                if ".." in target.parts:
                    raise PatchError(f"{archive} holds a path that leaves it: {member.name}")
                target.parent.mkdir(parents=True, exist_ok=True)
                content = sdist.extractfile(member)
                assert content is not None
                target.write_bytes(content.read())


def series(name: str) -> list[Path]:
    """The patches of a set, in order; every patch file is in the series and the other way round."""
    folder = PATCHES / name
    listing = folder / "series"
    if not listing.exists():
        raise PatchError(f"{listing} is missing")
    lines = [line.strip() for line in listing.read_text().splitlines()]
    names = [line for line in lines if line and not line.startswith("#")]
    for missing in (n for n in names if not (folder / n).exists()):
        raise PatchError(f"{listing} names {missing}, which does not exist")
    for stray in sorted({p.name for p in folder.glob("*.patch")} - set(names)):
        raise PatchError(f"{folder / stray} is not in {listing}")
    return [folder / n for n in names]


def git(*arguments: str | Path, folder: Path) -> tuple[int, str]:
    """Run outside of any repository: of ours, and of one that a source says that it is from."""
    program = shutil.which("git")
    if program is None:
        raise PatchError("git is not installed")
    done = subprocess.run(
        [program, *map(str, arguments)],
        cwd=folder,
        env={"GIT_DIR": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout.decode()


def parse(path: Path) -> Patch:
    headers: dict[str, str] = {}
    base: dict[str, str] = {}
    header, *files = FILE.split(path.read_bytes().decode())
    for number, line in enumerate(header.splitlines(), 1):
        if line.startswith("Base: "):
            name, digest = line[6:].rsplit(" ", 1)
            base[name] = digest
        elif match := re.match(r"^([A-Z][A-Za-z-]+): (.+)$", line):
            headers[match[1]] = match[2]
        elif line and not line.startswith(" "):
            raise PatchError(f"{path}:{number}: neither a header nor a continuation: {line!r}")
    for hunks in files[1::2]:
        grown = 0
        for line in hunks.removesuffix("\n").split("\n"):
            if match := HUNK.match(line):
                before, old, after, new = (1 if n is None else int(n) for n in match.groups())
                if after != before + grown + (old == 0) - (new == 0):  # git goes by `after`
                    raise PatchError(f"{path}: the line numbers of {line} do not fit those above")
                grown += new - old
            elif not line.startswith(("+", "-", "\\")):
                raise PatchError(f"{path}: context lines are not allowed: {line!r}")
    return Patch(path, headers, base, files[::2])


def verify_headers(patch: Patch) -> None:
    for header in HEADERS:
        if header not in patch.headers:
            raise PatchError(f"{patch.path}: the header '{header}:' is missing")
    if patch.headers["Reason"].split(",")[0] not in REASONS:
        raise PatchError(f"{patch.path}: Reason is one of {', '.join(REASONS)}")
    if not patch.files:
        raise PatchError(f"{patch.path}: it changes nothing")
    for name in patch.files:
        if name not in patch.base:
            raise PatchError(f"{patch.path}: no 'Base: {name} <sha256>' line; refresh the patch")


def apply_patch(patch: Patch, tree: Path) -> None:
    verify_headers(patch)
    for name in patch.files:
        target, wanted = tree / name, patch.base[name]
        if wanted == "new":
            if target.exists():
                raise PatchError(f"{patch.path}: {name} exists already")
        elif not target.exists():
            raise PatchError(f"{patch.path}: {name} is missing from {tree}")
        elif (found := file_sha256(target)) != wanted:
            raise PatchError(
                f"{patch.path}: {name} is not the file that this patch was made for "
                f"(SHA-256 {found}, expected {wanted})"
            )
    options = ("--unidiff-zero", "--whitespace=nowarn")
    code, said = git("apply", *options, patch.path.resolve(), folder=tree)
    if code != 0:
        raise PatchError(f"{patch.path}: {'; '.join(said.replace('error: ', '').splitlines())}")


def apply_series(source: Source, tree: Path, until: str | None = None) -> None:
    """Applies the series, up to and including the patch `until`."""
    if not source.patches:
        return
    for path in series(source.patches):
        apply_patch(parse(path), tree)
        if path.name == until:
            return
    if until is not None:
        raise PatchError(f"patches/{source.patches}/series has no {until}")


def stamp_of(source: Source) -> str:
    parts = [source.sha256]
    if source.patches:
        parts += [file_sha256(path) for path in series(source.patches)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def apply(source: Source, tree: Path, until: str | None = None) -> None:
    """Unpacks and patches into `tree`, unless exactly that is there already."""
    stamp = tree / ".mercury-stamp"
    wanted = stamp_of(source) if until is None else f"until {until}"
    there = stamp.read_text() if stamp.exists() else ""
    if until is None and there == wanted:
        return
    if tree.exists() and (not there or there.startswith("until")):  # somebody's, or edited
        raise PatchError(f"{tree} is there already: remove it first")
    archive = fetch(source)
    tree.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        fresh = Path(folder) / "tree"
        fresh.mkdir()
        unpack(source, archive, fresh)
        apply_series(source, fresh, until)
        (fresh / ".mercury-stamp").write_text(wanted)
        if tree.exists():
            shutil.rmtree(tree)
        fresh.rename(tree)
    print(f"{source.name}: {tree}")


def text_files(tree: Path) -> Iterator[str]:
    for path in sorted(tree.rglob("*")):
        if path.is_file() and path.suffix in {".py", ".h", ".cc", ".cpp", ".hpp", ".txt", ".cmake"}:
            yield str(path.relative_to(tree))


def diff(before: Path, after: Path) -> tuple[str, str]:
    """Base lines and context-free diff between two trees."""
    base = body = ""
    for name in sorted({*text_files(before), *text_files(after)}):
        old, new = before / name, after.resolve() / name
        if not new.exists():
            raise PatchError(f"{name} was deleted; patches do not delete files")
        known = old if old.exists() else Path(os.devnull)
        options = ("--no-index", "--text", "--unified=0")
        differ, found = git("diff", *options, known, new, folder=before)
        if differ:
            base += f"Base: {name} {file_sha256(old) if old.exists() else 'new'}\n"
            hunks = re.sub(r"^(@@ .*? @@).*", r"\1", found[found.index("\n@@ ") :], flags=re.M)
            body += f"--- a/{name}\n+++ b/{name}{hunks}"
    return base, body


def refresh(source: Source, name: str, edited: Path) -> None:
    """The patch becomes: `edited` against the pristine source with the earlier patches applied."""
    path = PATCHES / source.patches / name
    if not path.exists():
        raise PatchError(f"{path} does not exist: write its headers first, and add it to series")
    header = path.read_text().split("\n--- ", 1)[0].splitlines()
    kept = [line for line in header if not line.startswith(("Base: ", "--- "))]
    earlier = series(source.patches)
    earlier = earlier[: [p.name for p in earlier].index(name)]
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder)
        unpack(source, fetch(source), before)
        for patch in earlier:
            apply_patch(parse(patch), before)
        base, body = diff(before, edited)
    path.write_text("\n".join(kept).rstrip() + "\n" + base + body)
    verify_headers(parse(path))
    print(f"wrote {path}")


def check() -> None:
    for source in load_sources().values():
        if not source.patches or source.name != source.patches:
            continue
        with tempfile.TemporaryDirectory() as folder:
            unpack(source, fetch(source), Path(folder))
            apply_series(source, Path(folder))
        print(f"{source.name}: {len(series(source.patches))} patches apply")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("fetch", help="download and verify")
    command.add_argument("name", nargs="*", help="sources; all but GPU wheels by default")
    command = commands.add_parser("apply", help="unpack and patch under build/src")
    command.add_argument("name", nargs="+", help="sources")
    command.add_argument("--into", type=Path, default=ROOT / "build" / "src", metavar="DIR")
    command.add_argument("--until", metavar="PATCH", help="stop after this patch, to edit it")
    command = commands.add_parser("refresh", help="write a patch anew from an edited tree")
    command.add_argument("name", help="source")
    command.add_argument("patch", help="file name of the patch")
    command.add_argument("--from", dest="edited", type=Path, required=True, metavar="TREE")
    commands.add_parser("check", help="apply everything to clean copies")
    arguments = parser.parse_args()
    try:
        if arguments.command == "fetch":
            default = [n for n in load_sources() if not n.startswith("mxnet-")]
            for name in arguments.name or default:
                print(fetch(find_source(name)))
        elif arguments.command == "apply":
            for name in arguments.name:
                apply(find_source(name), arguments.into / name, arguments.until)
        elif arguments.command == "refresh":
            refresh(find_source(arguments.name), arguments.patch, arguments.edited)
        else:
            check()
    except PatchError as error:
        print(f"patches.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
