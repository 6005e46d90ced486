"""Makes the environments of other systems, .venv-peers-*; one that fails leaves its reason.

Everything comes from the package index by pip, pinned; nothing needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts import patches
from scripts.lab.systems.peers import PEERS, READY, REASON, ROOT, TOOLS, TORCHFT, TUNER

PINNED = Path(__file__).resolve().parent / "peers_pinned"
STOCK_MXNET = "<stock wheel>"  # stands for its file, which is fetched and verified first
INSTALLED = {**PEERS, **TOOLS}
CUDA = ("nvidia-", "cuda-")  # packages of gigabytes that a build of torch for GPUs brings


@dataclass(frozen=True)
class Setup:
    """Requirements in the order of installing, and a program that fails if it does not work."""

    requirements: tuple[tuple[str, ...], ...]  # a file of PINNED, and more arguments for pip
    probe: str
    environment: Mapping[str, str] = field(default_factory=dict)
    cuda: bool = False  # whether pip may have only a build for GPUs
    extras: tuple[tuple[str, ...], ...] = ()  # for some tests, which are skipped without them


SETUPS = {
    "horovod": Setup(
        (
            ("mxnet.txt", STOCK_MXNET),
            ("horovod_tools.txt",),
            ("horovod.txt", "--no-deps", "--no-build-isolation"),
        ),
        "import horovod.mxnet as h; assert h.gloo_built()",
        {
            "HOROVOD_WITH_GLOO": "1",
            "HOROVOD_WITHOUT_MPI": "1",
            "HOROVOD_WITH_MXNET": "1",
            "HOROVOD_WITHOUT_TENSORFLOW": "1",
            "HOROVOD_WITHOUT_PYTORCH": "1",
            "HOROVOD_WITHOUT_NVTX": "1",
            "HOROVOD_CPU_OPERATIONS": "GLOO",
            # Its setup.py asks for debug symbols, which are most of the work of compiling it.
            "CMAKE_TOOLCHAIN_FILE": str(PINNED.parent / "horovod_build.cmake"),
        },
    ),
    "torch-ddp": Setup(
        (("torch.txt", "--only-binary", ":all:"),),
        "import torch.distributed as d; assert d.is_gloo_available()",
        cuda=True,
        extras=tuple(
            (file, "--no-deps", "--only-binary", ":all:", "--no-compile")
            for file in ("torch_recipes.txt", "torch_optimizers.txt")
        ),
    ),
    "mpi": Setup(
        (
            ("mxnet.txt", STOCK_MXNET),
            ("mpi.txt", "--no-deps", "--only-binary", ":all:"),
        ),
        "import mxnet; from mpi4py import MPI; MPI.Get_library_version()",
    ),
    TUNER: Setup(
        (("tuner.txt", "--no-deps", "--only-binary", ":all:"),),
        "from bayes_opt.acquisition import ExpectedImprovement; from scipy.stats import qmc",
    ),
    TORCHFT: Setup(
        (
            ("torch.txt", "--only-binary", ":all:"),
            ("torchft.txt", "--no-deps", "--only-binary", ":all:"),
        ),
        "from torchft import Manager; from torchft.coordination import LighthouseServer",
        cuda=True,
    ),
}


class SetupFailed(RuntimeError):
    """The text says which step, and its last words."""


def _run(step: str, argv: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(argv, env=dict(environment), capture_output=True, text=True)
    if done.returncode != 0:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()]
        raise SetupFailed(f"{step}: {(errors or said or ['no word of why'])[-1]}")
    return done.stdout


def gpu_packages(report: Mapping[str, Any]) -> list[str]:
    """Of what `pip install --report` would install."""
    names = [str(package["metadata"]["name"]) for package in report["install"]]
    return [name for name in names if name.startswith(CUDA)]


def _pip(python: Path, arguments: Sequence[str]) -> list[str]:
    file, *others = arguments
    if STOCK_MXNET in others:
        others = [str(patches.fetch(patches.find_source("mxnet")))]
    quiet = ("-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    return [str(python), *quiet, "-r", str(PINNED / file), *others]


def make(setup: Setup, folder: Path, gpu_builds: bool, jobs: int) -> None:
    python = folder / "bin" / "python"
    environment = {**os.environ, **setup.environment, "MAKEFLAGS": f"-j{jobs}"}
    environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment['PATH']}"
    _run("venv", [sys.executable, "-m", "venv", "--clear", str(folder)], environment)
    for arguments in setup.requirements:
        argv = _pip(python, arguments)
        if setup.cuda and not gpu_builds:
            report = _run(arguments[0], [*argv, "--dry-run", "--report", "-"], environment)
            if found := gpu_packages(json.loads(report)):
                raise SetupFailed(
                    f"pip has only a build for GPUs, with {len(found)} packages of several GB; "
                    "offer it one for the CPU (PIP_FIND_LINKS) or use --gpu-builds"
                )
        _run(arguments[0], argv, environment)
    _run("probe", [str(python), "-c", setup.probe], environment)


def set_up(name: str, root: Path, gpu_builds: bool, jobs: int) -> str:
    """What to say of it."""
    if INSTALLED[name].never:
        return f"skipped: {INSTALLED[name].never}"
    folder = root / INSTALLED[name].environment
    if not (folder / READY).exists():
        try:
            make(SETUPS[name], folder, gpu_builds, jobs)
        except (SetupFailed, patches.PatchError, OSError) as error:
            folder.mkdir(exist_ok=True)
            (folder / REASON).write_text(f"it could not be installed: {error}\n")
            return f"skipped: {error}"
        (folder / READY).touch()
    # Also where it is ready: then what was missing, or has been pinned since.
    return "; ".join(["ready", *add_extras(SETUPS[name], folder)])


def add_extras(setup: Setup, folder: Path) -> list[str]:
    """What there is to say of those that could not be installed."""
    missing = []
    for arguments in setup.extras:
        try:
            _run("pip", _pip(folder / "bin" / "python", arguments), os.environ)
        except SetupFailed as error:
            missing.append(f"{arguments[0]}: skipped: {error}")
    return missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(INSTALLED))
    parser.add_argument(
        "--gpu-builds", action="store_true", help="take them if there are no others"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of compilers")
    asked = parser.parse_args()
    for name in asked.peers or INSTALLED:
        if name not in INSTALLED:
            parser.error(f"there is no peer '{name}'; there are {', '.join(INSTALLED)}")
        print(f"{name}: {set_up(name, ROOT, asked.gpu_builds, asked.jobs)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
