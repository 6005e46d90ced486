"""Writes constraints-dev.txt: what `make setup` installs beside what requirements-dev.txt names.

    .venv/bin/python -m scripts.pin

Only for Python 3.11 and later, which CI uses: some packages have no common version for all that we
support.
"""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Made here, pinned in the Makefile, or an environment's own.
ELSEWHERE = {"mxnet", "mercury-ps", "mlc-chakra", "pip", "setuptools", "wheel"}
HEAD = """\
# What the packages of requirements-dev.txt need, so that no new release surprises us.
# To renew it: an environment without this file, then `.venv/bin/python -m scripts.pin`.
"""


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirements: str) -> set[str]:
    return {plain(m) for m in re.findall(r"^([A-Za-z0-9._-]+)==", requirements, re.MULTILINE)}


def main() -> None:
    direct = named((ROOT / "requirements-dev.txt").read_text()) | ELSEWHERE
    lines = {
        f'{plain(d.metadata["Name"])}=={d.version} ; python_version >= "3.11"\n'
        for d in distributions()
        if plain(d.metadata["Name"]) not in direct
    }
    (ROOT / "constraints-dev.txt").write_text(HEAD + "".join(sorted(lines)))


if __name__ == "__main__":
    main()
