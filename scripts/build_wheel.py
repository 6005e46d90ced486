"""Build the patched MXNet wheel: the official one, pinned, with patches/mxnet applied.

The name of the source is taken from --source or MXNET_WHEEL (mxnet, mxnet-cu112, ...). The result
has a local version (1.9.1+mercury.N), depends on mercury-ps, and is the same, byte for byte,
however often it is built.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from pslite_ext import __version__
from scripts import patches

LOCAL_VERSION = "mercury.1"
# The other half of its seams. What else was tried: docs/compatibility.md; the wheel's own upper
# bounds are older than today's releases.
REQUIREMENTS = (
    f"mercury-ps (=={__version__})",
    "numpy (<2.1,>=1.21)",
    "requests (>=2.20.0)",
    "graphviz (>=0.8.1)",
)
# Everything in a zip has a time; this one is the date of MXNet 1.9.1.
TIMESTAMP = (2022, 5, 16, 0, 0, 0)


def record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + digest.rstrip(b"=").decode()


def new_metadata(text: str, version: str) -> str:
    """Our version and requirements; all else as it was."""
    head, separator, body = text.partition("\n\n")
    lines = [line for line in head.splitlines() if not line.startswith("Requires-Dist:")]
    lines = [re.sub(r"^Version: .*", f"Version: {version}", line) for line in lines]
    lines += [f"Requires-Dist: {requirement}" for requirement in REQUIREMENTS]
    return "\n".join(lines) + separator + body


def notice(source: patches.Source, changed: Iterable[str]) -> str:
    """What the licence asks for of who changes something."""
    lines = [
        f"Apache MXNet {source.version}, as its developers' wheel {source.file} has it, is under",
        "the Apache License 2.0 (LICENSE). mercury-ps has changed or added these files:",
        "",
        *changed,
    ]
    return "\n".join(lines) + "\n"


def patched_files(source: patches.Source, wheel: zipfile.ZipFile) -> dict[str, bytes]:
    """The files that the series changes or adds, after it."""
    names = {n for p in patches.series(source.patches) for n in patches.parse(p).files}
    known = set(wheel.namelist())
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in sorted(names & known):
            wheel.extract(name, tree)
        patches.apply_series(source, tree)
        return {name: (tree / name).read_bytes() for name in sorted(names)}


def build(source: patches.Source, archive: Path, out: Path) -> Path:
    version = f"{source.version}+{LOCAL_VERSION}"
    stem, *tags = source.file[: -len(".whl")].split("-")
    old_info = f"{stem}-{source.version}.dist-info"
    new_info = f"{stem}-{version}.dist-info"
    target = out / ("-".join([stem, version, *tags[1:]]) + ".whl")
    out.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    with zipfile.ZipFile(archive) as wheel:
        changed = patched_files(source, wheel)
        names = sorted({*wheel.namelist(), *changed})
        record: list[str] = []
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as result:

            def add(name: str, data: bytes, mode: int) -> None:
                info = zipfile.ZipInfo(name, TIMESTAMP)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = mode << 16
                info.create_system = 3
                result.writestr(info, data)
                record.append(f"{name},{record_hash(data)},{len(data)}")

            for name in names:
                if name.endswith("/") or name == f"{old_info}/RECORD":
                    continue
                mode = 0o644
                if name in wheel.namelist():
                    mode = wheel.getinfo(name).external_attr >> 16 or mode
                data = changed[name] if name in changed else wheel.read(name)
                if name == f"{old_info}/METADATA":
                    data = new_metadata(data.decode(), version).encode()
                name = name.replace(old_info, new_info, 1)
                add(name, data, mode)
                if len(data) > 50 << 20:
                    print(f"packed {name}", flush=True)
            for name, text in (
                ("LICENSE", (patches.ROOT / "LICENSE").read_text()),
                ("NOTICE", notice(source, changed)),
            ):
                add(f"{new_info}/licenses/{name}", text.encode(), 0o644)
            record.append(f"{new_info}/RECORD,,\n")
            add(f"{new_info}/RECORD", "\n".join(record).encode(), 0o644)
    for other in out.glob("mxnet*.whl"):  # two write the same files: dist/*.whl has one
        other.unlink()
    part.replace(target)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", default=os.environ.get("MXNET_WHEEL") or "mxnet")
    parser.add_argument("--out", type=Path, default=patches.ROOT / "dist", metavar="DIR")
    arguments = parser.parse_args()
    try:
        source = patches.find_source(arguments.source)
        if source.kind != "wheel":
            raise patches.PatchError(f"{source.name} is not a wheel")
        print(build(source, patches.fetch(source), arguments.out))
    except patches.PatchError as error:
        print(f"build_wheel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
